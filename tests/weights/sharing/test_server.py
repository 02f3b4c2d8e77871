"""server.py and client.py: who gets the files of a compiled model, and who which error."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.fake_engine import LIMIT_S
from support.sharing import assert_no_more_than, descriptors, forked, python, said, tell

from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
    ResourceError,
    WireError,
    WorkerDiedError,
)
from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.sharing import exchange, server
from mindspore_lite.weights.sharing.client import borrowed
from mindspore_lite.weights.sharing.handle import Handle, parts_of
from mindspore_lite.weights.sharing.hold import Hold, unheld
from mindspore_lite.weights.sharing.server import Offer, Share

IDENTITY = Identity("digest", {"engine": "1.0", "precision": "high"})
HOW = 'pass the number that get_model_info("shareable_weight_mem_handle") gave there'
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "artefact"
    made.mkdir()
    (made / "model").write_text("model")
    (made / "weights").write_text("weights")
    return made


def shared(folder: Path, *pids: int, device: str = "cpu") -> Share:
    return Share(Offer(Hold(folder), IDENTITY, device, frozenset(pids)))


@pytest.fixture
def mine(folder: Path) -> Iterator[Share]:
    """Weights that this process shares with itself."""
    made = shared(folder, os.getpid())
    yield made
    made.close()


def ask(handle: int, **changes: Any) -> Path:
    wanted: dict[str, Any] = {"device": "cpu", "identity": IDENTITY, "answer_s": LIMIT_S} | changes
    with borrowed(handle, **wanted) as (folder, _):
        return folder


def refusal(handle: int, error: type[LiteError] = EngineError, **changes: Any) -> str:
    with pytest.raises(LiteError) as caught:
        ask(handle, **changes)
    assert type(caught.value) is error
    assert str(handle) not in str(caught.value)
    return str(caught.value)


def raw(handle: int) -> socket.socket:
    """A connection of somebody who does not keep to the protocol."""
    parts = parts_of(handle)
    assert parts is not None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(LIMIT_S)
    made.connect(parts.address)
    return made


# --- who gets it ----------------------------------------------------------------------------------


def test_a_listed_process_is_given_the_folder(mine: Share, folder: Path) -> None:
    assert 0 < mine.handle < 2**63
    assert ask(mine.handle) == folder


def test_each_model_has_a_handle_of_its_own(mine: Share, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/model").touch()
    other = shared(tmp_path / "other", os.getpid())
    assert other.handle != mine.handle
    assert ask(other.handle) == tmp_path / "other"
    other.close()
    assert ask(mine.handle).name == "artefact"


def test_twenty_who_ask_at_once_are_all_answered(mine: Share, folder: Path) -> None:
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(lambda _: ask(mine.handle), range(200))) == {folder}


def test_a_default_timeout_of_the_program_changes_nothing(mine: Share, folder: Path) -> None:
    socket.setdefaulttimeout(0.001)
    try:
        assert ask(mine.handle) == folder
    finally:
        socket.setdefaulttimeout(None)


# --- who does not ---------------------------------------------------------------------------------


def test_an_unlisted_process_is_told_what_to_do(folder: Path) -> None:
    own = shared(folder, os.getpid() + 1)
    assert refusal(own.handle) == (
        f"this process, {os.getpid()}, is not in the shareable_weight_pid_list of process "
        f'{os.getpid()}; put there what get_model_info("current_pid") gives here'
    )


def test_the_kernel_says_which_process_asks(folder: Path, mine: Share) -> None:
    """A child of a listed process is another process."""
    text = forked(lambda: str(ask(mine.handle)))
    assert text.startswith("EngineError: this process, ")
    assert "is not in the shareable_weight_pid_list" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("who", ["asks", "shares"])
def test_another_user_gets_nothing_and_is_not_believed(who: str, folder: Path) -> None:
    def other() -> str:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return str(ask(int(asked)))

    if who == "asks":
        asked = shared(folder, *range(1, 2**16)).handle  # whatever its id is
        text = forked(other)
    else:
        impostor = "\n".join(
            [
                "import os, socket, sys",
                "from mindspore_lite.weights.sharing.handle import Handle",
                f"os.setresuid({NOBODY}, {NOBODY}, {NOBODY})",
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
                "handle = Handle(os.getpid(), 1, 2)",
                "s.bind(handle.address); s.listen()",
                "print(int(handle), flush=True)",
                "s.accept()[0].recv(9)",
            ]
        )
        with python(impostor) as child:
            text = "EngineError: " + refusal(int(said(child)))
    assert text == (
        "EngineError: the handle leads to a process of another user; weights are shared between "
        f"processes of one user: {HOW}"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_who_does_not_look_is_refused_by_the_kernels_word(folder: Path) -> None:
    own = shared(folder, *range(1, 2**16))

    def other() -> str:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        with raw(own.handle) as connection:
            frame, given = exchange.receive(connection)
        return f"{exchange.decoded_answer(frame).refusal} {len(given)}"

    assert forked(other) == "user 0"


def test_another_device_model_or_setting_is_told(mine: Share) -> None:
    pid = os.getpid()
    assert refusal(mine.handle, device="ascend:2") == (
        f"process {pid} shares weights on device 'cpu', but this model is built for 'ascend:2'; "
        "use the same target and device_id in both"
    )
    other = Identity("other", IDENTITY.settings)
    assert refusal(mine.handle, ModelFileError, identity=other) == (
        f"process {pid} shares the weights of another model: the content of the files differs; "
        "build both from the same model file"
    )
    other = Identity("digest", {**IDENTITY.settings, "engine": "2.0"})
    assert refusal(mine.handle, identity=other) == (
        f"process {pid} has compiled the model with another engine: '1.0' there, '2.0' here; make "
        "them the same"
    )
    other = Identity("digest", {"engine": "1.0"})
    assert "another precision: 'high' there, '' here" in refusal(mine.handle, identity=other)


def test_a_wrong_handle_is_told(mine: Share) -> None:
    parts = parts_of(mine.handle)
    assert parts is not None
    nothing = "shareable_weight_mem_handle is no handle of shared weights: "
    assert refusal(1) == f"{nothing}no process has made such a number; {HOW}"
    token = Handle(parts.pid, parts.token ^ 1, parts.number)
    assert refusal(int(token)) == f"{nothing}process {parts.pid} shares nothing under it; {HOW}"
    number = Handle(parts.pid, parts.token, parts.number ^ 1)
    assert refusal(int(number)) == f"{nothing}process {parts.pid} shares no model under it; {HOW}"


def test_a_closed_model_is_told_and_what_was_given_stays(mine: Share, folder: Path) -> None:
    with borrowed(mine.handle, "cpu", IDENTITY) as (given, _):
        mine.close()
        mine.close()
        assert not mine.is_open
        assert (given / "model").read_text() == "model"
    assert refusal(mine.handle, ClosedError) == (
        f"process {os.getpid()} has closed the model whose weights it shared; build it there "
        f"again, and {HOW}"
    )
    with unheld(folder) as free:
        assert free


def test_what_is_forgotten_is_closed(folder: Path) -> None:
    handle = shared(folder, os.getpid()).handle
    assert "has closed the model" in refusal(handle, ClosedError)


# --- processes that end, stop, or fork ------------------------------------------------------------

SHARER = """
import sys
from pathlib import Path
from mindspore_lite.weights.sharing.hold import Hold
from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.sharing.server import Offer, Share
identity = Identity("digest", {"engine": "1.0", "precision": "high"})
share = Share(Offer(Hold(Path(sys.argv[1])), identity, "cpu", frozenset([int(sys.argv[2])])))
print(share.handle, flush=True)
for line in sys.stdin:
    exec(line)
