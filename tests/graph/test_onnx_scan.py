"""graph/onnx_scan.py: big tensors are cut out of an ONNX file, whatever else is in it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.onnx_scan import Split, locations, split_tensors
from mindspore_lite.mindir.scan import MAPPED_BYTES, Span

BIG = np.arange(MAPPED_BYTES, dtype=np.float32)
SMALL = BIG[:8]


def model(*weights: np.ndarray, constants: tuple[np.ndarray, ...] = ()) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Constant", [], [f"c{i}"], value=numpy_helper.from_array(c, f"c{i}"))
        for i, c in enumerate(constants)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [],
        [helper.make_tensor_value_info("c0", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    return helper.make_model(graph)


def split_of(proto: onnx.ModelProto) -> tuple[memoryview, Split, onnx.ModelProto]:
    data = memoryview(proto.SerializeToString())
    split = split_tensors(data)
    return data, split, onnx.ModelProto.FromString(split.skeleton)


def bytes_at(data: memoryview, span: Span) -> bytes:
    return bytes(data[span[0] : span[1]])


def test_only_big_weights_are_cut_out_and_their_numbers_are_told() -> None:
    data, split, left = split_of(model(SMALL, BIG, SMALL, BIG * 2))
    assert list(split.weights) == [1, 3]
    assert bytes_at(data, split.weights[1]) == BIG.tobytes()
    assert bytes_at(data, split.weights[3]) == (BIG * 2).tobytes()
    assert [t.raw_data for t in left.graph.initializer] == [SMALL.tobytes(), b""] * 2
    assert len(split.skeleton) < MAPPED_BYTES


def test_a_big_constant_of_a_node_is_cut_out() -> None:
    data, split, left = split_of(model(constants=(SMALL, BIG)))
    assert split.weights == {}
    assert {k: bytes_at(data, v) for k, v in split.constants.items()} == {(1, 0): BIG.tobytes()}
    assert left.graph.node[0].attribute[0].t.raw_data == SMALL.tobytes()


def test_everything_else_stays_as_it_is() -> None:
    proto = model(BIG, constants=(BIG,))
    proto.metadata_props.add(key="k", value="v")
    _, split, left = split_of(proto)
    assert (len(split.weights), len(split.constants)) == (1, 1)
    proto.graph.initializer[0].raw_data = b""
    proto.graph.node[0].attribute[0].t.raw_data = b""
    assert left == proto


def test_tensors_inside_of_sub_graphs_are_left_to_protobuf() -> None:
    inner = model(BIG, constants=(BIG,)).graph
    proto = model()
    proto.graph.node.append(
        helper.make_node("If", ["c"], ["c0"], then_branch=inner, else_branch=inner)
    )
    data, split, _ = split_of(proto)
    assert (split.weights, split.constants) == ({}, {})
    assert split.skeleton == data


def test_a_graph_in_pieces_counts_its_weights_on() -> None:
    pieces = [model(BIG), model(SMALL, BIG)]
    data = memoryview(b"".join(p.SerializeToString() for p in pieces))
    split = split_tensors(data)
    assert list(split.weights) == [0, 2]
    assert len(onnx.ModelProto.FromString(split.skeleton).graph.initializer) == 3


@pytest.mark.parametrize("last", [SMALL, BIG * 3], ids=["small", "big"])
def test_of_a_field_given_twice_the_last_one_counts(last: np.ndarray) -> None:
    """That is how protobuf reads it."""

    def held(array: np.ndarray) -> bytes:
        return onnx.TensorProto(raw_data=array.tobytes()).SerializeToString()

    tensor = onnx.TensorProto.FromString(held(BIG) + held(last))
    assert tensor.raw_data == last.tobytes()

    def block(number: int, payload: bytes) -> bytes:
        size, length = len(payload), b""
        while size >= 0x80:
            size, length = size >> 7, length + bytes([size & 0x7F | 0x80])
        return bytes([number << 3 | 2]) + length + bytes([size]) + payload

    data = memoryview(block(7, block(5, held(BIG) + held(last))))
    split = split_tensors(data)
    (left,) = onnx.ModelProto.FromString(split.skeleton).graph.initializer
    got = bytes_at(data, split.weights[0]) if split.weights else left.raw_data
    assert got == last.tobytes()


@pytest.mark.parametrize("kept", [1, 0.5, 0.1])
def test_a_file_that_was_cut_off_is_refused(kept: float) -> None:
    data = model(BIG).SerializeToString()
    with pytest.raises(ModelFileError, match="truncated or damaged"):
        split_tensors(memoryview(data[: int((len(data) - 1) * kept)]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 2 * MAPPED_BYTES), max_size=5))
def test_no_byte_is_lost(sizes: list[int]) -> None:
    weights = [np.full(size, number, np.uint8) for number, size in enumerate(sizes)]
    data, split, left = split_of(model(*weights))
    for number, (weight, tensor) in enumerate(zip(weights, left.graph.initializer, strict=True)):
        span = split.weights.get(number)
        got = tensor.raw_data if span is None else bytes_at(data, span)
        assert got == weight.tobytes()


def test_locations_of_weights_are_found() -> None:
    proto = model(SMALL, SMALL)
    proto.graph.initializer[1].external_data.add(key="location", value="data.bin")
    proto.graph.initializer[1].external_data.add(key="offset", value="8")
    assert list(locations(memoryview(proto.SerializeToString()))) == ["data.bin"]
