"""Entries that take a model file: reading, loading, running on each engine, converting."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fuzzing import corpus
from fuzzing.damage import Damage
from fuzzing.ground import cache_in

import mindspore_lite as mslite
from mindspore_lite.converter import FmkType
from mindspore_lite.graph.source import ModelInput, source_of

Act = Callable[[], object]

_MOST_ITEMS = 10**6  # of an input: a file may well ask for more, but we need not make it
_LONGEST_S = 5  # of a predict, in which a loop without an end is stopped
_TYPES = {"MINDIR": mslite.ModelType.MINDIR, "ONNX": mslite.ModelType.ONNX}


def mindir(damage: Damage, folder: Path) -> Act:
    """Read and translate a MindIR file."""
    path = _laid(damage, folder, "MINDIR")
    return lambda: _loaded("MINDIR", path)


def onnx(damage: Damage, folder: Path) -> Act:
    """Load an ONNX file with its external data."""
    path = _laid(damage, folder, "ONNX")
    return lambda: _loaded("ONNX", path)


def run_on(engine: str, damage: Damage, folder: Path) -> Act:
    """Build and run a file of either kind, as a user would."""
    kind = damage.choice(("MINDIR", "ONNX"))
    path = _laid(damage, folder, kind)
    if damage.chance(0.1):
        return lambda: _run_many(path, engine)
    cache = folder / "cache" if damage.chance(0.05) else None
    return lambda: _run(path, kind, engine, cache)


run_onnxruntime = functools.partial(run_on, "onnxruntime")
run_openvino = functools.partial(run_on, "openvino")
run_torch = functools.partial(run_on, "torch")


def convert(damage: Damage, folder: Path) -> Act:
    """Convert a file of any framework with some settings."""
    kind = damage.choice((FmkType.ONNX, FmkType.ONNX, FmkType.MINDIR))
    if damage.chance(0.03):  # mostly refused: TensorFlow is seldom there
        kind = damage.choice((FmkType.TFLITE, FmkType.TF))
    if kind in (FmkType.TFLITE, FmkType.TF):
        seed = corpus.DATA / "tensorflow" / ("net.tflite" if kind is FmkType.TFLITE else "net.pb")
        path = folder / seed.name
        path.write_bytes(damage.bytes(seed.read_bytes()))
    else:
        path = _laid(damage, folder, kind.name)
    converter = mslite.Converter()
    converter.optimize = damage.choice(("general", "general", "none", "ascend_oriented"))
    converter.weight_fp16 = damage.chance(0.1)
    converter.infer = damage.chance(0.1)
    return lambda: converter.convert(kind, str(path), str(folder / "made"))


def _laid(damage: Damage, folder: Path, kind: str) -> Path:
    """A damaged model in the folder, with the files next to it, which may be damaged, too."""
    pick, change = {
        "MINDIR": (corpus.mindir, damage.mindir),
        "ONNX": (corpus.onnx, damage.onnx),
    }[kind]
    seed, donors = pick(damage), [pick(damage).data for _ in range(2)]
    seed.lay(folder)
    data = seed.data
    if seed.beside and damage.chance(0.2):
        name = damage.choice(sorted(seed.beside))
        (folder / name).write_bytes(damage.bytes(seed.beside[name]))
    else:
        data = change(data, donors)
    path = folder / ("split_graph.mindir" if kind == "MINDIR" else "model.onnx")
    path.write_bytes(data)
    return path


def _loaded(kind: str, path: Path) -> None:
    """Make the graph, and look at every weight of it."""
    model = source_of(ModelInput(kind, path)).translate()
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and value.const_value.size <= _MOST_ITEMS:
                value.const_value.numpy()


def _run(path: Path, kind: str, engine: str, cache: Path | None) -> None:
    context = mslite.Context()
    context.cpu.thread_num = 1
    settings = {"common_context": {"engine": engine}}
    with cache_in(cache), mslite.Model() as model:
        model.build_from_file(str(path), _TYPES[kind], context, config_dict=settings)
        inputs = _zeros(model)
        if inputs is not None:
            for output in model.predict(inputs):
                output.get_data_to_numpy()


def _run_many(path: Path, engine: str) -> None:
    """The same through a runner, whose requests have a deadline."""
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.parallel.workers_num = 1
    context.parallel.timeout_s = _LONGEST_S
    context.parallel.config_info = {"common_context": {"engine": engine}}
    runner = mslite.ModelParallelRunner()
    with contextlib.closing(runner):
        runner.build_from_file(str(path), context)
        inputs = _zeros(runner)
        if inputs is not None:
            runner.predict(inputs)


def _zeros(model: mslite.Model | mslite.ModelParallelRunner) -> list[np.ndarray] | None:
    """Inputs; None where they would be large."""
    tensors = model.get_inputs()
    shapes = [[1 if dim < 0 else dim for dim in tensor.shape] for tensor in tensors]
    if any(math.prod(shape) > _MOST_ITEMS for shape in shapes):
        return None
    return [np.zeros(shape, t._dtype) for shape, t in zip(shapes, tensors, strict=True)]