"""


def test_a_process_that_was_killed_is_told_and_leaves_nothing(folder: Path) -> None:
    with python(SHARER, folder, os.getpid()) as child:
        handle = int(said(child))
        assert ask(handle) == folder
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        text = refusal(handle, WorkerDiedError)  # before anybody has waited for it
        child.wait()
        assert refusal(handle, WorkerDiedError) == text
    assert text == (
        f"process {child.pid}, which shared the weights, has ended; start it again, and {HOW}"
    )
    with unheld(folder) as free:
        assert free
    parts = parts_of(handle)
    assert parts is not None
    assert parts.address[1:].decode() not in Path("/proc/net/unix").read_text()


def test_a_process_that_is_stopped_gives_a_clear_error_in_time(folder: Path) -> None:
    with python(SHARER, folder, os.getpid()) as child:
        handle = int(said(child))
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert refusal(handle, RequestTimeoutError, answer_s=0.1) == (
            f"process {child.pid}, which shares the weights, does not answer within 0.1 s; is it "
            "stopped?"
        )
        child.send_signal(signal.SIGCONT)
        assert ask(handle) == folder


# the child tells its number itself: by then it has let go of what it must not keep
FORK = "import os, signal; os.fork() or (print(os.getpid(), flush=True), signal.pause())"


def test_a_forked_child_keeps_neither_handle_nor_folder_alive(folder: Path) -> None:
    with python(SHARER, folder, os.getpid()) as child:
        handle = int(said(child))
        tell(child, FORK)
        fork = int(said(child))
        try:
            assert ask(handle) == folder
            child.kill()
            child.wait()
            assert "has ended" in refusal(handle, WorkerDiedError)
            with unheld(folder) as free:
                assert free
        finally:
            os.kill(fork, signal.SIGKILL)


def test_closing_counts_while_a_forked_child_lives(folder: Path) -> None:
    with python(SHARER, folder, os.getpid()) as child:
        handle = int(said(child))
        tell(child, FORK)
        fork = int(said(child))
        try:
            tell(child, "share.close(); print(0, flush=True)")
            said(child)
            assert "has closed the model" in refusal(handle, ClosedError)
            with unheld(folder) as free:
                assert free
        finally:
            os.kill(fork, signal.SIGKILL)


def test_a_forked_child_that_closes_its_copy_ends_nothing(mine: Share, folder: Path) -> None:
    assert forked(lambda: str(mine.close())) == "None"
    assert ask(mine.handle) == folder
    with unheld(folder) as free:
        assert not free


def test_a_forked_child_can_share_for_itself(mine: Share, folder: Path) -> None:
    def share_own() -> str:
        own = shared(folder, os.getpid())
        parts = parts_of(own.handle)
        assert parts is not None
        assert parts.pid == os.getpid()
        return str(ask(own.handle))

    assert forked(share_own) == str(folder)


def test_no_room_for_a_socket_is_told_on_both_sides(
    mine: Share, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*kind: int) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", full)
    assert "no socket can be had" in refusal(mine.handle, ResourceError)
    monkeypatch.setattr(server, "_OFFICE", server._Office())
    with pytest.raises(ResourceError, match=r"there is no room: .*Too many open files"):
        shared(folder, os.getpid())


# --- clients and servers that do not keep to the protocol -----------------------------------------


@pytest.mark.parametrize("silent", [30, server._CLIENTS, server._CLIENTS + 30])
def test_silent_clients_keep_nobody_waiting(
    mine: Share, folder: Path, monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 600.0)
    with ExitStack() as stack:
        for _ in range(silent):
            stack.enter_context(raw(mine.handle))
        assert ask(mine.handle) == folder


def test_silent_clients_are_sent_away_and_then_there_is_room_again(
    mine: Share, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.1)
    with ExitStack() as stack:
        silent = [stack.enter_context(raw(mine.handle)) for _ in range(server._CLIENTS + 1)]
        assert ask(mine.handle) == folder
        assert [client.recv(1) for client in silent] == [b""] * len(silent)


@pytest.mark.parametrize(
    "frame", [b"", b"x", b"\0" * 100, b"[" * 30_000, b"{}", bytes(40_000), b'{"protocol": 9}']
)
def test_garbage_is_refused_and_harms_nobody(frame: bytes, mine: Share, folder: Path) -> None:
    with raw(mine.handle) as connection:
        connection.send(frame)
        answer = exchange.decoded_answer(connection.recv(1 << 16))
    assert answer.refusal == "frame"
    assert ask(mine.handle) == folder


def test_descriptors_that_a_client_sends_are_not_kept(mine: Share, folder: Path) -> None:
    before = descriptors()
    with raw(mine.handle) as connection:
        exchange.send(connection, b"{}", [0] * 10)
        connection.recv(1 << 16)
    assert ask(mine.handle) == folder
    assert_no_more_than(before)


def test_a_client_that_leaves_at_once_harms_nobody(mine: Share, folder: Path) -> None:
    for _ in range(5):
        raw(mine.handle).close()
    assert ask(mine.handle) == folder


SERVER = """
import os, socket, sys
from mindspore_lite.weights.sharing.handle import Handle
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
handle = Handle(os.getpid(), 1, 2)
s.bind(handle.address)
s.listen()
print(int(handle), flush=True)
frame = eval(sys.argv[1])
client = s.accept()[0]
client.recv(1 << 16)
client.send(frame) if frame else client.close()
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (b"", EngineError, "broke off (it hung up); try again"),
        (b"garbage", WireError, "an answer that cannot be understood: it is no JSON; both"),
        (b'{"protocol": 2}', WireError, "it speaks another version than 1; both processes need"),
        (
            exchange.encoded_answer(exchange.Answer(refusal="new", text="some reason")),
            WireError,
            "refuses: some reason",
        ),
        (
            exchange.encoded_answer(exchange.Answer("/tmp", ("model",))),
            WireError,
            "0 of 1 files came from process",
        ),
    ],
)
def test_an_answer_that_makes_no_sense_is_told(
    frame: bytes, error: type[LiteError], words: str
) -> None:
    before = descriptors()
    with python(SERVER, repr(frame)) as child:
        assert words in refusal(int(said(child)), error)
    assert_no_more_than(before)


