"""mindir/legacy.py: the encoding of MindSpore 1.1 to 1.6, in whole nets and piece by piece."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.legacy_builder import encode_legacy, legacy_value
from support.mindir_builder import Net, tensor, tensor_type
from support.running import run

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import attributes, legacy
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.read import read

A = pb.Attribute
RNG = np.random.default_rng(5)
CONV = {
    "pad_mode": "pad", "pad": (1, 1, 1, 1), "pad_list": (1, 1, 1, 1), "stride": (1, 1, 2, 2),
    "dilation": (1, 1, 1, 1), "group": 1, "format": "NCHW", "kernel_size": (3, 3), "mode": 1,
    "out_channel": 4, "input_names": ["x", "w"], "output_names": ["output"], "offset_a": 0,
}  # fmt: skip


def old(model: r.Model) -> r.Model:
    """Written as an old release did, and read."""
    return read(memoryview(encode_legacy(model)))


# --- whole nets -------------------------------------------------------------------------------


def conv_bn_relu() -> tuple[r.Model, list[np.ndarray]]:
    net = Net("7_6_5_construct.3")
    x = net.input("x", (1, 3, 8, 8))
    monad = net.monad()
    w = net.weight("conv.weight", RNG.normal(size=(4, 3, 3, 3)).astype(np.float32))
    loaded = net.call("Load", w, monad, type=tensor_type((4, 3, 3, 3)))
    conv = net.call("Conv2D", x, loaded, type=tensor_type((1, 4, 4, 4)), scope="Default/c", **CONV)
    stats = [net.weight(f"bn.{n}", RNG.uniform(1, 2, 4).astype(np.float32)) for n in "gbmv"]
    many = r.SequenceType(tuple(tensor_type((1, 4, 4, 4)) for _ in range(5)))
    norm = net.call("BatchNorm", conv, *stats, type=many, epsilon=1e-5, is_training=False,
                    momentum=0.1, format="NCHW")  # fmt: skip
    first = net.call("TupleGetItem", norm, net.constant(0), type=tensor_type((1, 4, 4, 4)))
    out = net.call("ReLU", first, type=tensor_type((1, 4, 4, 4)))
    after = net.call("UpdateState", monad, loaded, type=r.OtherType("UMonadType"))
    kept = net.call("Depend", out, after, type=tensor_type((1, 4, 4, 4)))
    return net.model(kept), [RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)]


def dense() -> tuple[r.Model, list[np.ndarray]]:
    net = Net()
    w = net.weight("fc.weight", RNG.normal(size=(5, 3)).astype(np.float32))
    sides = {"transpose_a": False, "transpose_b": True, "transpose_x1": False, "transpose_x2": True}
    product = net.call("MatMul", net.input("x", (2, 3)), w, type=tensor_type((2, 5)), **sides)
    bias = net.weight("fc.bias", RNG.normal(size=5).astype(np.float32))
    out = net.call("BiasAdd", product, bias, type=tensor_type((2, 5)), format="NCHW")
    soft = net.call("Softmax", out, type=tensor_type((2, 5)), axis=(-1,))
    return net.model(soft), [RNG.normal(size=(2, 3)).astype(np.float32)]


def tuple_outputs() -> tuple[r.Model, list[np.ndarray]]:
    net = Net()
    x = net.input("x", (2, 6))
    parts = r.SequenceType((tensor_type((2, 3)), tensor_type((2, 3))))
    split = net.call("Split", x, type=parts, axis=1, output_num=2)
    a, b = (net.call("TupleGetItem", split, net.constant(i), type=tensor_type((2, 3)))
            for i in (0, 1))  # fmt: skip
    inner = net.call("MakeTuple", a, x, type=r.SequenceType((tensor_type((2, 3)),) * 2))
    nested = r.SequenceType((parts, tensor_type((2, 3))))
    return net.model(net.call("MakeTuple", inner, b, type=nested)), [
        RNG.normal(size=(2, 6)).astype(np.float32)
    ]


def reshape() -> tuple[r.Model, list[np.ndarray]]:
    net = Net()
    x = net.input("x", (2, 6))
    flat = net.call("Reshape", x, net.constant((3, 4)), type=tensor_type((3, 4)))
    turned = net.call("Transpose", flat, net.constant((1, 0)), type=tensor_type((4, 3)))
    shaped = net.call("BroadcastTo", turned, type=tensor_type((2, 4, 3)), shape=(2, 4, 3))
    return net.model(shaped), [RNG.normal(size=(2, 6)).astype(np.float32)]


def cast() -> tuple[r.Model, list[np.ndarray]]:
    net = Net()
    x = net.input("x", (4,))
    whole = net.call("Cast", x, net.constant(BY_NAME["int32"]), type=tensor_type((4,), np.int32),
                     SrcT=BY_NAME["float32"], DstT=BY_NAME["int32"])  # fmt: skip
    back = net.call("Cast", whole, net.constant(BY_NAME["float32"]), type=tensor_type((4,)))
    total = net.call("Add", back, net.constant(np.float32([1, 2, 3, 4])), type=tensor_type((4,)))
    return net.model(total), [np.float32([1.5, -2.5, 3.25, 0])]


def constant_tuple() -> tuple[r.Model, list[np.ndarray]]:
    """A tuple of tensors as one constant, taken apart by TupleGetItem and joined by Concat."""
    net = Net()
    pair = net.constant((np.ones((2, 2), np.float32), np.full((2, 1), 3, np.float32)))
    first = net.call("TupleGetItem", pair, net.constant(0), type=tensor_type((2, 2)))
    joined = net.call("Concat", pair, type=tensor_type((2, 3)), axis=1, inputNums=2)
    out = net.call("MatMul", first, joined, transpose_a=False, transpose_b=False)
    return net.model(net.call("Add", out, net.input("x", (2, 3)))), [np.ones((2, 3), np.float32)]


def called_graph() -> tuple[r.Model, list[np.ndarray]]:
    inner = Net("9_8_inner.7")
    doubled = inner.call("Add", inner.input("v", (2,)), "9_8_inner.7:v", type=tensor_type((2,)))
    net = Net()
    out = net.call(r.GraphRef("9_8_inner.7"), net.input("x", (2,)), type=tensor_type((2,)))
    return net.model(out, functions=[inner.graph(doubled)]), [np.float32([1, 2])]


NETS = [conv_bn_relu, dense, tuple_outputs, reshape, cast, constant_tuple, called_graph]


@pytest.mark.parametrize("make", NETS, ids=lambda f: f.__name__)
def test_an_old_file_computes_what_the_records_say(make: Any) -> None:
    model, inputs = make()
    got, want = run(old(model), *inputs), run(model, *inputs)
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def rounded(target: Any) -> Any:
    """Files keep float32."""
    held = getattr(target, "attributes", {})
    return type(target), {k: np.float32(v) if type(v) is float else v for k, v in held.items()}


@pytest.mark.parametrize("make", NETS, ids=lambda f: f.__name__)
def test_an_old_file_reads_back_as_the_records_it_was_made_of(make: Any) -> None:
    model, _ = make()
    found = old(model)
    assert found.graph.inputs == model.graph.inputs
    assert found.graph.outputs == model.graph.outputs
    for one, other in zip(found.graph.nodes, model.graph.nodes, strict=True):
        assert type(one) is type(other)
        if isinstance(one, r.Constant):
            assert one == other
        else:
            assert (one.name, one.inputs, one.scope) == (other.name, other.inputs, other.scope)
            assert rounded(one.target) == rounded(other.target)
    assert (found.ir_version, found.producer_version) == ("0.1.0", "1.5.0")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from([encode_legacy(make()[0]) for make in NETS]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_a_damaged_old_file_ends_in_our_error_or_a_model(
    data: bytes, changes: list[tuple[float, int]]
) -> None:
    spoilt = bytearray(data)
    for place, byte in changes:
        spoilt[int(place * (len(spoilt) - 1))] = byte
    with contextlib.suppress(LiteError):
        from_mindir(read(memoryview(bytes(spoilt))))


# --- values -----------------------------------------------------------------------------------

VALUES = [
    True, False, 3, -(2**40), 0.5, "same", "", None, r.Monad.MEMORY, r.Monad.IO, (), [], (1,),
    (1, 2, 3), [1, 2], (0.5, 2.0), ("a", "b"), [True, False], (True,), ((1, 2), (3,)), (((),),),
    ((), (1,)), ((1,), 2, ((3, 4), 5)), [["x"], ["y", "z"]], BY_NAME["float16"],
    (BY_NAME["int8"], BY_NAME["float32"]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_constant_survives(value: Any) -> None:
    attr = A(name="value")
    legacy_value(attr, value)
    found = attributes.value(attr)
    assert found == value
    assert type(found) is type(value)


def test_tensors_survive_alone_and_in_tuples() -> None:
    one, two = tensor("value0", np.ones((2, 3), np.float16)), tensor("value0", np.int64([7]))
    for value in (one, (one, two), (two, (one, one))):
        attr = A(name="value")
        legacy_value(attr, value)
        assert attributes.value(attr) == value


@pytest.mark.parametrize(
    ("attr", "wanted"),
    [
        (A(ref_attr_name="scalar:Tuple[value1,value2,]", type=A.INT64, ints=[1, 2]), (1, 2)),
        (A(ref_attr_name="scalar:Tuple[]"), ()),
        (A(ref_attr_name="scalar:value0", type=A.INT32, i=-4), -4),
        (A(ref_attr_name="scalar:value0", type=A.UINT8, i=4), 4),
        (A(ref_attr_name="scalar:value0", type=A.DOUBLE, d=0.1), 0.1),
        (A(ref_attr_name="scalar:value0", type=A.STRING, s=b"\xff"), "\ufffd"),
        (A(ref_attr_name="scalar:Tuple[value1,],", type=A.DOUBLE, doubles=[0.1]), (0.1,)),
        # (5, True): both are ints, and the type is that of the last one
        (A(ref_attr_name="scalar:Tuple[value1,value2,],", type=A.BOOL, ints=[5, 1]), (5, 1)),
        (A(ref_attr_name="Monad:UMonad[]"), r.Monad.MEMORY),
        (A(ref_attr_name="Monad:IOMonad[]"), r.Monad.IO),
        (A(ref_attr_name="type:tensor0", tensors=[pb.Tensor(name="tensor0", data_type=1)]),
         BY_NAME["float32"]),
    ],
    ids=lambda v: str(getattr(v, "ref_attr_name", "")),
)  # fmt: skip
def test_other_spellings_are_read(attr: pb.Attribute, wanted: Any) -> None:
    assert attributes.value(attr) == wanted


WRONG = [
    A(ref_attr_name="scalar:Tuple[value1,value2,],", type=A.INT64, ints=[1]),
    A(ref_attr_name="scalar:Tuple[value1,],", type=A.INT64, ints=[1, 2]),
    A(ref_attr_name="scalar:Tuple[value1,],"),
    A(ref_attr_name="scalar:Tuple[value1,", type=A.INT64, ints=[1]),
    A(ref_attr_name="scalar:Tuple[value1,],],", type=A.INT64, ints=[1]),
    A(ref_attr_name="scalar:Tuple[],Tuple[],"),
    A(ref_attr_name="scalar:Tuple[[value1,],", type=A.INT64, ints=[1]),
    A(ref_attr_name="scalar:" + "Tuple[" * 40 + "]," * 40),
    A(ref_attr_name="scalar:" + "Tuple[" * 500_000),
    A(ref_attr_name="scalar:Tuple[value1,value2,],", type=A.FLOAT, ints=[1], floats=[2]),
    A(ref_attr_name="scalar:value0", type=A.TENSORS),
    A(ref_attr_name="scalar:value0"),
    A(ref_attr_name="tensor:value0", type=A.TENSORS),
    A(ref_attr_name="tensor:value0", tensors=[pb.Tensor(data_type=1, raw_data=b"\0" * 5)]),
    A(ref_attr_name="type:value0", tensors=[pb.Tensor(data_type=99)]),
    A(ref_attr_name="Monad:Other"),
    A(ref_attr_name="something"),
    A(ref_attr_name="shape:shape1,"),
]


@pytest.mark.parametrize("attr", WRONG, ids=lambda a: a.ref_attr_name[:40])
def test_a_value_that_does_not_fit_its_description_is_refused(attr: pb.Attribute) -> None:
    with pytest.raises(ModelFileError) as caught:
        attributes.value(attr)
    assert len(str(caught.value)) < 400


# --- types ------------------------------------------------------------------------------------

F32 = pb.Tensor(name="shape1", data_type=1, dims=[2, -1])
I64 = pb.Tensor(name="shape2", data_type=7)
NUMBER = pb.Tensor(name="shape1", data_type=13, dims=[1])
TYPES = [
    (A(ref_attr_name="shape:shape1,", tensors=[F32]), tensor_type((2, -1))),
    (A(ref_attr_name="shape:"), None),
    (A(ref_attr_name="shape:", type=A.BOOL), None),
    (A(ref_attr_name="shape:Tuple[shape1,],", type=A.BOOL, tensors=[F32]), None),
    (A(ref_attr_name="shape:Tuple[],"), r.SequenceType(())),
    (A(ref_attr_name="shape:Tuple[shape1,Tuple[shape2,],],", tensors=[F32, I64]),
     r.SequenceType((tensor_type((2, -1)), r.SequenceType((tensor_type((), np.int64),))))),
    (A(ref_attr_name="shape:Tuple[shape1,shape2],", tensors=[F32, I64]),
     r.SequenceType((tensor_type((2, -1)), tensor_type((), np.int64)))),
    (A(ref_attr_name="shape:UMonadType,"), r.OtherType("UMonad")),
    (A(ref_attr_name="shape:shape1,", tensors=[NUMBER]), r.OtherType("number")),
    (A(ref_attr_name="shape:Func,", type=A.GRAPH), r.OtherType("Func")),
]  # fmt: skip


@pytest.mark.parametrize(("attr", "wanted"), TYPES, ids=[a.ref_attr_name for a, _ in TYPES])
def test_every_kind_of_type_is_read(attr: pb.Attribute, wanted: Any) -> None:
    assert legacy.is_type(attr)
    assert attributes.type_of(attr) == wanted


def test_a_tuple_as_input_is_seen() -> None:
    net = Net()
    net.input("pair", type=r.SequenceType((tensor_type((2,)), tensor_type((2,)))))
    (found,) = old(net.model(net.constant(1))).graph.inputs
    assert isinstance(found.type, r.SequenceType)
