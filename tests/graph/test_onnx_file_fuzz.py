"""Random and damaged ONNX files: loading ends in our error, or in tensors that can be read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from fuzzing.mutate_proto import mutated
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.onnx_file import external_files, load_onnx

FUZZ = settings(max_examples=200, deadline=None, derandomize=True)


def _proto() -> onnx.ModelProto:
    """A bit of everything: weights large, small, outside and typed, constants, a branch."""
    big, small = np.ones((40, 40), np.float32), np.ones((2, 3), np.float32)
    outside = numpy_helper.from_array(small, "outside")
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "data", "offset": "0", "length": "24"}.items():
        outside.external_data.add(key=key, value=value)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 3])
    branch = helper.make_graph([helper.make_node("Identity", ["i"], ["o"])], "b", [], [out],
                               [numpy_helper.from_array(small, "i")])  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(big, "held")),
        helper.make_node("MatMul", ["x", "big"], ["m"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 40])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(big, "big"),
            outside,
            helper.make_tensor("typed", TensorProto.INT64, [3], [1, 2, 3]),
            numpy_helper.from_array(np.array(True), "flag"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


GOOD = _proto().SerializeToString()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    (made / "data").write_bytes(bytes(24))
    return made


def loaded(data: memoryview, folder: Path) -> ir.Model:
    side = external_files(data, folder)
    return load_onnx(data, {name: file.load() for name, file in side.items()})


def attempt(data: bytes, folder: Path) -> None:
    view = memoryview(data)
    try:
        model = loaded(view, folder)
    except ModelFileError as exc:
        assert str(exc)
        return
    for graph in model.graphs():
        for value in graph.initializers.values():
            assert value.const_value is not None
            assert value.const_value.numpy().shape == tuple(value.const_value.shape)
        for node in graph:
            for attr in node.attributes.values():
                if isinstance(attr, ir.Attr) and attr.type == ir.AttributeType.TENSOR:
                    attr.as_tensor().numpy()


def test_the_undamaged_file_loads(folder: Path) -> None:
    model = loaded(memoryview(GOOD), folder)
    assert sorted(model.graph.initializers) == ["big", "flag", "outside", "typed"]


@FUZZ
@given(data=st.binary(max_size=400))
def test_random_bytes_end_in_our_error(folder: Path, data: bytes) -> None:
    attempt(data, folder)


@FUZZ
@given(payload=st.binary(max_size=120))
def test_random_bytes_inside_a_graph_end_in_our_error(folder: Path, payload: bytes) -> None:
    attempt(b"\x3a" + bytes([len(payload)]) + payload, folder)


@pytest.mark.parametrize("seed", range(20))
def test_files_with_damage_end_in_our_error_or_a_model(folder: Path, seed: int) -> None:
    rng = Random(seed)
    for _ in range(20):
        attempt(mutated(GOOD, rng, onnx.ModelProto), folder)