# --- the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_path_that_does_not_name_the_shared_files_is_told(
    how: str, mine: Share, folder: Path
) -> None:
    (folder / "weights").unlink()
    if how == "replaced":
        (folder / "weights").write_text("weights")
    assert refusal(mine.handle) == (
        f"the compiled model that process {os.getpid()} shares does not lie at {str(folder)!r} for "
        "this process; both must see the same file system, and nobody may change that folder"
    )


def test_files_that_were_exchanged_while_they_were_opened_are_told(
    mine: Share, folder: Path
) -> None:
    with (
        pytest.raises(EngineError, match="does not lie at"),
        borrowed(mine.handle, "cpu", IDENTITY),
    ):
        (folder / "weights").unlink()
        (folder / "weights").write_text("weights")


def test_a_hundred_shares_leave_nothing_behind(folder: Path) -> None:
    def once() -> None:
        own = shared(folder, os.getpid())
        ask(own.handle)
        own.close()

    shared(folder).close()  # which opens the office
    before = descriptors()
    for _ in range(100):
        once()
    assert_no_more_than(before)


# --- what an engine adds ---


def test_what_the_engine_adds_is_made_anew_for_each_who_may_have_it(folder: Path) -> None:
    made: list[int] = []

    def extra() -> bytes:
        made.append(1)
        return bytes([len(made)]) * 100_000  # more than a frame holds

    offer = Offer(Hold(folder), IDENTITY, "cpu", frozenset({os.getpid()}), extra)
    own = Share(offer)
    before = descriptors()
    for number in (1, 2):
        with borrowed(own.handle, "cpu", IDENTITY) as (given, more):
            assert given == folder
            assert more == bytes([number]) * 100_000
    refusal(own.handle, device="gpu:0")
    assert made == [1, 1]  # nothing was made for the one who was refused
    assert_no_more_than(before)
    own.close()


def test_who_is_not_listed_gets_nothing_that_the_engine_adds(folder: Path) -> None:
    offer = Offer(Hold(folder), IDENTITY, "cpu", frozenset({1}), lambda: pytest.fail("given away"))
    own = Share(offer)
    assert "is not in the shareable_weight_pid_list" in refusal(own.handle)
    own.close()


def test_more_than_an_engine_may_add_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MAX_EXTRA_BYTES", 10)
    own = Share(Offer(Hold(folder), IDENTITY, "cpu", frozenset({os.getpid()}), lambda: bytes(11)))
    assert "it sends 11 bytes, at most 10 are possible" in refusal(own.handle, WireError)
    own.close()
