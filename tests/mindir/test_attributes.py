"""mindir/attributes.py: every encoding of constants and types, and everything wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mindir_builder import tensor

from mindspore_lite.core.dtypes import BY_NAME, TABLE
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import attributes
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.encode import value as fill_value
from mindspore_lite.mindir.records import Monad, OtherType, SequenceType, Tensor, TensorType

A = pb.Attribute
F32 = BY_NAME["float32"]


def attr(**fields: Any) -> pb.Attribute:
    return A(name="value", **fields)


SCALARS = [
    (attr(type=A.BOOL, i=1), True),
    (attr(type=A.BOOL, i=0), False),
    (attr(type=A.BOOL), False),
    (attr(type=A.INT8, i=-3), -3),
    (attr(type=A.INT16, i=300), 300),
    (attr(type=A.INT32, i=-(2**31)), -(2**31)),
    (attr(type=A.INT64, i=2**62), 2**62),
    (attr(type=A.UINT8, i=255), 255),
    (attr(type=A.UINT16, i=65535), 65535),
    (attr(type=A.UINT32, i=2**32 - 1), 2**32 - 1),
    (attr(type=A.UINT64, i=5), 5),
    (attr(type=A.FLOAT, f=0.5), 0.5),
    (attr(type=A.DOUBLE, d=0.1), 0.1),
    (attr(type=A.STRING, s=b"NCHW"), "NCHW"),
    (attr(type=A.STRING, s="ф".encode()), "ф"),
    (attr(type=A.STRING, s=b"\xff"), "�"),
    (attr(type=A.NONE), None),
    (attr(type=A.TYPE_NULL), None),
    (attr(type=A.UMONAD), Monad.MEMORY),
    (attr(type=A.IOMONAD), Monad.IO),
]


@pytest.mark.parametrize(("given", "wanted"), SCALARS, ids=lambda v: str(v)[:30].split("\n")[0])
def test_a_scalar_at_top_level_uses_the_singular_field(given: pb.Attribute, wanted: Any) -> None:
    found = attributes.value(given)
    assert found == wanted
    assert type(found) is type(wanted)


INSIDE = [
    (A(type=A.BOOL, ints=[1]), True),
    (A(type=A.INT32, ints=[-7]), -7),
    (A(type=A.UINT64, ints=[7]), 7),
    (A(type=A.FLOAT, floats=[0.25]), 0.25),
    (A(type=A.DOUBLE, doubles=[0.1]), 0.1),
    (A(type=A.STRING, strings=[b"same"]), "same"),
    (A(type=A.TUPLE), ()),
    (A(type=A.LIST), []),
    (A(type=A.NONE), None),
    (A(type=A.UMONAD), Monad.MEMORY),
]


@pytest.mark.parametrize(("item", "wanted"), INSIDE, ids=lambda v: str(v)[:30].split("\n")[0])
def test_a_scalar_inside_a_tuple_uses_the_repeated_field(item: pb.Attribute, wanted: Any) -> None:
    assert attributes.value(attr(type=A.TUPLE, values=[item])) == (wanted,)
    assert attributes.value(attr(type=A.LIST, values=[item, item])) == [wanted, wanted]


def test_tuples_nest_and_keep_their_kind() -> None:
    value = (1, [2.5, ("a", None, True)], (), {"k": (3,), "e": []})
    made = attr()
    fill_value(made, value)
    assert attributes.value(made) == value


def test_an_entry_of_a_dict_without_a_value_is_left_out() -> None:
    made = attr(type=A.DICT, values=[A(name="empty"), A(name="k", values=[A(type=A.NONE)])])
    assert attributes.value(made) == {"k": None}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_tensor_of_every_type_is_read(row: Any) -> None:
    raw = np.arange(6).astype(row.numpy)
    proto = pb.Tensor(name="t", data_type=row.onnx, dims=[2, 3], raw_data=raw.tobytes())
    found = attributes.value(attr(type=A.TENSORS, tensors=[proto]))
    assert isinstance(found, Tensor)
    assert (found.dtype, found.shape) == (row, (2, 3))
    np.testing.assert_array_equal(found.numpy(), raw.reshape(2, 3))


def test_a_tensor_without_data_is_a_bare_dtype() -> None:
    proto = pb.Tensor(name="tensor0", data_type=10)
    assert attributes.value(attr(type=A.TENSORS, tensors=[proto])) is BY_NAME["float16"]


@pytest.mark.parametrize("dims", [[0], [3, 0, 2], [0, 2**31]])
def test_an_empty_tensor_may_lack_data_and_can_be_an_array(dims: list[int]) -> None:
    proto = pb.Tensor(data_type=1, dims=dims)
    found = attributes.value(attr(type=A.TENSORS, tensors=[proto]))
    assert isinstance(found, Tensor)
    assert found.numpy().size == 0


def test_the_array_of_a_tensor_cannot_be_written() -> None:
    assert not tensor("t", np.ones(2, np.float32)).numpy().flags.writeable


WRONG = [
    (A(type=A.INT64, ints=[1, 2]), "holds 2 scalars, wanted one"),
    (A(type=A.FLOAT, floats=[1, 2, 3]), "holds 3 scalars, wanted one"),
    (A(type=A.STRING, strings=[b"a", b"b"]), "holds 2 scalars"),
    (A(type=A.CLASS_TYPE, s=b"x"), "has a value of type CLASS_TYPE"),
    (A(type=A.NAME_SPACE), "has a value of type NAME_SPACE"),
    (A(type=A.SYMBOL), "has a value of type SYMBOL"),
    (A(type=A.GRAPH), "has a value of type GRAPH"),
    (A(type=A.TENSORS), "has a value of type TENSORS"),
    (A(type=A.TENSORS, tensors=[pb.Tensor(), pb.Tensor()]), "has a value of type TENSORS"),
    (A(), "has a value of type"),
    (A(ref_attr_name="scalar:value0"), "described as 'scalar:value0', which does not fit"),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=8)]), "element type 8"),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=18)]), "element type 18"),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=-5)]), "element type -5"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[w for _, w in WRONG])
def test_a_value_that_cannot_be_read_is_refused(given: pb.Attribute, words: str) -> None:
    given.name = "pads"
    with pytest.raises(ModelFileError) as caught:
        attributes.value(given)
    assert words in str(caught.value)


def nested(depth: int) -> pb.Attribute:
    made = A(type=A.TUPLE)
    for _ in range(depth - 1):
        made = A(type=A.TUPLE, values=[made])
    return made


def test_tuples_may_nest_as_deep_as_the_limit_and_no_deeper() -> None:
    found = attributes.value(nested(attributes.MAX_DEPTH))
    depth = 0
    while found != ():
        found, depth = found[0], depth + 1
    assert depth == attributes.MAX_DEPTH - 1
    with pytest.raises(ModelFileError, match="nested deeper than 32 levels"):
        attributes.value(nested(attributes.MAX_DEPTH + 1))
    with pytest.raises(ModelFileError, match="nested deeper than 32 levels"):
        attributes.type_of(nested(attributes.MAX_DEPTH + 1))


def test_values_leaves_out_what_cannot_be_read() -> None:
    good, bad = A(name="axis", type=A.INT64, i=1), A(name="odd", type=A.SYMBOL)
    assert attributes.values([bad, good]) == {"axis": 1}


TYPES = [
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1, dims=[2, -1])]), TensorType(F32, (2, -1))),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1)]), TensorType(F32, ())),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1, dims=[-2])]), TensorType(F32, None)),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1, dims=[2], ref_key="k")]),
     TensorType(F32, (2,), ref_key="k")),
    (A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1, dims=[-2], ref_key="k")]),
     TensorType(F32, None, ref_key="k")),
    (A(type=A.SCALAR, tensors=[pb.Tensor(data_type=7, dims=[0])]),
     TensorType(BY_NAME["int64"], (), is_scalar=True)),
    (A(type=A.TUPLE, values=[A(type=A.NONE), A(type=A.TENSORS, tensors=[pb.Tensor(data_type=1)])]),
     SequenceType((OtherType("NONE"), TensorType(F32, ())))),
    (A(type=A.LIST, seq_info=pb.SeqInfo(is_dyn_len=True)), SequenceType((), dynamic_length=True)),
    (A(type=A.UMONAD), OtherType("UMONAD")),
    (A(type=A.FUNCGRAPHCLOSURE, s=b"g"), OtherType("FUNCGRAPHCLOSURE")),
    (A(type=A.BOOL), OtherType("BOOL")),  # old files: the result of a Depend
    (A(type=A.TENSORS), OtherType("TENSORS")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), TYPES, ids=[str(w)[:40] for _, w in TYPES])
def test_every_kind_of_type_is_read(given: pb.Attribute, wanted: object) -> None:
    assert attributes.type_of(given) == wanted
