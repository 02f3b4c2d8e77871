"""The encoding of MindSpore 1.6 and older, where `ref_attr_name` says what other fields mean.

scalar:value0                    one number or text, in the singular field of its type
scalar:Tuple[value1,value2,],    a tuple (or List[...]), its items in the repeated fields
tensor:value0, type:value0       a tensor, or with type: only an element type
none, Monad:UMonad, Monad:IOMonad
shape:shape1,                    the type of a node's result, as a tensor without data
shape:Tuple[shape1,UMonadType,], the types of a tuple
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.records import Monad, OtherType, SequenceType, TensorType, Type
from mindspore_lite.mindir.tensors import dtype_of, tensor, tensor_type, utf8

MAX_DEPTH = 32  # nested tuples; real files stay below 5

_A = pb.Attribute
_TOKEN = re.compile(r"(Tuple|List)\[|\],?|([^\[\],]+),?")
_NOTHING = object()
_SINGLE = {
    **dict.fromkeys((_A.BOOL, _A.INT8, _A.INT16, _A.INT32, _A.INT64), "i"),
    **dict.fromkeys((_A.UINT8, _A.UINT16, _A.UINT32, _A.UINT64), "i"),
    _A.FLOAT: "f",
    _A.DOUBLE: "d",
    _A.STRING: "s",
}


def value(attr: pb.Attribute) -> Any:
    """The constant that an attribute holds."""
    form, _, text = utf8(attr.ref_attr_name).partition(":")
    if form == "scalar" and ("Tuple[" in text or "List[" in text):
        items = _items(attr)
        found = _nested(attr, text, lambda _: next(items, _NOTHING), _sequence)
        if next(items, _NOTHING) is not _NOTHING:
            raise _unclear(attr)
        return found
    if form == "scalar" and attr.type in _SINGLE:
        return _plain(attr.type, getattr(attr, _SINGLE[attr.type]))
    if form in ("tensor", "type") and len(attr.tensors) == 1:
        return _tensor(attr.tensors[0])
    if form == "none":
        return None
    if form == "Monad" and text.startswith(("UMonad", "IOMonad")):
        return Monad.MEMORY if text.startswith("U") else Monad.IO
    raise _unclear(attr)


def is_type(attr: pb.Attribute) -> bool:
    """Whether this attribute of a node, which has no name, gives the type of its result."""
    return utf8(attr.ref_attr_name).startswith("shape:")


def type_of(attr: pb.Attribute) -> Type | None:
    """The type of a node's result; None where the file leaves it open."""
    tensors = {t.name: t for t in attr.tensors}
    text = utf8(attr.ref_attr_name).removeprefix("shape:")

    def item(name: str) -> Type:
        return _type(tensors[name]) if name in tensors else OtherType(name.removesuffix("Type"))

    if not text or attr.type == _A.BOOL:  # truth values are left out of the text
        return None
    found: Type = _nested(attr, text, item, lambda _, items: SequenceType(tuple(items)))
    return found


def _type(proto: pb.Tensor) -> Type:
    found = tensor_type(proto)
    # a Python number of any type is written like this
    if found == TensorType(BY_NAME["uint64"], (1,)):
        return OtherType("number")
    return found


def _nested(
    attr: pb.Attribute,
    text: str,
    item: Callable[[str], Any],
    sequence: Callable[[str, list[Any]], Any],
) -> Any:
    """What a text like `Tuple[a,Tuple[b,],],` describes; the functions say what its parts are."""
    stack: list[tuple[str, list[Any]]] = [("", [])]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or len(stack) > MAX_DEPTH:
            raise _unclear(attr)
        at = token.end()
        if token[1]:
            stack.append((token[1], []))
        elif token[2]:
            found = item(token[2])
            if found is _NOTHING:
                raise _unclear(attr)
            stack[-1][1].append(found)
        else:
            kind, items = stack.pop()
            if not kind:
                raise _unclear(attr)
            stack[-1][1].append(sequence(kind, items))
    if len(stack) != 1 or len(stack[0][1]) != 1:
        raise _unclear(attr)
    return stack[0][1][0]


def _sequence(kind: str, items: list[Any]) -> Any:
    return tuple(items) if kind == "Tuple" else items


def _items(attr: pb.Attribute) -> Iterator[Any]:
    """The items of a tuple in order; `type` is that of the last one.

    Of items in several fields the file does not give the order.
    """
    used = [f for f in (attr.ints, attr.floats, attr.doubles, attr.strings, attr.tensors) if f]
    if len(used) > 1:
        raise _unclear(attr)
    if attr.tensors:
        return (_tensor(t) for t in attr.tensors)
    items = used[0] if used else ()
    mixed = attr.type == _A.BOOL and any(i not in (0, 1) for i in items)
    return (_plain(_A.INT64 if mixed else attr.type, i) for i in items)


def _plain(kind: int, item: Any) -> Any:
    if kind == _A.BOOL:
        return bool(item)
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else item


def _tensor(proto: pb.Tensor) -> Any:
    if proto.HasField("raw_data") or 0 in proto.dims:
        return tensor(proto)
    return dtype_of(proto.data_type, f"dtype {proto.name!r}")


def _unclear(attr: pb.Attribute) -> ModelFileError:
    return ModelFileError(
        f"attribute {attr.name!r} is described as {attr.ref_attr_name[:200]!r}, which does not fit "
        "its content"
    )
