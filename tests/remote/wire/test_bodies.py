from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

import numpy as np
import pytest
from fuzzing.mutate_bytes import changed_bytes
from hypothesis import given
from hypothesis import strategies as st
from support.wire_peers import Twice
from support.wire_vectors import FOLDER, read

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire import bodies
from mindspore_lite.remote.wire.bodies import Build, Description
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import HEADER_BYTES, Frame, Message
from mindspore_lite.remote.wire.memory import Made
from mindspore_lite.remote.wire.tensors import Region, read_tensor, write_arrays
from mindspore_lite.remote.worker import client_session as client_session_module
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.remote.worker.served_model import Running
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.registry import Registry

FLOAT32 = np.dtype(np.float32)
VECTORS = {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}
BODIES = {
    name: VECTORS[name].parts[0].encoded()[HEADER_BYTES:]
    for name in VECTORS
    if name[:2].isdigit() and "greeting" not in name
}
ANSWERS = {
    name: VECTORS[name].parts[1].encoded()[HEADER_BYTES:] for name in ("03-build", "05-predict")
}
READERS: dict[str, tuple[Callable[[Reader], object], bytes]] = {
    "PREDICT": (partial(bodies.read_predict, blocks={}), BODIES["05-predict"]),
    "BUILD": (bodies.read_build, BODIES["03-build"]),
    "BUILD content": (bodies.read_build, BODIES["04-build-content"]),
    "a description": (bodies.read_description, ANSWERS["03-build"][4:]),
    "blocks": (bodies.read_made, VECTORS["06-allocate"].parts[1].encoded()[HEADER_BYTES:]),
    "a tensor": (read_tensor, ANSWERS["05-predict"][8:]),
}


def reader(out: Writer) -> Reader:
    return Reader(memoryview(bytes(out.data)))


def test_a_predict_comes_back() -> None:
    out = Writer()
    array = np.arange(3, dtype=np.float32)
    bodies.write_predict(out, 9, Call((), 0.5, -100), Region(2, 64, 128))
    write_arrays(out, ["x"], [array], [None])
    found = bodies.read_predict(reader(out), {})
    assert found[:2] == (9, Region(2, 64, 128))
    assert (found.call.timeout_s, found.call.priority) == (0.5, -100)
    (back,) = found.call.inputs
    assert (back.dtype, back.flags.owndata) == (FLOAT32, True)
    np.testing.assert_array_equal(back, array)


def test_a_build_comes_back() -> None:
    build = Build(
        bodies.RUNNER,
        3,
        "/tmp/\udcff.onnx",
        settings={"target": "cpu", "cpu.thread_num": "2"},
        config_path="/tmp/\udcfe.ini",
        config={"a": {"k": "v", "l": ""}, "b": {"k": "w"}},
        key=bytes(32),
        key_mode="AES-GCM",
    )
    out = Writer()
    bodies.write_build(out, build, [], [])
    assert bodies.read_build(reader(out)) == build


@pytest.mark.parametrize("sizes", [(5,), (5, 3), (0,), (0, 3), (3, 0)])
def test_contents_of_any_size_keep_their_order(sizes: tuple[int, ...]) -> None:
    contents = [np.full(size, size, np.uint8) for size in sizes]
    out = Writer()
    bodies.write_build(out, Build(bodies.MODEL, 0), contents, [None] * len(contents))
    found = bodies.read_build(reader(out)).content
    assert [tensor.name for tensor in found] == ["model", "weights"][: len(sizes)]
    assert [tensor.data for tensor in found] == [content.tobytes() for content in contents]


def test_a_description_and_blocks_come_back() -> None:
    x = TensorInfo("x", FLOAT32, (-1, 2))
    description = Description((x, x), ())
    out = Writer()
    bodies.write_description(out, description)
    assert bodies.read_description(reader(out)) == description
    made = [Made(1, 9, 64), Made(2, 10, 1 << 36)]
    out = Writer()
    bodies.write_made(out, made)
    assert bodies.read_made(reader(out)) == made


@pytest.mark.parametrize("name", READERS)
def test_a_body_that_is_cut_off_anywhere_is_a_wire_error(name: str) -> None:
    read_body, good = READERS[name]
    used = Reader(memoryview(good))
    read_body(used)
    for size in range(used.at):
        with pytest.raises(WireError):
            read_body(Reader(memoryview(good[:size])))


@pytest.mark.parametrize("name", READERS)
@given(seed=st.integers(0, 1 << 32))
def test_damaged_bodies_give_a_value_or_a_wire_error(name: str, seed: int) -> None:
    read_body, good = READERS[name]
    data = changed_bytes(good, Random(seed))
    tracemalloc.start()
    try:
        read_body(Reader(memoryview(data)))
    except WireError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # some objects for every few bytes, and what an error is made of
    assert peak < 100 * len(data) + 100_000


@pytest.mark.parametrize("name", READERS)
@given(data=st.binary(max_size=100))
def test_any_bytes_give_a_value_or_a_wire_error(name: str, data: bytes) -> None:
    read_body, _ = READERS[name]
    with suppress(WireError):
        read_body(Reader(memoryview(data)))


@pytest.mark.parametrize("name", BODIES)
def test_a_worker_answers_whatever_comes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that are read where they are answered: nothing but an answer comes out."""
    monkeypatch.setattr(client_session_module, "built", lambda build, contents, group: Twice())
    monkeypatch.setattr(client_session_module, "_free_memory", lambda: 1 << 20)
    message = Message(VECTORS[name].parts[0].number("frame.message"))
    client_session = ClientSession(Registry())
    rng = Random(name)
    for body in [b"", *(changed_bytes(BODIES[name], rng) for _ in range(100))]:
        client_session.refuses = ""  # after an EXIT
        client_session._models[1] = Twice()
        if message is Message.CANCEL:
            body = body[:8] + bytes(8)  # or it may wait for something
        answer, _ = client_session.answer(Frame(message, 1, memoryview(body)), Running(1))
        assert answer in (Message.ERROR, Message.REPLY, Message.BUILD_FINISH)
    client_session.close()
