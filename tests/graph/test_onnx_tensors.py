"""graph/onnx_tensors.py: a tensor holds the bytes that its shape needs, or the file is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.onnx_file import load_onnx
from mindspore_lite.mindir.scan import MAPPED_BYTES


def model(*weights: TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> onnx.ModelProto:
    nodes = (*nodes, helper.make_node("Identity", ["x"], ["y"]))
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def loaded(*weights: TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> ir.Model:
    data = model(*weights, nodes=nodes).SerializeToString()
    return load_onnx(memoryview(data), {})


def held(made: ir.Model, name: str) -> np.ndarray:
    tensor = made.graph.initializers[name].const_value
    assert tensor is not None
    return tensor.numpy()


KINDS = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32,
         np.uint32, np.int64, np.uint64, np.bool_, np.complex64, np.complex128,
         ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4,
         ml_dtypes.float4_e2m1fn, ml_dtypes.uint2]  # fmt: skip


@pytest.mark.parametrize("count", [6, 3 * MAPPED_BYTES], ids=["small", "big"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: np.dtype(k).name)
def test_raw_data_of_every_type_is_read(kind: type, count: int) -> None:
    numbers = (np.arange(count) % 2).astype(kind).reshape(3, -1)
    weight = ir.serde.serialize_tensor(ir.Tensor(numbers, name="w"))
    assert weight.HasField("raw_data")
    got = held(loaded(weight), "w")
    assert got.dtype == numbers.dtype
    np.testing.assert_array_equal(got, numbers)


@pytest.mark.parametrize("number", [n for n in TensorProto.DataType.values() if n])
def test_typed_fields_of_every_type_are_read(number: int) -> None:
    special = {TensorProto.STRING: [b"a", b"b", b"c", b"d"], TensorProto.FLOAT8E8M0: [1, 1, 1, 1]}
    values: list[Any] = special.get(number, [1, 0, 1, 1])
    got = held(loaded(helper.make_tensor("w", number, [2, 2], values)), "w")
    np.testing.assert_array_equal(got.astype(object), np.array(values, object).reshape(2, 2))


def test_a_big_weight_is_a_view_of_the_file() -> None:
    numbers = np.arange(MAPPED_BYTES, dtype=np.int64)
    data = np.frombuffer(model(numpy_helper.from_array(numbers, "w")).SerializeToString(), np.uint8)
    got = held(load_onnx(memoryview(data), {}), "w")
    assert np.shares_memory(got, data)
    np.testing.assert_array_equal(got, numbers)


def test_a_big_constant_of_a_node_is_a_view_of_the_file() -> None:
    numbers = np.arange(MAPPED_BYTES, dtype=np.float32)
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(numbers))
    data = np.frombuffer(model(nodes=(node,)).SerializeToString(), np.uint8)
    made = load_onnx(memoryview(data), {})
    got = made.graph[0].attributes["value"].as_tensor().numpy()
    assert np.shares_memory(got, data)
    np.testing.assert_array_equal(got, numbers)


def test_the_words_about_a_big_weight_are_kept() -> None:
    weight = numpy_helper.from_array(np.zeros(MAPPED_BYTES, np.float32), "w")
    weight.doc_string = "said"
    weight.metadata_props.add(key="k", value="v")
    tensor = loaded(weight).graph.initializers["w"].const_value
    assert tensor is not None
    assert (tensor.doc_string, dict(tensor.metadata_props)) == ("said", {"k": "v"})


def shape(*dims: int) -> Callable[[TensorProto], None]:
    def change(tensor: TensorProto) -> None:
        tensor.dims[:] = dims

    return change


def change_type(number: int) -> Callable[[TensorProto], None]:
    def change(tensor: TensorProto) -> None:
        tensor.data_type = number

    return change


def empty(tensor: TensorProto) -> None:
    tensor.ClearField("raw_data")


def typed(tensor: TensorProto) -> None:
    empty(tensor)
    tensor.float_data.extend([1.0, 2.0])


def nameless(tensor: TensorProto) -> None:
    tensor.name = ""


WRONG = {
    "a shape too large": (shape(2, 2, 2**40), "needs 17592186044416 bytes, the file holds"),
    "a shape too small": (shape(2), "needs 8 bytes, the file holds"),
    "a negative dim": (shape(-4), "has the impossible shape [-4]"),
    "very many dims": (shape(*[1] * 40), "has the impossible shape [1, 1"),
    "an empty shape of absurd dims": (shape(0, 2**62), "has the impossible shape"),
    "another type": (change_type(TensorProto.DOUBLE), "type DOUBLE needs"),
    "no type": (change_type(0), "has element type 0, which is not one of ONNX"),
    "an unknown type": (change_type(99), "has element type 99, which is not one of ONNX"),
    "text as raw data": (change_type(TensorProto.STRING), "type STRING needs 0 bytes"),
    "no data": (empty, "numbers, the file holds 0"),
    "too few numbers": (typed, "numbers, the file holds 2"),
}


@pytest.mark.parametrize("count", [4, MAPPED_BYTES], ids=["small", "big"])
@pytest.mark.parametrize("why", WRONG)
def test_a_tensor_that_is_not_what_it_says_is_refused(why: str, count: int) -> None:
    change, words = WRONG[why]
    tensor = numpy_helper.from_array(np.ones(count, np.float32), "w")
    change(tensor)
    with pytest.raises(ModelFileError) as caught:
        loaded(tensor)
    assert words in str(caught.value)
    assert "'w'" in str(caught.value)
    # the same of a node's attribute, also inside of a sub-graph
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    with pytest.raises(ModelFileError, match="'w'"):
        loaded(nodes=(node,))
    branch = model(nodes=(node,)).graph
    with pytest.raises(ModelFileError, match="'w'"):
        loaded(nodes=(helper.make_node("If", ["x"], ["z"], then_branch=branch),))


def test_a_tensor_of_a_function_is_checked_as_well() -> None:
    tensor = numpy_helper.from_array(np.ones(4, np.float32), "w")
    tensor.dims[:] = [5]
    proto = model()
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    opsets = [helper.make_opsetid("", 21)]
    proto.functions.append(helper.make_function("d", "f", [], ["c"], [node], opsets))
    with pytest.raises(ModelFileError, match="'w'"):
        load_onnx(memoryview(proto.SerializeToString()), {})


def test_external_data_without_a_type_is_refused() -> None:
    tensor = TensorProto(name="w", dims=[4], data_location=TensorProto.EXTERNAL)
    with pytest.raises(ModelFileError, match="'w' has element type 0"):
        loaded(tensor)


def test_weights_without_a_name_of_their_own_are_refused() -> None:
    weight = numpy_helper.from_array(np.ones(4, np.float32), "w")
    with pytest.raises(ModelFileError, match="two weights have the name 'w'"):
        loaded(weight, weight)
    with pytest.raises(ModelFileError, match="a weight has no name"):
        loaded(numpy_helper.from_array(np.ones(4, np.float32)))


def test_a_sparse_weight_is_refused() -> None:
    proto = model()
    values = numpy_helper.from_array(np.ones(1, np.float32), "sparse")
    at = numpy_helper.from_array(np.zeros(1, np.int64), "at")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, at, [10]))
    with pytest.raises(ModelFileError, match="'sparse' is stored sparse"):
        load_onnx(memoryview(proto.SerializeToString()), {})


@pytest.mark.parametrize("kind", ["TENSOR", "GRAPH", "SPARSE_TENSOR", "TYPE_PROTO"])
def test_an_attribute_without_what_its_type_promises_is_refused(kind: str) -> None:
    proto = helper.make_model(
        helper.make_graph([helper.make_node("Constant", [], ["y"])], "g", [], [])
    )
    proto.graph.output.add(name="y")
    number = onnx.AttributeProto.AttributeType.Value(kind)
    proto.graph.node[0].attribute.add(name="value", type=number)
    with pytest.raises(ModelFileError, match=f"attribute 'value' of type {kind} holds none"):
        load_onnx(memoryview(proto.SerializeToString()), {})
