"""The client held against the vectors: calls in, the very bytes of the requests out."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
from support.wire_peers import LIMIT_S, ScriptedWorker, private_block
from support.wire_vectors import FOLDER, Part, Vector, read

from mindspore_lite.errors import LiteError, WireError
from mindspore_lite.remote.wire.bodies import Build, read_description
from mindspore_lite.remote.wire.client import ENDED, WireSession
from mindspore_lite.remote.wire.fields import Writer
from mindspore_lite.remote.wire.frames import Message
from mindspore_lite.remote.wire.handshake import Hello, greet
from mindspore_lite.remote.wire.memory import Block

VECTORS = {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}
CONVERSATION = [v for name, v in VECTORS.items() if name[:2].isdigit() and "greeting" not in name]
SMALL = np.array([[1, 2], [3, 4]], np.float32)
LARGE = np.arange(8192, dtype=np.float32).reshape(4096, 2)
WITHIN_S = VECTORS["05-predict"].parts[0].number("timeout_us") / 1e6


def scripted(folder: Path, vectors: list[Vector]) -> ScriptedWorker:
    parts = [vector.parts for vector in vectors]
    return ScriptedWorker(folder, [(len(a.encoded()), told.encoded()) for a, told in parts])


def build_of(part: Part) -> Build:
    """What a BUILD tells, as a client asks for it."""
    settings = {
        part.text(f"settings.{i}.name"): part.text(f"settings.{i}.value")
        for i in range(part.number("settings"))
    }
    config = {
        part.text(f"config.{i}.section"): {
            part.text(f"config.{i}.name"): part.text(f"config.{i}.value")
        }
        for i in range(part.number("config"))
    }
    key = part["key"]
    assert isinstance(key, bytes)
    return Build(
        part.number("kind"),
        part.number("model_type"),
        part.text("path"),
        settings=settings,
        config_path=part.text("config_path"),
        config=config,
        key=key,
        key_mode=part.text("key_mode"),
    )


def test_the_conversation_is_led_byte_by_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Block, "open", private_block)
    asked = {vector.name[3:]: vector.parts[0] for vector in CONVERSATION}
    told = {vector.name[3:]: vector.parts[1] for vector in CONVERSATION}
    with scripted(tmp_path, CONVERSATION) as worker:
        session = WireSession.connect(worker.path)
        model = session.build(build_of(asked["build"]))
        assert model.number == told["build"]["model"]
        assert [(info.name, info.shape) for info in model.inputs] == [("x", (-1, 2))]
        assert [(info.name, info.shape) for info in model.outputs] == [("y", (-1, 2))]
        assert model.notes == [told["build"].text("notes.0")]

        contents = [asked["build-content"][f"content.{i}.data"] for i in range(2)]
        raw = [np.frombuffer(content, np.uint8) for content in contents]
        second = session.build(build_of(asked["build-content"]), raw)
        assert second.number == 2

        (output,) = model.predict([SMALL], WITHIN_S, priority=-3)
        assert output.tobytes() == told["predict"]["outputs.0.data"]
        for _ in range(2):
            (output,) = model.predict([LARGE])
            assert output.shape == LARGE.shape

        _ask_what_the_client_has_no_method_for(session)
        model.resize([[4, 2]])
        assert model.outputs[0].shape == (4, 2)
        two, three = np.array(2, np.float32), np.array(3, np.float32)
        model.update_weights([[("factor", two)], [("", three)]])
        model.update_weights([])
        assert model.info(asked["info"].text("key")) == told["info"].text("value")
        assert model.statistics() == told["statistics"].text("statistics")
        assert session.cancel(6, 1.0, timeout_s=LIMIT_S) == ENDED
        _free_blocks(session)
        model.close(2.0)
        assert second.derived([[("factor", two)], [("", three)]]).number == 5
        session.exit(asked["exit"].text("words"), timeout_s=LIMIT_S)
        session.close()
    wanted = [vector.parts[0].encoded().hex() for vector in CONVERSATION]
    assert [data.hex() for data in worker.got] == wanted


def _ask_what_the_client_has_no_method_for(session: WireSession) -> None:
    out = Writer()
    out.u32(1)
    found = read_description(session.ask(Message.DESCRIBE, out.data))
    assert [info.name for info in found.inputs + found.outputs] == ["x", "y"]


def _free_blocks(session: WireSession) -> None:
    lane = session.lane()
    assert lane._inputs is not None
    assert lane._outputs is not None
    lane._freed = [lane._inputs.number, lane._outputs.number]
    lane._free()
    lane.give_back()


def test_large_inputs_are_copied_into_the_block_of_the_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[int, Block] = {}

    def kept(pid: int, made: object) -> Block:
        block = private_block(pid, made)  # type: ignore[arg-type]
        opened[block.number] = block
        return block

    monkeypatch.setattr(Block, "open", kept)
    script = [VECTORS[name] for name in ("03-build", "04-build-content", "05-predict")]
    script += [VECTORS[name] for name in ("06-allocate", "07-predict-block", "08-predict-room")]
    with scripted(tmp_path, script) as worker:
        session = WireSession.connect(worker.path)
        model = session.build(build_of(script[0].parts[0]))
        session.build(build_of(script[1].parts[0]), [np.zeros(5, np.uint8), np.zeros(0, np.uint8)])
        model.predict([SMALL], WITHIN_S, priority=-3)
        model.predict([LARGE])
        assert bytes(opened[3].view[: LARGE.nbytes]) == LARGE.tobytes()
        opened[4].view[: LARGE.nbytes] = (2 * LARGE).tobytes()
        (output,) = model.predict([LARGE])
        np.testing.assert_array_equal(output, 2 * LARGE)
        session.close()


@pytest.mark.parametrize(
    "vector",
    [pytest.param(v, id=n) for n, v in VECTORS.items() if n.startswith("bad-answer")],
)
def test_an_answer_that_makes_no_sense_is_an_error(vector: Vector, tmp_path: Path) -> None:
    (bad,) = vector.parts
    build, predict = VECTORS["03-build"], VECTORS["05-predict"]
    script = [
        (len(build.parts[0].encoded()), build.parts[1].encoded()),
        (len(predict.parts[0].encoded()), bad.encoded()),
    ]
    with ScriptedWorker(tmp_path, script) as worker:
        session = WireSession.connect(worker.path)
        model = session.build(build_of(build.parts[0]))
        session.next_request()  # the vectors' PREDICT is request 3
        with pytest.raises(WireError, match=bad.reason):
            model.predict([SMALL], WITHIN_S, priority=-3)
        session.close()


@pytest.mark.parametrize("name", ["bad-welcome-magic", "bad-welcome-version", "bad-welcome-text"])
def test_a_worker_that_greets_badly_is_left(name: str) -> None:
    (part,) = VECTORS[name].parts
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(part.encoded())
        with pytest.raises(LiteError, match=part.reason):
            greet(ours)
        assert theirs.recv(99) == Hello().encoded()
