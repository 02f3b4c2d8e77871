"""Models whose weights may change: how tests build them, change them, and read what they give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from support.mindir_builder import Net, encode
from support.models import MINDIR

import mindspore_lite as mslite

ROWS, SIDE = 2, 8


def variable(*names: str, **more: str) -> dict[str, dict[str, str]]:
    """The configuration that lets these weights change."""
    return {"ascend_context": {"variable_weights_list": ",".join(names), **more}}


def changeable(
    model: Path | bytes,
    *names: str,
    kind: mslite.ModelType = MINDIR,
    threads: int = 1,
    mode: str = "replace",
    **more: Any,
) -> mslite.Model:
    """A Model whose weights of these names may change; without names, none may."""
    context = mslite.Context()
    context.cpu.thread_num = threads
    settings = variable(*names, variable_weights_mode=mode) if names else {}
    made = mslite.Model()
    if isinstance(model, bytes):
        made.build_from_buffer(model, None, kind, context, config_dict=settings, **more)
    else:
        made.build_from_file(str(model), kind, context, config_dict=settings, **more)
    return made


def changeable_runner(path: Path, *names: str, **parallel: Any) -> mslite.ModelParallelRunner:
    """A runner of the same; keyword arguments are settings of context.parallel, but threads."""
    context = mslite.Context()
    context.cpu.thread_num = parallel.pop("threads", 1)
    context.parallel.config_info = variable(*names)
    for name, value in parallel.items():
        assert hasattr(type(context.parallel), name), name
        setattr(context.parallel, name, value)
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(path), context)
    return runner


def named(name: str, array: np.ndarray) -> mslite.Tensor:
    """A Tensor with a name, as update_weights() takes it."""
    tensor = mslite.Tensor(array)
    tensor.name = name
    return tensor


def update(model: Any, weights: Mapping[str, np.ndarray]) -> None:
    """Change weights by name."""
    model.update_weights([[named(name, array) for name, array in weights.items()]])


def outputs(model: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """What a Model or runner gives."""
    return [tensor.get_data_to_numpy() for tensor in model.predict(list(inputs))]


def assert_same_bits(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Equal in shape, type and every bit."""
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in wanted]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def filled(version: int, side: int = SIDE) -> np.ndarray:
    """A weight of telling_net that makes it tell its version."""
    return np.full((side, side), version / side, np.float32)


def versions(number: int) -> dict[str, np.ndarray]:
    """Both weights of telling_net at a version."""
    return {name: filled(number) for name in ("a", "b")}


def telling_net(rows: int = ROWS) -> bytes:
    """y holds the version of weight a in its left half and that of b in its right, 0 at first.

    For x of ones.
    """
    net = Net()
    x = net.input("x", (rows, SIDE))
    halves = [
        net.call("MatMulExt", x, net.weight(name, filled(0)), scope=f"Default/{name}-Dense")
        for name in ("a", "b")
    ]
    return encode(net.model(net.call("Concat", net.tuple(*halves), axis=1)))


def told(model: Any, rows: int = ROWS) -> float:
    """The one version that telling_net gives for all of its outputs."""
    (y,) = outputs(model, np.ones((rows, SIDE), np.float32))
    assert y.shape == (rows, 2 * SIDE)
    (version,) = np.unique(y)  # two of them are a mixture
    return float(version)
