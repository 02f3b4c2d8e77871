"""Records that are written and read again are the same records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mindir_builder import Net, encode, tensor, tensor_type

from mindspore_lite.mindir import attributes
from mindspore_lite.mindir import encode as encoding
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.read import read

_SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(width=32, allow_nan=False)
    | st.text()
    | st.none()
    | st.sampled_from(list(r.Monad))
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


def _round_trip(model: r.Model) -> r.Model:
    return read(memoryview(encode(model)))


@given(_VALUES)
def test_a_constant_comes_back_as_it_was(value: Any) -> None:
    attr = pb.Attribute(name="value")
    encoding.value(attr, value)
    found = attributes.value(attr)
    assert found == value
    assert type(found) is type(value)


def test_a_dictionary_comes_back() -> None:
    attr = pb.Attribute(name="value")
    encoding.value(attr, {"axis": 1, "names": ("a", "b")})
    assert attributes.value(attr) == {"axis": 1, "names": ("a", "b")}


@pytest.mark.parametrize(
    "kind",
    [
        tensor_type((2, -1)),
        tensor_type(None, np.int32),
        tensor_type((), np.bool_, is_scalar=True),
        tensor_type((1,), ref_key="w"),
        r.SequenceType((tensor_type((2,)), r.SequenceType((tensor_type(()),)))),
        r.SequenceType((), dynamic_length=True),
        r.OtherType("UMONAD"),
    ],
    ids=str,
)
def test_a_type_comes_back_as_it_was(kind: r.Type) -> None:
    attr = pb.Attribute(name="shape")
    encoding.type_of(attr, kind)
    assert attributes.type_of(attr) == kind


def _model() -> r.Model:
    net = Net("main")
    x = net.input("x", (-1, 3), given_name="image:0")
    y = net.call("Mul", x, net.weight("scale", np.ones(3, np.float32)), type=tensor_type((-1, 3)))
    z = net.call("Concat", net.tuple(x, y), net.constant(1), scope="block/concat", axis=1)
    inner = Net("inner")
    function = inner.graph(inner.call("ReLU", inner.input("a", (2,))))
    return net.model(z, functions=[function], user_info={"author": "me"}, ir_version="1.1")


def test_a_whole_model_comes_back_as_it_was() -> None:
    model = _model()
    found = _round_trip(model)
    assert found.functions == model.functions
    assert found.graph.inputs == model.graph.inputs
    assert found.graph.nodes == model.graph.nodes
    assert found.graph.outputs == model.graph.outputs
    assert [w.name for w in found.graph.parameters] == ["main:scale"]
    assert found.user_info == {"author": "me"}
    assert (found.producer, found.producer_version) == ("MindSpore", "2.10.0")
    assert (found.ir_version, found.mind_ir_version) == ("1.1", 3)


def test_the_names_that_outputs_had_in_the_source_come_back() -> None:
    net = Net("main")
    x = net.input("x", (2,))
    first, second = net.call("ReLU", x), net.call("Neg", x)
    graph = r.Graph("main", tuple(net.inputs), tuple(net.nodes), (first, second))
    named = r.Model(r.Graph(**{**graph.__dict__, "given_outputs": ("a:0", "b:0")}), producer="p")
    assert _round_trip(named).graph.given_outputs == ("a:0", "b:0")
    assert _round_trip(r.Model(graph, producer="p")).graph.given_outputs == ()


def test_equal_operators_without_attributes_are_stored_once() -> None:
    net = Net()
    x = net.input("x", (2,))
    relus = net.call("ReLU", net.call("ReLU", x))
    proto = encoding.skeleton(net.model(net.call("Softmax", relus, axis=(0,))))
    assert [p.op_type for p in proto.primitives] == ["ReLU", "Softmax"]


def test_weights_are_not_part_of_the_skeleton() -> None:
    net = Net()
    net.weight("w", np.ones(3, np.float32))
    assert not encoding.skeleton(net.model(net.input("x", (2,)))).graph.parameter


def test_a_tensor_is_written_with_or_without_its_data() -> None:
    held = tensor("w", np.asarray([1, 2], np.int16))
    assert encoding.tensor(pb.Tensor(), held).raw_data == b"\x01\x00\x02\x00"
    assert not encoding.tensor(pb.Tensor(), held, with_data=False).HasField("raw_data")
