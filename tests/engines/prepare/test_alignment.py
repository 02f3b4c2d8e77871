from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mindspore_lite.engines.base import Options
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.prepare import alignment
from mindspore_lite.graph.source import ModelInput, source_of

DATA = Path(__file__).parents[2] / "data/models"


@pytest.mark.parametrize("shift", [0, 4, 32, 60])
def test_only_arrays_at_odd_addresses_are_copied(shift: int) -> None:
    room = np.zeros(256, np.uint8)
    start = -room.ctypes.data % 64 + shift
    array = room[start : start + 96].view(np.float32).reshape(4, 6)
    array[:] = np.arange(24).reshape(4, 6)
    found = alignment.aligned(array)
    assert found.ctypes.data % 64 == 0
    assert np.shares_memory(found, array) == (shift == 0)
    np.testing.assert_array_equal(found, array)


def test_strided_arrays_become_contiguous() -> None:
    array = np.arange(24.0).reshape(4, 6).T
    found = alignment.aligned(array)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


def stored(name: str, offset: int, length: int, packed: str = "") -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.UINT8, dims=[length])
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": "w", "offset": str(offset), "length": str(length)}
    if packed:
        entries["prepacked_0"] = packed
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_weights_and_their_packed_forms_move_to_aligned_places(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(bytes(range(100)))
    inner = helper.make_graph([], "inner", [], [], [stored("c", 50, 3)])
    branch = helper.make_node("If", ["p"], ["q"], then_branch=inner, else_branch=inner)
    weights = [stored("a", 1, 5), stored("b", 7, 4, "key+1|20;6;0|30;2;9")]
    onnx.save(helper.make_model(helper.make_graph([branch], "g", [], [], weights)), tmp_path / "m")

    alignment.align_weights(tmp_path / "m", tmp_path / "w")

    data = (tmp_path / "w").read_bytes()
    graph = onnx.load(tmp_path / "m", load_external_data=False).graph
    inners = [attribute.g.initializer[0] for attribute in graph.node[0].attribute]
    places: dict[str, dict[str, str]] = {}
    for tensor in [*graph.initializer, inners[0]]:
        places[tensor.name] = {entry.key: entry.value for entry in tensor.external_data}
    for name, start, length in [("a", 1, 5), ("b", 7, 4), ("c", 50, 3)]:
        offset = int(places[name]["offset"])
        assert offset % 64 == 0
        assert data[offset : offset + length] == bytes(range(start, start + length))
    match = re.fullmatch(r"key\+1\|(\d+);6;0\|(\d+);2;9", places["b"]["prepacked_0"])
    assert match is not None
    first, second = int(match[1]), int(match[2])
    assert (first % 64, second % 64) == (0, 0)
    assert data[first : first + 6] == bytes(range(20, 26))
    assert data[second : second + 2] == bytes(range(30, 32))


def test_a_model_without_a_data_file_is_left_alone(tmp_path: Path) -> None:
    alignment.align_weights(tmp_path / "none.onnx", tmp_path / "none.bin")
    assert list(tmp_path.iterdir()) == []


def test_everything_that_an_artefact_maps_is_aligned(cache_place: Path) -> None:
    """This network's artefact, as ONNX Runtime wrote it, killed the process that ran it."""
    path = DATA / "mobilenet_v3_mini.mindir"
    session = OnnxRuntimeEngine().load(source_of(ModelInput("MINDIR", path)), Options())
    (model_file,) = cache_place.glob(f"*/{artefact.MODEL}")
    graph = onnx.load(model_file, load_external_data=False).graph
    offsets = [
        int(number)
        for tensor in graph.initializer
        for entry in tensor.external_data
        for number in re.findall(r"^\d+$|(?<=\|)\d+", entry.value)
        if entry.key == "offset" or entry.key.startswith("prepacked")
    ]
    assert len(offsets) > 50
    assert [offset for offset in offsets if offset % 64] == []
    with np.load(path.with_suffix(".npz")) as file:
        (found,) = session.run([file["in0"]])
        np.testing.assert_allclose(found, file["out0"], atol=1e-4 * np.abs(file["out0"]).max())
