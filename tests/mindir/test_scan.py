"""mindir/scan.py: big weights are cut out, every length is checked against what is there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mindir_builder import Net, encode

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import scan
from mindspore_lite.mindir.scan import (
    MAPPED_BYTES,
    fields,
    first_field,
    payloads,
    split_graph_weights,
    split_weights,
    weights_outside,
)


def view(*parts: bytes) -> memoryview:
    return memoryview(b"".join(parts))


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def block(number: int, payload: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def model_with(*weights: bytes) -> bytes:
    """ModelProto{graph: {parameter: {raw_data: ...}, ...}}."""
    return block(7, b"".join(block(3, block(7, b"name") + block(9, w)) for w in weights))


def test_a_weight_of_a_page_is_cut_out_and_its_place_is_told() -> None:
    big = b"\xab" * MAPPED_BYTES
    data = view(model_with(big))
    skeleton, spans = split_weights(data)
    assert list(spans) == [0]
    start, end = spans[0]
    assert bytes(data[start:end]) == big
    parameter = pb.Model.FromString(skeleton).graph.parameter[0]
    assert (parameter.name, parameter.raw_data) == ("name", b"")


def test_a_weight_below_a_page_stays_in_the_skeleton() -> None:
    small = b"\xab" * (MAPPED_BYTES - 1)
    skeleton, spans = split_weights(view(model_with(small)))
    assert spans == {}
    assert pb.Model.FromString(skeleton).graph.parameter[0].raw_data == small


def test_spans_are_numbered_by_the_place_of_the_parameter() -> None:
    big, small = b"\x01" * MAPPED_BYTES, b"\x02"
    _, spans = split_weights(view(model_with(small, big, small, big)))
    assert list(spans) == [1, 3]


def test_what_is_no_weight_is_kept_byte_for_byte() -> None:
    """raw_data of a constant, and fields of numbers that MindIR does not have."""
    constant = block(1, block(5, block(12, block(9, b"\x07" * 9000))))
    data = block(7, constant) + block(200, b"unknown") + b"\x08\x05" + b"\x4d\x01\x02\x03\x04"
    skeleton, spans = split_weights(view(data))
    assert (skeleton, spans) == (data, {})


def test_a_skeleton_without_big_weights_is_the_file() -> None:
    net = Net()
    data = encode(net.model(net.call("Add", net.input("x", (2,)), net.weight("w", np.ones(2)))))
    assert split_weights(memoryview(data)) == (data, {})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x3a\x05ab", "field 7 at byte 0 claims 5 bytes, only 2 are left"),
        (b"\x0a\x02ab\x3a\x7f", "field 7 at byte 4 claims 127 bytes, only 0 are left"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "claims 9223372036854775807 bytes"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "claims 18446744073709551615 bytes"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "does not end"),
        (b"\x3a", "the number at byte 1 does not end"),
        (b"\x80", "the number at byte 1 does not end"),
        (b"\x08\x80\x80", "the number at byte 3 does not end"),
        (b"\x09\x00\x00", "field 1 at byte 0 claims 8 bytes, only 2 are left"),
        (b"\x0d\x00", "field 1 at byte 0 claims 4 bytes, only 1 are left"),
        (b"\x0b", "byte 0 holds no protobuf field (wire type 3)"),
        (b"\x0c", "byte 0 holds no protobuf field (wire type 4)"),
        (b"\x0a\x00\x0e", "byte 2 holds no protobuf field (wire type 6)"),
        (b"\x0f", "byte 0 holds no protobuf field (wire type 7)"),
        # inside: the graph's length is right, that of its parameter is not
        (b"\x3a\x04\x1a\x09ab", "field 3 at byte 2 claims 9 bytes, only 2 are left"),
        (b"\x3a\x06\x1a\x04\x4a\x09ab", "field 9 at byte 4 claims 9 bytes, only 2 are left"),
        (b"\x3a\x02\x1a\x03\x0a\x01\x00", "field 3 at byte 2 claims 3 bytes, only 0 are left"),
    ],
)
def test_a_length_that_is_not_there_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        split_weights(memoryview(data))
    assert words in str(caught.value)


def test_the_first_field_tells_onnx_from_mindir() -> None:
    assert first_field(view(b"\x08\x0a")) == (1, 0)
    assert first_field(view(b"\x0a\x031.1")) == (1, 2)


def test_fields_tells_where_payloads_lie() -> None:
    data = view(b"\x08\x96\x01", b"\x12\x03abc", b"\x1d\x00\x00\x00\x00", b"\x21" + b"\x00" * 8)
    found = [(f.number, f.is_bytes, f.begin, f.start, f.end) for f in fields(data, 0, len(data))]
    assert found == [
        (1, False, 0, 1, 3),
        (2, True, 3, 5, 8),
        (3, False, 8, 9, 13),
        (4, False, 13, 14, 22),
    ]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=300))
def test_any_bytes_are_split_or_refused(data: bytes) -> None:
    try:
        skeleton, spans = split_weights(memoryview(data))
    except ModelFileError:
        return
    assert (skeleton, spans) == (data, {})  # nothing here is as long as a page


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3 * MAPPED_BYTES), max_size=4))
def test_skeleton_and_spans_together_are_the_file(sizes: list[int]) -> None:
    weights = [bytes([i + 1]) * size for i, size in enumerate(sizes)]
    data = view(model_with(*weights))
    skeleton, spans = split_weights(data)
    found = [p.raw_data for p in pb.Model.FromString(skeleton).graph.parameter]
    for index, (start, end) in spans.items():
        assert found[index] == b""
        found[index] = bytes(data[start:end])
    assert found == weights
    assert len(skeleton) < 4 * (MAPPED_BYTES + 20)


def test_weights_of_a_bare_graph_are_cut_out_too() -> None:
    big = b"\xab" * MAPPED_BYTES
    data = view(block(3, block(9, b"small")), block(3, block(9, big)))
    skeleton, spans = split_graph_weights(data)
    assert list(spans) == [1]
    start, end = spans[1]
    assert bytes(data[start:end]) == big
    assert [p.raw_data for p in pb.Graph.FromString(skeleton).parameter] == [b"small", b""]


def test_payloads_are_those_of_one_number() -> None:
    data = view(block(1, b"a"), varint(2 << 3) + b"\x05", block(2, b"bc"), block(1, b""))
    assert [bytes(data[a:b]) for a, b in payloads(data, 0, len(data), 1)] == [b"a", b""]
    assert [bytes(data[a:b]) for a, b in payloads(data, 0, len(data), 2)] == [b"bc"]


def test_the_files_of_weights_are_found_without_parsing() -> None:
    outside = [block(3, block(12, block(1, name))) for name in (b"b", b"a", b"b", b"\xff")]
    inside = block(3, block(9, b"raw"))
    assert weights_outside(view(block(7, inside + b"".join(outside)))) == (
        {"a", "b", "\ufffd"},
        True,
    )
    assert weights_outside(view(block(7, inside))) == (set(), True)
    assert weights_outside(view(block(7, block(2, b"name")))) == (set(), False)
    assert weights_outside(view(block(8, inside))) == (set(), False)


def test_a_message_of_more_fields_than_a_model_has_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scan, "MAX_FIELDS", 10)
    assert len(list(scan.fields(memoryview(b"\x08\x01" * 10), 0, 20))) == 10
    with pytest.raises(ModelFileError, match="has more than 10 fields"):
        list(scan.fields(memoryview(b"\x08\x01" * 11), 0, 22))
