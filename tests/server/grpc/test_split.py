"""The hand-written splitter against protobuf's parser: same verdict, same content."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from google.protobuf.message import DecodeError

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest
from mindspore_lite.server.grpc.split import parsed, split

MUTANTS = 10_000
ANY = 1 << 30
ODD = [  # what a mutant gets: tags of field 7 of every kind and spelling, broken lengths, groups
    b"\x3a", b"\x3a\x00", b"\xba\x00\x01x", b"\xba\x80\x80\x00\x01x", b"\xba\x80\x80\x80\x00\x01x",
    b"\xba\x80\x80\x80\x80\x00\x01x", b"\x3b\x3c", b"\x3b", b"\x3c", b"\x3d1234", b"\x3912345678",
    b"\x38" + b"\xff" * 9 + b"\x01", b"\x38" + b"\xff" * 9 + b"\x02", b"\x38" + b"\xff" * 10,
    b"\x00\x00", b"\x07", b"\x3e", b"\x02\x00", b"\xfa\x01\x02ab", b"\xc3\x3e" * 3,
    b"\x3a\x80\x00", b"\x3a\x81\x80\x00x", b"\x3a\x80\x80\x80\x00", b"\x3a\x80\x80\x80\x80\x00",
    b"\x3a\xff\xff\xff\x7f", b"\x3a\xff\xff\xff\xff\x0f", b"\x3a" + b"\x80" * 9 + b"\x01",
    b"\x2a\x00", b"\x2a\x02\x0a\x05", b"\x12\x02\xff\xfe", b"\x0a\x03abc", b"\x3b\x3a\x01x\x3c",
]  # fmt: skip


def made(dice: random.Random) -> bytes:
    """A valid message."""
    message = ModelInferRequest(model_name="m", id="7" * dice.randrange(200))
    message.parameters["timeout"].int64_param = dice.randrange(-5, 1 << 40)
    for index in range(dice.randrange(4)):
        shape = [dice.randrange(1 << 20) for _ in range(dice.randrange(5))]
        tensor = message.inputs.add(name=f"i{index}", datatype="FP32", shape=shape)
        tensor.parameters["a"].string_param = "é"
        if dice.random() < 0.3:
            tensor.contents.fp32_contents.extend([1, 2, 3])
    for _ in range(dice.randrange(3)):
        message.outputs.add(name="o")
    for _ in range(dice.randrange(4)):
        size = dice.choice([0, 1, 127, 128, 300, 20_000])
        message.raw_input_contents.append(dice.randbytes(size))
    return message.SerializeToString()


def mutated(dice: random.Random, message: bytes) -> bytes:
    found = bytearray(message)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(found) + 1)
        match dice.randrange(6):
            case 0 if found:
                found[at % len(found)] = dice.randrange(256)
            case 1:
                found[at:at] = dice.choice(ODD)
            case 2:
                del found[at : at + dice.randrange(1, 6)]
            case 3:
                del found[at:]
            case 4:
                found += dice.choice(ODD)
            case _:
                found[:0] = dice.choice(ODD)
    return bytes(found)


def by_protobuf(message: bytes) -> bytes | None:
    try:
        return ModelInferRequest.FromString(message).SerializeToString(deterministic=True)
    except DecodeError:
        return None


def by_hand(message: bytes) -> bytes | None:
    try:
        rest, raws = split(message, ANY, ANY)
        found = parsed(rest)
    except RequestError:
        return None
    assert not found.raw_input_contents
    found.raw_input_contents.extend(bytes(raw) for raw in raws)
    return found.SerializeToString(deterministic=True)


@pytest.mark.parametrize("seed", range(4))
def test_mutants_are_judged_and_read_as_by_protobuf(seed: int) -> None:
    dice = random.Random(seed)
    verdicts = set()
    for number in range(MUTANTS // 4):
        message = mutated(dice, made(dice))
        wanted = by_protobuf(message)
        assert by_hand(message) == wanted, (number, message[:80])
        verdicts.add(wanted is None)
    assert verdicts == {True, False}


@pytest.mark.parametrize("odd", ODD)
def test_odd_messages_are_judged_and_read_as_by_protobuf(odd: bytes) -> None:
    for message in (odd, odd + b"\x3a\x02ab", b"\x3a\x02ab" + odd, b"\x0a\x01m" + odd + b"\x1a\0"):
        assert by_hand(message) == by_protobuf(message), message


def test_tensors_are_views_of_the_message() -> None:
    message = ModelInferRequest(model_name="m", raw_input_contents=[b"a" * 1000, b"b"])
    received = message.SerializeToString()
    rest, raws = split(received, ANY, ANY)
    assert [bytes(raw) for raw in raws] == [b"a" * 1000, b"b"]
    assert all(raw.obj is received for raw in raws)
    assert rest == b"\x0a\x01m"


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        (b"\x2a\x00" * 101, Kind.INVALID, "more than the 100 fields"),
        (b"\x3a\x00" * 101, Kind.INVALID, "more than the 100 fields"),
        (b"\x1a\xc8\x01" + b"x" * 200, Kind.TOO_LARGE, "203 bytes beside raw_input_contents"),
        (b"\x3b\x3c" + b"\x3a\xc8\x01" + b"x" * 200, Kind.INVALID, "not a ModelInferRequest"),
        (b"\x3a\xc8\x01" + b"x" * 199, Kind.INVALID, "not a ModelInferRequest"),
    ],
)
def test_what_would_take_much_memory_is_refused(message: bytes, kind: Kind, words: str) -> None:
    with pytest.raises(RequestError, match=words) as info:
        split(message, 100, 100)
    assert info.value.kind is kind


@pytest.mark.parametrize("parser", ["upb", "python"])
@pytest.mark.parametrize(
    "order",
    [
        "import tritonclient.grpc, mindspore_lite.server.grpc.inference_pb2 as ours",
        "import mindspore_lite.server.grpc.inference_pb2 as ours, tritonclient.grpc",
    ],
)
def test_our_messages_get_along_with_those_of_tritonclient(order: str, parser: str) -> None:
    """Both have the names of the protocol, in one process."""
    code = (
        f"{order}\nfrom tritonclient.grpc import service_pb2 as theirs\n"
        "sent = theirs.ModelInferRequest(model_name='m', raw_input_contents=[b'x'])\n"
        "got = ours.ModelInferRequest.FromString(sent.SerializeToString())\n"
        "print(got.model_name, got.raw_input_contents[0], type(got) is type(sent))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": parser},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("m b'x' False\n", "")
