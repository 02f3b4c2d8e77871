"""The command `benchmark`: the original's flags, lines and exit codes, with correct figures.

The exit code is 0 when all went well and 255 when anything failed, accuracy included. Where figures
differ from the original's, docs/benchmark.md says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from mindspore_lite.cli import benchmark_accuracy as accuracy
from mindspore_lite.cli import benchmark_profile as profile
from mindspore_lite.cli.benchmark_asked import Asked, context_of
from mindspore_lite.cli.benchmark_dump import write_dump
from mindspore_lite.cli.benchmark_flags import BINDINGS, FLAGS, MODEL_TYPES
from mindspore_lite.cli.benchmark_inputs import arrays_for, shapes_for
from mindspore_lite.cli.benchmark_parallel import measure_clients
from mindspore_lite.cli.benchmark_reading import asked_of
from mindspore_lite.cli.console import complain, counted, run_script, say, working
from mindspore_lite.cli.flags import parse, usage
from mindspore_lite.core.environment import variables
from mindspore_lite.errors import LiteError, SettingsError
from mindspore_lite.model import Model

ERROR = -1
_SEE = "benchmark --help tells all flags"
_EXAMPLE = "Example: benchmark --modelFile=net.mindir --inputShape=x:1,3,224,224 --numThreads=2"


def main() -> None:
    """Entry point of the console script."""
    run_script(run)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; 0 or ERROR."""
    parsed = parse(arguments, FLAGS)
    if parsed.problems:
        complain(*parsed.problems, _SEE)
        return ERROR
    if parsed.flags.get("help") == "true":
        say(help_text())
        return 0
    try:
        asked = asked_of(parsed.flags, variables)
    except SettingsError as exc:
        complain(*exc.problems, _SEE)
        return ERROR
    complain(*(f"WARNING: {note}" for note in asked.notes))
    for line in echo(asked):
        say(line)
    try:
        if asked.clients is None:
            measure(asked)
        else:
            measure_clients(asked, asked.clients)
    except (LiteError, OSError, ValueError) as exc:
        code = exc.code if isinstance(exc, LiteError) else ERROR
        complain(str(exc), f"Run Benchmark {asked.model.name} Failed : {code}")
        return ERROR
    say(f"Run Benchmark {asked.model.name} Success.")
    return 0


def help_text() -> str:
    """What the command can do."""
    return f"Usage: benchmark --modelFile=MODEL [FLAGS]\n{usage(FLAGS)}\n{_EXAMPLE}"


def echo(asked: Asked) -> list[str]:
    """What will be done, in the original's words and order."""
    given, place = asked.flags, asked.place
    values: dict[str, object] = {
        "ModelPath": asked.model,
        "ModelType": asked.model_type,
        "InDataPath": given.get("inDataFile", ""),
        "GroupInfoFile": given.get("GroupInfoFile", ""),
        "ConfigFilePath": asked.config,
        "InDataType": "bin",
        "LoopCount": asked.loops,
        "DeviceType": place.device,
        "AccuracyThreshold": f"{asked.limits.percent:g}",
        "CosineDistanceThreshold": f"{asked.limits.cosine:g}",
        "WarmUpLoopCount": asked.warm_ups,
        "NumThreads": place.threads,
        "InterOpParallelNum": place.inter_op,
        "Fp16Priority": int(place.fp16),
        "EnableParallel": int(given.get("enableParallel") == "true"),
        "calibDataPath": asked.reference,
        "EnableGLTexture": int(given.get("enableGLTexture") == "true"),
        "cpuBindMode": BINDINGS[place.binding],
        "CalibDataType": given.get("benchmarkDataType", "FLOAT"),
    }
    lines = [f"{label} = {value}" for label, value in values.items()]
    if place.core_list:
        lines.append(f"core list: {','.join(map(str, place.core_list))}")
    if asked.shapes:
        sizes = (",".join(map(str, dims)) for dims in asked.shapes.values())
        lines.append(f"Resize Dims: {' '.join(sizes)}")
    return lines


def measure(asked: Asked) -> None:
    """One caller: times, or a comparison with expected outputs."""
    say("start unified benchmark run")
    entries = {"common_context": {"profile": asked.trace}} if asked.trace else None
    with Model() as model:
        start = time.perf_counter()
        with working(f"building {asked.model.name}"):
            kind, context = MODEL_TYPES[asked.model_type], context_of(asked)
            model.build_from_file(
                str(asked.model), kind, context, asked.config, entries, dec_key=asked.key
            )
            tensors = model.get_inputs()
            shapes = shapes_for(tensors, asked)
            if shapes != [tensor.shape for tensor in tensors]:
                model.resize(tensors, shapes)
        say(f"PrepareTime = {(time.perf_counter() - start) * 1e3:.3f} ms")
        inputs = arrays_for(tensors, shapes, asked.files)
        if asked.reference:
            mark_accuracy(model, inputs, asked)
        else:
            mark_performance(model, inputs, asked)
        if asked.dump is not None:
            given = {tensor.name: array for tensor, array in zip(tensors, inputs, strict=True)}
            say(f"Dumped file is saved to : {write_dump(asked.dump, given, model.predict(inputs))}")
    if asked.trace:  # which is there since the model was closed
        profile.show(asked.trace, asked.warm_ups, asked.loops)


def mark_performance(model: Model, inputs: list[np.ndarray], asked: Asked) -> None:
    """What a run takes, by the wall clock."""
    say("Running warm up loops...")
    with counted("warming up", asked.warm_ups) as done:
        for _ in range(asked.warm_ups):
            model.predict(inputs)
            done()
    say("Running benchmark loops...")
    taken_ns = []
    with counted("running", asked.loops) as done:
        for _ in range(asked.loops):
            start = time.perf_counter_ns()
            model.predict(inputs)
            taken_ns.append(time.perf_counter_ns() - start)
            done()
    taken_ms = np.array(taken_ns) / 1e6
    say(
        f"Model = {asked.model.name}, NumThreads = {asked.place.threads}, "
        f"MinRunTime = {taken_ms.min():f} ms, MaxRuntime = {taken_ms.max():f} ms, "
        f"AvgRunTime = {taken_ms.mean():f} ms"
    )
    p50, p90, p99 = np.percentile(taken_ms, [50, 90, 99])
    say(
        f"P50RunTime = {p50:f} ms, P90RunTime = {p90:f} ms, P99RunTime = {p99:f} ms, "
        f"StdRunTime = {taken_ms.std():f} ms"
    )


def mark_accuracy(model: Model, inputs: list[np.ndarray], asked: Asked) -> None:
    """Whether the model gives what is expected."""
    say("MarkAccuracy")
    for at, array in enumerate(inputs):
        say(f"InData {at}: {accuracy.shown(array, accuracy.SHOWN_INPUTS)}")
    expected = accuracy.read_expected(asked.reference)
    compared = accuracy.compare(expected, model.predict(inputs), accuracy.Tolerance())
    accuracy.report(compared, asked.limits)
