from __future__ import annotations

import json
import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.json_body import (
    check_depth,
    json_reader,
    number_text,
    read_request,
)
from mindspore_lite.server.limits import Limits

LIMITS = Limits()


def read(text: bytes, datatype: str, *shape: int) -> np.ndarray:
    return json_reader(msgspec.Raw(text))(DATATYPES[datatype], shape)


def test_a_long_list_is_read_in_pieces() -> None:
    values = [i / 7 for i in range(30_000)]
    found = read(json.dumps(values).encode(), "FP64", 3, 10_000)
    assert found.shape == (3, 10_000) and found.ravel().tolist() == values
    spaced = b" [ " + b" ,\n ".join(b"%d" % i for i in range(30_000)) + b" ] "
    assert read(spaced, "INT64", 30_000).tolist() == list(range(30_000))


@pytest.mark.parametrize(
    "bad", [b"null", b'"1"', b"true", b'"a,b"', b"[1]", b"{}", b'{"a":1,"b":2}']
)
@pytest.mark.parametrize("place", [0, 15_000, 29_999])
def test_a_long_list_is_checked_as_strictly(bad: bytes, place: int) -> None:
    values = [b"1.5"] * 30_000
    values[place] = bad
    with pytest.raises(RequestError) as info:
        read(b"[" + b",".join(values) + b"]", "FP32", 30_000)
    assert info.value.kind is Kind.INVALID


@pytest.mark.parametrize("count", [29_999, 30_001])
def test_a_long_list_must_have_its_length(count: int) -> None:
    with pytest.raises(RequestError, match="got 30000 elements"):
        read(b"[" + b",".join([b"1"] * 30_000) + b"]", "FP32", count)


@pytest.mark.parametrize(
    "values", [[], [1.5], [math.inf, -math.inf, 0.1], [float(i) for i in range(5000)]]
)
def test_numbers_are_written_as_text(values: list[float]) -> None:
    text = bytes(number_text(np.array(values)))
    assert json.loads(text) == values
    assert bytes(number_text(np.array([np.nan, 1]))) == b"[NaN,1.0]"
    assert bytes(number_text(np.array([True, False]))) == b"[true,false]"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (b"[" * 32 + b"]" * 32, True),
        (b"[" * 33 + b"]" * 33, False),
        (b'{"a":' * 33 + b"1" + b"}" * 33, False),
        (b'"' + b"[" * 100 + b'"', True),
        (b'"\\"' + b"[" * 100 + b'"', True),
        (b"[]," * 100, True),
        (b'"\\\\"' + b"[" * 100, False),
        (b'["' + b"]" * 100 + b'",' + b"[" * 32, False),
        (b'"' + b"[" * 100, True),  # a string without an end, which is refused later
    ],
)
def test_the_depth_is_bounded(text: bytes, fits: bool) -> None:
    if fits:
        check_depth(text, 32)
    else:
        with pytest.raises(RequestError, match="deeper"):
            check_depth(text, 32)


def test_the_depth_of_a_string_without_an_end_takes_no_time() -> None:
    """8 MiB, which took days when each quotation mark was a new beginning."""
    check_depth(b'{"a":"' + b'\\"' * (1 << 22) + b"[" * 40, 32)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"1", b"nul", b"{", b"{}", b'{"inputs":1}', b'{"inputs":[1]}', b"\xff{}",
        b'{"inputs":[],"id":"\xff"}', b'{"inputs":[]}}', b'{"inputs":[],}', b'{"inputs":NaN}',
        b'{"inputs":[{"name":"a","shape":[1],"datatype":"FP32","data":[NaN,}]}',
        b'\xef\xbb\xbf{"inputs":[]}',
        b'{"inputs":[],"id":"\\ud800","x":NaN}',
        b'{"inputs":[{"name":"a","shape":[9223372036854775808],"datatype":"FP32","data":[]}]}',
        b"{" + b'"inputs":[],' * 1000, b'{"inputs":[],"x":' + b"[" * 30 + b"}",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(text: bytes) -> None:
    with pytest.raises(RequestError) as info:
        read_request(text, LIMITS)
    assert info.value.kind is Kind.INVALID


def test_a_long_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestError, match="binary data") as info:
        read_request(b" " * (LIMITS.json_bytes + 1), LIMITS)
    assert info.value.kind is Kind.TOO_LARGE


def test_bare_words_are_read_wherever_they_are() -> None:
    text = (
        b'{"id":"NaN","inputs":[{"name":"a","shape":[2],"datatype":"FP32",'
        b'"data":[NaN, -Infinity]}]}'
    )
    found = read_request(text, LIMITS)
    array = json_reader(found.inputs[0].data)(DATATYPES["FP32"], (2,))
    assert np.isnan(array[0]) and array[1] == -np.inf


def made_up(chance: random.Random, levels: int) -> Any:
    """Lists, objects and strings, full of brackets, quotation marks and backslashes."""
    text = "".join(chance.choices('[]{}"\\a/', k=chance.randrange(6)))
    kind = chance.randrange(3) if levels else 2
    if kind == 0:
        return [made_up(chance, levels - 1) for _ in range(chance.randrange(4))]
    return {text: made_up(chance, levels - 1)} if kind == 1 else text


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def test_the_depth_is_that_of_what_is_read() -> None:
    chance = random.Random(1)
    for _ in range(1000):
        value = [made_up(chance, chance.randrange(7))]
        text, most = json.dumps(value).encode(), depth(value)
        check_depth(text, most)
        with pytest.raises(RequestError, match="deeper"):
            check_depth(text, most - 1)
