"""The flags of `mslite bench`, parsed and checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from cyclopts import Parameter

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.compare import ComparePlan
from mindspore_lite.bench.oip import url_of
from mindspore_lite.bench.peers import INSTALL
from mindspore_lite.bench.sides import Wish
from mindspore_lite.cli.console import fail
from mindspore_lite.settings.formats import by_suffix

CLIENTS = "1,4,16"
_MOST_CLIENTS = 1024  # threads of this process; guess
_MOST_RATE = 100_000.0  # a second, more than one thread can send; guess

Number = TypeVar("Number", int, float)


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes
    ----------
    url
        A server of the Open Inference Protocol to measure, http://HOST:PORT or grpc://HOST:PORT;
        with a MODEL, the server's and that in this process take turns.
    model
        The name of the model on the server; without it, the name of the MODEL file without its
        suffix, or the server's only one.
    token_file
        A file with the token that the server wants.
    clients
        Closed loop: numbers of clients that each wait for an answer before they ask again. Without
        this and --rate: 1,4,16.
    rate
        Open loop: requests per second, which come whether or not the last one is answered.
    workers
        How many requests run at the same time; 0 decides by the machine.
    threads
        Number of threads of each; 0 decides by the machine.
    batch
        Up to how many rows requests are joined; 0 joins none.
    target
        Where it runs.
    device
        The number of the card, where there are several.
    engine
        What computes on the CPU; without it, ONNX Runtime does.
    duration
        Seconds to measure each side under each load, all rounds together.
    warmup
        Seconds before that, which do not count.
    input
        NAME=FILE for each input that should not be random: .npy, or .bin with raw values.
    shape
        NAME=1,3,224,224 for each input that should have another shape.
    compare
        What to run as well, in turns: onnxruntime, openvino, torch, or other model files, such as
        the same model quantised.
    rounds
        Turns of each side; without it 7 to 30 where there is a peer, more where answers come
        faster, else 1.
    seed
        Of the times at which the requests of an open loop come.
    json
        Also write everything into this file, for programs; docs/measuring.md lists the keys.
    html
        Also write a report into this file, for any browser.
    tune
        Search workers, threads, batching and engine for the highest throughput.
    p99_ms
        With --tune: milliseconds within which 99 of 100 requests must be answered.
    sandbox
        Compile in a child process that can reach the model's folder and no more.
    """

    url: str = ""
    model: str = ""
    token_file: Path | None = None
    clients: str = ""
    rate: str = ""
    workers: int = 0
    threads: int = 0
    batch: int = 0
    target: Literal["cpu", "gpu", "ascend"] = "cpu"
    device: int = 0
    engine: str = ""
    duration: float = 3.0
    warmup: float = 0.5
    input: Annotated[list[str] | None, Parameter(negative="")] = None
    shape: Annotated[list[str] | None, Parameter(negative="")] = None
    compare: str = ""
    rounds: int = 0
    seed: int = 0
    json: Path | None = None
    html: Path | None = None
    tune: Annotated[bool, Parameter(negative="")] = False
    p99_ms: float | None = None
    sandbox: Annotated[bool, Parameter(negative="")] = False

    @property
    def wish(self) -> Wish:
        """The settings of our side."""
        return Wish(
            self.target,
            self.device,
            self.engine,
            self.workers,
            self.threads,
            self.batch,
            self.sandbox,
        )


def loads_of(options: Options) -> list[Load]:
    """Closed loops first; ends the program where a number makes no sense."""
    clients = options.clients or ("" if options.rate else CLIENTS)
    closed = _listed("--clients", clients, int, _MOST_CLIENTS)
    open_ = _listed("--rate", options.rate, float, _MOST_RATE)
    return [Load(clients=count) for count in closed] + [Load(rate=rate) for rate in open_]


def peers_of(options: Options) -> tuple[str, ...]:
    """Those to compare with, each once."""
    names = [name.strip() for name in options.compare.split(",")] if options.compare else []
    runtimes = [name for name in names if name in INSTALL]
    for name in names:
        if name not in INSTALL and not Path(name).is_file():
            missing = f", but there is no such file in {str(Path.cwd())!r}"
            fail(
                f"--compare got {name!r}, wanted some of {', '.join(INSTALL)}, or model files"
                f"{missing if by_suffix(Path(name)) else ''}",
                code=2,
            )
    if runtimes and options.sandbox:
        fail("--sandbox does not go with --compare: the peers compile in this process", code=2)
    if runtimes and options.target != "cpu":
        fail("--compare runs the peers on the CPU; it goes with --target cpu", code=2)
    return tuple(dict.fromkeys(names))


def plan_of(options: Options) -> ComparePlan:
    """How long, in one round unless stated; ends the program where a number makes no sense."""
    for name, value in (("duration", options.duration), ("warmup", options.warmup)):
        least = 0.0 if name == "warmup" else 1e-3
        if not (math.isfinite(value) and least <= value <= 86400):
            fail(f"--{name} is {value:g}, wanted seconds, {least:g} to 86400", code=2)
    for name in ("rounds", "workers", "threads", "batch", "seed"):
        if getattr(options, name) < 0:
            fail(f"--{name} is {getattr(options, name)}, wanted 0 or more", code=2)
    return ComparePlan(options.duration, options.warmup, options.rounds or 1, options.seed)


def check_tune(options: Options) -> None:
    """End the program where flags do not go together."""
    if options.p99_ms is not None and not options.tune:
        fail("--p99-ms goes with --tune", code=2)
    if options.p99_ms is not None and not 0 < options.p99_ms < math.inf:
        fail(f"--p99-ms is {options.p99_ms:g}, wanted more than 0 milliseconds", code=2)
    if not options.tune:
        return
    fixed = ("rate", "compare", "workers", "threads", "batch", "rounds", "sandbox")
    given = [f"--{name}" for name in fixed if getattr(options, name)]
    if given:
        fail(f"--tune does not go with {', '.join(given)}", code=2)
    if options.target != "cpu":
        fail("--tune searches settings of the CPU; it goes with --target cpu", code=2)


def check_url(options: Options, model: Path | None) -> None:
    """End the program where flags of a server do not go together."""
    if not options.url:
        needless = [name for name in ("model", "token_file") if getattr(options, name)]
        if needless:
            fail(f"--{needless[0].replace('_', '-')} goes with --url", code=2)
        if model is None:
            fail("there is nothing to measure, wanted a MODEL file or --url URL", code=2)
        return
    try:
        url_of(options.url)
    except ValueError as exc:
        fail(str(exc), code=2)
    if options.tune:
        fail("--tune searches settings of a MODEL in this process; leave --url out", code=2)
    names = ("workers", "threads", "batch", "device", "engine", "compare", "sandbox")
    given = [f"--{name}" for name in names if getattr(options, name)]
    given += ["--target"] if options.target != "cpu" else []
    if model is None and given:
        fail(
            f"{', '.join(given)} is for a MODEL in this process; the server has its own settings",
            code=2,
        )


def _listed(flag: str, text: str, kind: Callable[[str], Number], most: Number) -> list[Number]:
    try:
        found = [kind(part) for part in text.split(",")] if text else []
    except ValueError:
        found = [kind("0")]
    if any(not 0 < value <= most for value in found):
        wanted = f"numbers above 0 and up to {most:g} with commas between them, such as 1,4,16"
        fail(f"{flag} got {text!r}, wanted {wanted}", code=2)
    return list(dict.fromkeys(found))
