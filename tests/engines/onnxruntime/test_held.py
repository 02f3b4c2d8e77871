"""held.py: a compiled model stays readable whatever becomes of its folder."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_graphs import BOOL, F32, body, model, node
from support.onnx_updates import dense, some

from mindspore_lite.engines.base import Options, Reopening, Session
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.onnxruntime.held import Held
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.source import ModelInput, source_of

SIDE = 32  # a matrix of 4 KiB: large enough to lie outside of the graph


def opened(made: onnx.ModelProto, *names: str) -> Session:
    entries = tuple((name, "") for name in names)
    given = ModelInput("ONNX", data=made.SerializeToString(), variable=entries)
    return OnnxRuntimeEngine().load(source_of(given), Options())


def folder_of(place: Path) -> Path:
    (found,) = [path for path in place.iterdir() if len(path.name) == 64]
    return found


@pytest.fixture
def folder(cache_place: Path) -> Path:
    opened(dense(), "w")
    return folder_of(cache_place)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_is_there_until_its_folder_goes(folder: Path) -> None:
    held = Held(folder)
    assert held.is_there()
    moved = folder.rename(folder.with_name("moved"))
    assert not held.is_there()
    shutil.copytree(moved, folder)
    assert not held.is_there(), "other files of the same names"
    shutil.rmtree(moved)
    assert not held.is_there()


@pytest.mark.parametrize("name", [artefact.MODEL, artefact.WEIGHTS])
def test_a_file_that_was_written_to_is_refused_there_or_not(folder: Path, name: str) -> None:
    held = Held(folder)
    (folder / name).chmod(0o600)
    assert held.is_there()
    with open(folder / name, "r+b") as file:
        file.truncate(1)
    for _ in range(2):
        with pytest.raises(EngineError, match=f"{name}' was changed by somebody while it was in"):
            held.is_there()
        shutil.rmtree(folder, ignore_errors=True)


def test_its_descriptors_go_with_it(folder: Path) -> None:
    gc.collect()
    before = descriptors()
    held = Held(folder)
    assert descriptors() > before
    assert held.apart.weights
    del held
    gc.collect()
    assert descriptors() == before


def test_apart_it_has_every_weight(folder: Path) -> None:
    held = Held(folder)
    data = (folder / artefact.WEIGHTS).read_bytes()
    shutil.rmtree(folder)
    graph, weights = held.apart
    assert {name: array.shape for name, array in weights.items()} == {"w": (8, 4)}
    assert weights["w"].tobytes() in data
    assert b"not-stored" not in graph


def reopened(session: Session, place: Path, **weights: np.ndarray) -> Session:
    """The model with other weights, after all that was stored of it was removed."""
    shutil.rmtree(place)
    assert isinstance(session, Reopening)
    return session.opener()(weights)


def test_weights_of_inner_graphs_are_there_when_the_folder_is_gone(cache_place: Path) -> None:
    inner = {"k": some(SIDE, SIDE)}
    other = body([node("Neg", ["h"], ["z"])], [], [("z", F32, None)])
    branch = body([node("MatMul", ["h", "k"], ["z"])], [], [("z", F32, None)], **inner)
    made = model(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
        ],
        [("x", F32, [2, SIDE]), ("c", BOOL, [])],
        [("y", F32, None)],
        w=some(SIDE, SIDE),
    )
    session, new, x = opened(made, "w"), some(SIDE, SIDE) * 2, some(2, SIDE)
    changed = reopened(session, cache_place, w=new)
    for flag, wanted in ((True, x @ new @ inner["k"]), (False, -(x @ new))):
        (y,) = changed.run([x, np.array(flag)])
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


def test_weights_that_numpy_has_no_type_for_are_there_when_the_folder_is_gone(
    cache_place: Path,
) -> None:
    values = np.arange(SIDE * SIDE * 4) % 15 - 7
    made = model(
        [
            node("DequantizeLinear", ["q", "s"], ["d"]),
            node("MatMul", ["x", "w"], ["h"]),
            node("MatMul", ["h", "d"], ["y"]),
        ],
        [("x", F32, [2, SIDE])],
        [("y", F32, None)],
        w=some(SIDE, SIDE),
        s=np.array(0.5, np.float32),
    )
    packed = helper.make_tensor("q", TensorProto.INT4, [SIDE, SIDE * 4], values)
    made.graph.initializer.append(packed)
    session, new, x = opened(made, "w"), some(SIDE, SIDE) * 2, some(2, SIDE)
    assert isinstance(session, Reopening)
    (wanted,) = session.opener()({"w": new}).run([x])
    (y,) = reopened(session, cache_place, w=new).run([x])
    np.testing.assert_allclose(y, wanted, rtol=1e-5)
    exact = x @ new @ (values.reshape(SIDE, SIDE * 4) * np.float32(0.5))
    np.testing.assert_allclose(y, exact, rtol=0.05, atol=2)  # it is computed in 8 bits
