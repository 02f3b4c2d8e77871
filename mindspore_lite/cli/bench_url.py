"""`mslite bench --url`: a model on a server, whose inputs are made up from what the server says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.campaign import Sides
from mindspore_lite.bench.compare import ComparePlan
from mindspore_lite.bench.machine import machine
from mindspore_lite.bench.oip import ServedTensor, url_of
from mindspore_lite.bench.result import ModelFacts, Port, Result, Settings
from mindspore_lite.bench.served import Served
from mindspore_lite.bench.sides import Feed
from mindspore_lite.cli.bench_flags import Options
from mindspore_lite.cli.bench_report import finish, show
from mindspore_lite.cli.console import bar, say, working
from mindspore_lite.cli.inputs import check_names, read_array, read_pairs, read_shape
from mindspore_lite.cli.inspect import printable
from mindspore_lite.core import synthetic
from mindspore_lite.errors import InputError, ResourceError
from mindspore_lite.server.access import read_tokens


def measure_url(options: Options, loads: Sequence[Load], plan: ComparePlan) -> None:
    """Measure a server, and nothing else."""
    with closing(served_by(options)) as served:
        say(f"{printable(served.model)} of {printable(options.url)}")
        feed = made_up(served.inputs, options)
        with working("asking once"):
            served.probe(feed)
        sides = Sides()
        sides.add(served)
        with bar(len(loads) * plan.rounds) as watch:
            found = sides.measure(loads, feed, plan, watch)
    show(found, options)
    packages = ("numpy", "grpcio") if served.name == "grpc" else ("numpy",)
    result = Result(
        model=ModelFacts(served.model, _ports(feed)),
        machine=machine(packages),
        settings=Settings(
            *("", "", 0, 0, 0, plan.duration_s, plan.warmup_s, plan.rounds), url=options.url
        ),
        runs=tuple(found.runs),
        ratios=(),
        layout=(),
    )
    finish(result, options, found)


def served_by(options: Options, model: Path | None = None) -> Served:
    """The model on the server: that of --model, or called as the file, or the only one.

    Raises:
        LiteError: There is no server, or no such model.
    """
    url = url_of(options.url)
    token = read_tokens(options.token_file)[0] if options.token_file else ""
    name = options.model or (model.stem if model else "")
    with working(f"asking {url}"):
        return Served(url, name, token)


def made_up(inputs: Sequence[ServedTensor], options: Options) -> dict[str, np.ndarray]:
    """An array for every input, which all requests have: of a file, or random.

    Raises:
        InputError: A flag does not fit the inputs.
    """
    files, shapes = read_pairs("--input", options.input), read_pairs("--shape", options.shape)
    check_names([one.name for one in inputs], {**files, **shapes})
    return {
        one.name: _array(one, files.get(one.name, ""), shapes.get(one.name, "")) for one in inputs
    }


def _array(one: ServedTensor, file: str, sizes: str) -> np.ndarray:
    dtype, shape = one.known.dtype, list(one.shape)
    given = read_array(file) if file.endswith(".npy") else None
    if sizes:
        shape = read_shape(sizes)
        if min(shape) < 1:
            raise ValueError(f"--shape got {shape}, every dim must be 1 or more")
    elif min(shape, default=0) < 0:
        shape = synthetic.closed(shape) if given is None else [*given.shape]
        if given is None:
            name = printable(one.name)
            say(f"input {name} is open; taking {shape}, --shape changes that")
    if given is None:
        try:
            given = np.fromfile(file, dtype) if file else synthetic.array(dtype, shape)
        except (MemoryError, ResourceError):
            raise InputError(
                f"input {one.name!r} of shape {shape} has no room in memory; give a smaller --shape"
            ) from None
    if given.dtype != dtype:
        raise InputError(
            f"{file!r} has {given.dtype}, input {one.name!r} wants {dtype}; convert it with astype"
        )
    if given.size != math.prod(shape):
        raise InputError(
            f"{file!r} has {given.size} values, input {one.name!r} of shape {shape} wants "
            f"{math.prod(shape)}"
        )
    return given.reshape(shape)


def _ports(feed: Feed) -> tuple[Port, ...]:
    return tuple(Port(name, array.dtype.name, array.shape) for name, array in feed.items())
