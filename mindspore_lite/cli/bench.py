"""`mslite bench`: how fast a model or a server is under load, next to peers, or better settings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from mindspore_lite.bench import peers
from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.campaign import places, taking_part
from mindspore_lite.bench.compare import ComparePlan, rounds_for
from mindspore_lite.bench.machine import machine
from mindspore_lite.bench.measure import Meter
from mindspore_lite.bench.result import ModelFacts, Port, Result, Settings, Tune
from mindspore_lite.bench.sides import Feed, Ours, Wish
from mindspore_lite.bench.trial import Trial, engines, usual_setting
from mindspore_lite.bench.tune import Search, best_of, grid, marked, setting_of
from mindspore_lite.bench.winner import ini_text, python_text, remember
from mindspore_lite.cli.bench_flags import (
    Options,
    check_tune,
    check_url,
    loads_of,
    peers_of,
    plan_of,
)
from mindspore_lite.cli.bench_report import finish, show, write
from mindspore_lite.cli.bench_show import show_tune
from mindspore_lite.cli.bench_url import measure_url, served_by
from mindspore_lite.cli.console import bar, fail, say, tidy_end, working
from mindspore_lite.cli.inputs import (
    check_files,
    check_names,
    check_writable,
    read_array,
    read_pairs,
    read_shape,
)
from mindspore_lite.cli.inspect import printable
from mindspore_lite.cli.run import model_type
from mindspore_lite.core import cores, synthetic
from mindspore_lite.core.capabilities import named
from mindspore_lite.errors import InputError
from mindspore_lite.serving.layout import Layout
from mindspore_lite.settings.spec import settle
from mindspore_lite.tensor import Tensor


def bench(model: Path | None = None, /, *, options: Options | None = None) -> None:
    """Measure a model, or a server, under load.

    Parameters
    ----------
    model
        A MindIR or ONNX file; it may be missing where there is --url.
    """
    options = options or Options()
    check_url(options, model)
    check_tune(options)
    check_files(read_pairs("--input", options.input), pictures=False)
    loads, names = loads_of(options), peers_of(options)
    plan = plan_of(options)
    check_writable(options.json, options.html)
    with tidy_end():
        if model is None:
            measure_url(options, loads, plan)
        elif options.tune:
            _tune(model, options, [load.clients or 1 for load in loads], plan)
        else:
            _measure(model, options, loads, plan, _installed(names))


def _installed(names: tuple[str, ...]) -> tuple[str, ...]:
    absent = peers.missing(tuple(name for name in names if name in peers.INSTALL))
    for name, command in absent.items():
        say(f"{name} is not installed, and left out: {command}")
    return tuple(name for name in names if name not in absent)


def _measure(
    model: Path, options: Options, loads: Sequence[Load], plan: ComparePlan, names: tuple[str, ...]
) -> None:
    wish, meter = options.wish, Meter()
    engine = _engine(wish)
    with working(f"building {model.name}"), _told_warnings():
        Ours(model, wish).close()  # libraries, and what compiling needs, are no memory of a side
        with meter.turn():
            ours = Ours(model, wish)
    with closing(ours):
        feed = _request(ours.inputs, options)
        layout = ours.layout
        say(f"{printable(model.name)}: {_counted(layout)}")
        with ExitStack() as stack:
            with working("building the peers"):
                kind = model_type(model).name
                everyone = taking_part(ours, meter, names, model, kind, wish)
                sides = stack.enter_context(everyone)
            if options.url:
                served = stack.enter_context(closing(served_by(options, model)))
                served.probe(feed)
                sides.add(served)
            for name in names:
                if name in peers.NOTES:
                    say(peers.NOTES[name])
            for name in sides.files:
                say(f"mslite is {printable(model.name)}; {printable(name)} runs with its settings")
            if len(sides.sides) > 1 and not options.rounds:
                rounds = rounds_for(plan.duration_s, loads, _answer_s(ours, feed))
                plan = replace(plan, rounds=rounds)
            with bar(len(loads) * len(sides.sides) * plan.rounds) as watch:
                found = sides.measure(loads, feed, plan, watch)
    show(found, options)
    result = Result(
        model=_facts(model, feed),
        machine=machine(("numpy", engine, *(name for name in names if name in peers.INSTALL))),
        settings=replace(_settings(wish, engine, plan), url=options.url),
        runs=tuple(found.runs),
        ratios=tuple(found.ratios),
        layout=places(layout),
        apart=tuple(found.apart),
    )
    finish(result, options, found)


def _answer_s(ours: Ours, feed: Feed) -> float:
    """About how long an answer takes when nobody else asks."""
    with ours.desk(Load(clients=1), feed) as desk:
        times = []
        for _ in range(5):  # the first ones may still prepare something
            begin = time.perf_counter()
            desk.call()
            times.append(time.perf_counter() - begin)
    return min(times)


def _tune(model: Path, options: Options, clients: Sequence[int], plan: ComparePlan) -> None:
    with working(f"building {model.name}"), _told_warnings():
        ours = Ours(model, options.wish)
    with closing(ours):
        feed = _request(ours.inputs, options)
        can_batch = all(tensor.shape[:1] == [-1] for tensor in ours.inputs)
    limit = cores.usable().limit
    begin = grid(limit, [options.engine] if options.engine else engines(), can_batch)
    say(f"{printable(model.name)}: {len(begin)} settings, and then those around the best of them")
    with bar(len(begin) * len(clients)) as watch:
        trial = Trial(model, feed, plan, watch)
        search = Search(trial.opened, clients, options.p99_ms)
        search.run(begin, limit, trial.again, usual_setting())
    if not search.points:
        if search.interrupted:
            raise KeyboardInterrupt
        fail(f"no setting could be tried: {next(iter(search.refused.values()), '')}", code=1)
    for setting, reason in search.refused.items():
        say(f"left out: {setting}: {printable(reason)}")
    _show_winner(model, options, plan, feed, search, trial)


def _show_winner(
    model: Path, options: Options, plan: ComparePlan, feed: Feed, search: Search, trial: Trial
) -> None:
    best = best_of(search.points, options.p99_ms)
    points = tuple(marked(search.points, options.p99_ms))
    python, ini = (python_text(best, model.name), ini_text(best)) if best else ("", "")
    verdict = search.verdict(best, usual_setting()) if best else None
    tune = Tune(options.p99_ms, points, python, ini, verdict.why_not if verdict else "")
    show_tune(tune)
    setting = setting_of(best) if best else None
    wish = setting.wish if setting else options.wish
    result = Result(
        model=_facts(model, feed),
        machine=machine(("numpy", *engines())),
        settings=_settings(wish, _engine(wish), plan),
        runs=(trial.runs[setting, best.clients],) if best and setting else (),
        ratios=(),
        layout=places(trial.layouts[setting]) if setting else (),
        tune=tune,
    )
    write(result, options)
    if search.interrupted:
        fail("interrupted; this is the best of what was tried", code=130)
    if best is None or verdict is None:
        fail(f"no setting keeps p99 within {options.p99_ms:g} ms", code=1)
    if verdict.why_not:
        say(f"not remembered for [common_context] engine=auto: {verdict.why_not}")
    elif remember(model, model_type(model).name, best, verdict.evidence):
        say("remembered for [common_context] engine=auto")


def _request(inputs: list[Tensor], options: Options) -> dict[str, np.ndarray]:
    """An array for every input, which all requests have: of a file, or random."""
    files, shapes = read_pairs("--input", options.input), read_pairs("--shape", options.shape)
    check_names([tensor.name for tensor in inputs], {**files, **shapes})
    feed = {}
    for tensor in inputs:
        file = files.get(tensor.name, "")
        given = read_array(file) if file.endswith(".npy") else None
        if tensor.name in shapes:
            tensor.shape = read_shape(shapes[tensor.name])
            if min(tensor.shape) < 1:
                raise ValueError(f"--shape got {tensor.shape}, every dim must be 1 or more")
        elif min(tensor.shape, default=0) < 0:
            tensor.shape = synthetic.closed(tensor.shape) if given is None else [*given.shape]
            if given is None:
                say(f"input {tensor.name} is open; taking {tensor.shape}, --shape changes that")
        try:
            feed[tensor.name] = _filled(tensor, file, given)
        except MemoryError:
            raise InputError(
                f"input {tensor.name!r} of shape {tensor.shape} has no room in memory; give a "
                "smaller --shape"
            ) from None
    return feed


def _filled(tensor: Tensor, file: str, given: np.ndarray | None) -> np.ndarray:
    dtype = tensor.get_data_to_numpy().dtype
    if given is None:
        given = np.fromfile(file, dtype) if file else synthetic.array(dtype, tensor.shape)
    if given.size != tensor.element_num:
        raise InputError(
            f"{file!r} has {given.size} values, input {tensor.name!r} of shape {tensor.shape} "
            f"wants {tensor.element_num}"
        )
    tensor.set_data_from_numpy(given)
    return tensor.get_data_to_numpy()


@contextmanager
def _told_warnings() -> Iterator[None]:
    """Warnings of a build as lines of ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    kinds = (UserWarning, RuntimeWarning)
    for text in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, kinds)):
        say(f"warning: {text}")


def _counted(layout: Layout) -> str:
    workers, threads = layout.workers, layout.threads
    return f"{workers} worker{'s'[: workers > 1]}, {threads} thread{'s'[: threads > 1]} each"


def _engine(wish: Wish) -> str:
    """The engine that a wish leads to."""
    return wish.engine or named("", settle(wish.context()).on_card).name


def _facts(model: Path, feed: Feed) -> ModelFacts:
    ports = (Port(name, array.dtype.name, array.shape) for name, array in feed.items())
    return ModelFacts(model.name, tuple(ports))


def _settings(wish: Wish, engine: str, plan: ComparePlan) -> Settings:
    return Settings(
        target=wish.target,
        engine=engine,
        workers=wish.workers,
        threads=wish.threads,
        batch=wish.batch,
        duration_s=plan.duration_s,
        warmup_s=plan.warmup_s,
        rounds=plan.rounds,
    )
