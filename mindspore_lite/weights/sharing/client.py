"""Uses another process's weights: turns a handle into the folder of its compiled model.

The folder is trusted because of who names it: a process of the same user, as the kernel says. That
the path means the same files here as there is checked with descriptors that come with the answer.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
from mindspore_lite.weights.sharing.exchange import (
    Answer,
    BadFrameError,
    Question,
    decoded_answer,
    encoded_question,
    peer_of,
    read,
    receive,
    send,
)
from mindspore_lite.weights.sharing.handle import Handle, is_alive, parts_of

ANSWER_S = 10.0  # for the other process to answer, which it does at once unless it is stopped
_TIMEVAL = struct.Struct("ll")
_HOW = 'pass the number that get_model_info("shareable_weight_mem_handle") gave there'


@contextmanager
def borrowed(
    handle: int, device: str, identity: Identity, answer_s: float = ANSWER_S
) -> Iterator[tuple[Path, bytes]]:
    """The folder of the compiled model that a handle stands for, to be opened inside the block.

    With it comes what the engine of the other process wants to say to the one here.

    Raises:
        LiteError: The other process is gone, or refuses, or the files are not the same here.
    """
    parts = parts_of(handle)
    if parts is None:
        raise _no_handle("no process has made such a number")
    answer, descriptors = _asked(parts, Question(parts.number, device, identity), answer_s)
    try:
        if answer.refusal:
            raise _refusal(answer, parts.pid, device, identity)
        folder = Path(answer.folder)
        files = descriptors[: len(answer.names)]
        _check_files(folder, answer.names, files, parts.pid)
        yield folder, _extra(answer, descriptors, parts.pid)
        # what was opened by its path is what was shared: neither can have been exchanged since
        _check_files(folder, answer.names, files, parts.pid)
    finally:
        _close(descriptors)


def _asked(parts: Handle, question: Question, answer_s: float) -> tuple[Answer, list[int]]:
    """What the process answers, and the descriptors that come with it."""
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as exc:
        raise ResourceError(f"no socket can be had to ask for shared weights: {exc}") from exc
    with connection:
        # the kernel's limits, not settimeout(): without blocking, a full backlog fails at once
        connection.settimeout(None)  # whatever the program's default is
        limit = _TIMEVAL.pack(int(answer_s), int(answer_s % 1 * 1e6))
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, limit)
        try:
            connection.connect(parts.address)
            return _answered(connection, question)
        except BlockingIOError as exc:
            raise RequestTimeoutError(
                f"process {parts.pid}, which shares the weights, does not answer within "
                f"{answer_s:g} s; is it stopped?"
            ) from exc
        except OSError as exc:
            raise _gone(parts.pid, exc) from exc
        except BadFrameError as exc:
            raise WireError(
                f"process {parts.pid} gives an answer that cannot be understood: {exc}; both "
                "processes need the same version of mslite"
            ) from exc


def _extra(answer: Answer, descriptors: list[int], pid: int) -> bytes:
    if not answer.has_extra:
        return b""
    try:
        if len(descriptors) != len(answer.names) + 1:
            raise BadFrameError("it sends no descriptor of it")
        return read(descriptors[-1])
    except (BadFrameError, OSError) as exc:
        raise WireError(f"what process {pid} says of its weights cannot be read: {exc}") from exc


def _answered(connection: socket.socket, question: Question) -> tuple[Answer, list[int]]:
    if peer_of(connection).uid != os.geteuid():
        raise EngineError(
            "the handle leads to a process of another user; weights are shared between processes "
            f"of one user: {_HOW}"
        )
    send(connection, encoded_question(question))
    frame, descriptors = receive(connection)
    try:
        if not frame:
            raise ConnectionResetError("it hung up")
        return decoded_answer(frame), descriptors
    except BaseException:
        _close(descriptors)
        raise


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _gone(pid: int, exc: OSError) -> LiteError:
    """What it means that there was no answer."""
    if not is_alive(pid):
        return WorkerDiedError(
            f"process {pid}, which shared the weights, has ended; start it again, and {_HOW}"
        )
    if isinstance(exc, ConnectionRefusedError):
        return _no_handle(f"process {pid} shares nothing under it")
    why = exc.strerror or exc
    return EngineError(f"process {pid}, which shares the weights, broke off ({why}); try again")


def _no_handle(why: str) -> LiteError:
    return EngineError(f"shareable_weight_mem_handle is no handle of shared weights: {why}; {_HOW}")


def _refusal(answer: Answer, pid: int, device: str, identity: Identity) -> LiteError:
    words = answer.text[:300]
    errors: dict[str, Callable[[], LiteError]] = {
        "handle": lambda: _no_handle(f"process {pid} shares no model under it"),
        "closed": lambda: ClosedError(
            f"process {pid} has closed the model whose weights it shared; build it there again, "
            f"and {_HOW}"
        ),
        "user": lambda: EngineError(
            f"process {pid} belongs to another user; weights are shared between processes of one "
            "user"
        ),
        "process": lambda: _unlisted(pid, words),
        "device": lambda: EngineError(
            f"process {pid} shares weights on device {words!r}, but this model is built for "
            f"{device!r}; use the same target and device_id in both"
        ),
        "model": lambda: ModelFileError(
            f"process {pid} shares the weights of another model: the content of the files differs; "
            "build both from the same model file"
        ),
        "settings": lambda: _other_settings(pid, words, identity),
    }
    if answer.refusal in errors:
        return errors[answer.refusal]()
    return WireError(f"process {pid}, which shares the weights, refuses: {words}")


def _unlisted(pid: int, seen_as: str) -> LiteError:
    own = os.getpid()
    other = f" (which process {pid} sees as {seen_as})" if seen_as != str(own) else ""
    return EngineError(
        f"this process, {own}{other}, is not in the shareable_weight_pid_list of process {pid}; "
        'put there what get_model_info("current_pid") gives here'
    )


def _other_settings(pid: int, words: str, identity: Identity) -> LiteError:
    name, _, there = words.partition(": ")
    return EngineError(
        f"process {pid} has compiled the model with another {name}: {there!r} there, "
        f"{identity.settings.get(name, '')[:200]!r} here; make them the same"
    )


def _check_files(folder: Path, names: tuple[str, ...], descriptors: list[int], pid: int) -> None:
    """The path must name the very files that the other process holds open."""
    if not names or len(names) != len(descriptors):
        raise WireError(
            f"{len(descriptors)} of {len(names)} files came from process {pid}; has this process "
            "too many files open?"
        )
    try:
        same = all(
            os.path.samestat(os.lstat(folder / name), os.fstat(descriptor))
            for name, descriptor in zip(names, descriptors, strict=True)
        )
    except OSError:
        same = False
    if not same:
        raise EngineError(
            f"the compiled model that process {pid} shares does not lie at {str(folder)!r} for "
            "this process; both must see the same file system, and nobody may change that folder"
        )
