"""Runs a task in a jailed child process: own limits, few files, no network, no other process.

    request   8 bytes of length, JSON, and the blobs one after the other, in a memory file
    reply     8 bytes of length, and JSON: {"result": ...} or what went wrong, through a pipe

A task is a function `module:name` that takes arguments (what JSON can say) and blobs (bytes) and
returns what JSON can say. The child is a new interpreter, never a fork: threads of this process do
not matter. It is killed when its time is up, when the caller is interrupted, and when this process
ends. Nothing in a reply is trusted: its length, its form and the names of its errors are checked.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mindspore_lite import errors
from mindspore_lite.core import installation, landlock, seccomp
from mindspore_lite.core.environment import variables
from mindspore_lite.core.jail_watch import Written
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.text import harmless
from mindspore_lite.errors import LiteError, ModelFileError, ResourceError

_CHILD = Path(__file__).with_name("jail_child.py")
_LAST_WORDS = 4000  # bytes kept of what the child writes to standard error
_LOOK_S = 0.1  # between two looks at what it has written
_MOST_REPLY = 64 << 20  # a report of `mslite inspect` may be long
# of the environment, what decides how libraries are found and text is read
_KEPT = ("LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_WARNINGS = {kind.__name__: kind for kind in (UserWarning, RuntimeWarning, DeprecationWarning)}


@dataclass(frozen=True)
class Limits:
    """What the child may use."""

    cpu_s: int
    wall_s: float
    data_bytes: int  # private writable memory
    address_bytes: int  # that, files and shared memory that are mapped
    file_bytes: int  # of one file that it writes

    @property
    def written_bytes(self) -> int:
        """Of all files that it has written and not removed, memory files included."""
        return 2 * self.file_bytes + (1 << 20)  # blocks of small files are larger than they are


def missing() -> str:
    """What this machine lacks for a whole jail, in words; "" where nothing is."""
    lacks = []
    if not landlock.abi():
        lacks.append("the kernel has no Landlock, so that files outside can be read and written")
    if not seccomp.available():
        lacks.append("there is no seccomp filter here, so that the network can be reached")
    return "; ".join(lacks)


def run(
    task: str,
    arguments: Mapping[str, Any],
    *,
    doing: str,
    limits: Limits,
    hint: str = "",
    read: Sequence[str | Path] = (),
    write: Sequence[str | Path] = (),
    blobs: Sequence[bytes] = (),
    path: Sequence[str | Path] = (),
) -> Any:
    """What a task returns.

    Args:
        task: `module:name` of the function.
        arguments: Its first argument.
        doing: What it does, for errors: "compiling it in the sandbox".
        limits: What it may use.
        hint: What sets the limits, for errors.
        read: Files and folders that it may read, beyond what importing takes.
        write: Folders that it may write to.
        blobs: Its second argument.
        path: Folders to import from, beyond sys.path.

    Raises:
        ModelFileError: It crashed, or took too much time or memory.
        LiteError: What the task raised.
        ResourceError: The process could not be started.
    """
    if lacks := missing():
        warnings.warn(f"the sandbox is not whole: {lacks}", RuntimeWarning, stacklevel=3)
    folders = [str(folder) for folder in (*installation.path_folders(), *path)]
    head = {
        "task": task,
        "arguments": arguments,
        "blobs": [len(blob) for blob in blobs],
        "limits": asdict(limits),
        "path": folders,
        "listed": folders,
        "read": [str(one) for one in (*installation.readable(), *read, *path)],
        "parent": os.getpid(),
    }
    try:
        with tempfile.TemporaryDirectory(prefix="mslite-jail-", ignore_cleanup_errors=True) as home:
            head["write"] = [str(one) for one in (*write, home)]
            ended = _ended(head, blobs, home, limits)
    except OSError as exc:
        raise ResourceError(
            f"{doing} failed: no process could be started for it: {exc.strerror or exc}"
        ) from exc
    return _result(ended, doing, limits, f"; {hint}" if hint else "")


@dataclass(frozen=True)
class _Ended:
    """A child that has ended: how, and what it said."""

    status: int  # as Popen has it: below 0 is a signal
    stopped: str  # why it was ended from here: "", "time" or "files"
    reply: bytes
    last_words: str


def _ended(head: Mapping[str, Any], blobs: Sequence[bytes], home: str, limits: Limits) -> _Ended:
    """Start the child and wait for its end, which comes in any case."""
    request = _request(head, blobs)
    given = os.fstat(request)
    try:
        reply, reply_end = _pipe()
    except BaseException:
        os.close(request)
        raise
    try:
        try:
            child = subprocess.Popen(
                # without what the environment and the working directory would add to it
                [sys.executable, "-I", "-B", str(_CHILD), str(request), str(reply_end)],
                env=_environment(home),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(request, reply_end),
                start_new_session=True,  # what it starts is killed with it
            )
        finally:
            os.close(request)
            os.close(reply_end)
        assert child.stderr is not None
        try:
            written = Written(child.pid, head["write"], (given.st_dev, given.st_ino))
            body, words, stopped = _drained(child, reply, written, limits)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # not reaped yet: its number is its own
            child.wait()
            child.stderr.close()
        return _Ended(child.returncode, stopped, body, words.decode("utf-8", "replace"))
    finally:
        os.close(reply)


def _request(head: Mapping[str, Any], blobs: Sequence[bytes]) -> int:
    """A memory file, which is never waited for, read from its beginning."""
    text = json.dumps(head).encode()
    request = _moved_up(os.memfd_create("mslite-request"))
    try:
        with open(request, "wb", closefd=False) as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for blob in blobs:
                file.write(blob)
        os.lseek(request, 0, os.SEEK_SET)
    except BaseException:
        os.close(request)
        raise
    return request


def _pipe() -> tuple[int, int]:
    """Two ends, of which the child gets the second."""
    read_end, write_end = os.pipe()
    try:
        return read_end, _moved_up(write_end)
    except BaseException:
        os.close(read_end)
        raise


def _moved_up(descriptor: int) -> int:
    """The same under a number that no standard stream of the child will take.

    A program without standard streams gets their numbers for the next files that it opens.
    """
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _environment(home: str) -> dict[str, str]:
    return {
        **{name: variables[name] for name in _KEPT if name in variables},
        "HOME": home,
        "TMPDIR": home,
        "MSLITE_CACHE": "off",
        "ORT_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",  # stacks of idle threads would count as memory
        "OPENBLAS_NUM_THREADS": "1",
    }


def _drained(
    child: subprocess.Popen[bytes], reply: int, written: Written, limits: Limits
) -> tuple[bytes, bytes, str]:
    """Read both pipes until the child has ended; its reply, its last words, why it was stopped.

    The end of the process counts, not that of the pipes, which another process could hold. A reply
    above the bound is cut, and makes no sense then.
    """
    assert child.stderr is not None
    words = child.stderr.fileno()
    found = {reply: bytearray(), words: bytearray()}
    waiting = select.poll()
    for pipe in found:
        waiting.register(pipe, select.POLLIN)
    still = set(found)
    deadline_s, look_s = time.monotonic() + limits.wall_s, 0.0
    while (now_s := time.monotonic()) < deadline_s:
        if now_s >= look_s:
            if written.is_above(limits.written_bytes):
                return b"", b"", "files"
            look_s = time.monotonic() + _LOOK_S
        # asked before the pipes are read: what it wrote is in them by then
        has_ended = _has_ended(child.pid)
        ready = waiting.poll(0 if has_ended else 100 if len(still) == len(found) else 2)
        for pipe, _ in ready:
            piece = os.read(pipe, 1 << 16)
            if not piece:
                waiting.unregister(pipe)
                still.discard(pipe)
            elif pipe == reply and len(found[reply]) <= _MOST_REPLY:
                found[reply] += piece
            elif pipe == words:
                found[words] = (found[words] + piece)[-_LAST_WORDS:]
        if has_ended and not ready:
            too_much = written.is_above(limits.written_bytes)
            return bytes(found[reply]), bytes(found[words]), "files" if too_much else ""
    return b"", b"", "time"


def _has_ended(process: int) -> bool:
    """Whether a child has ended; it is not reaped, so that its number stays its own."""
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # reaped by others, as where SIGCHLD is ignored
        return True


def _result(ended: _Ended, doing: str, limits: Limits, hint: str) -> Any:
    """What the task returned, or the error that stands for how it ended."""
    if ended.stopped == "files":
        raise ModelFileError(
            f"{doing} wrote more than {limits.written_bytes >> 20} MiB of files, or very many, and "
            f"was stopped{hint}"
        )
    if ended.stopped:
        raise ModelFileError(
            f"{doing} did not end within {limits.wall_s:.0f} s and was stopped{hint}"
        )
    if ended.status < 0:
        raise ModelFileError(f"{doing} {_death(-ended.status, ended.last_words, limits, hint)}")
    told = _told(ended.reply)
    if told is None:
        words = " ".join(ended.last_words.split())[-300:]
        raise ModelFileError(
            f"{doing} gave no answer that makes sense (exit status {ended.status}); it wrote "
            f"{words!r}"
        )
    for kind, text in told["warnings"]:
        warnings.warn(text, _WARNINGS.get(kind, UserWarning), stacklevel=4)
    if "result" in told:
        return told["result"]
    raise _error(told, doing, limits, hint)


def _death(number: int, last_words: str, limits: Limits, hint: str) -> str:
    """How a signal ended the child."""
    if number == signal.SIGXCPU:
        return f"took more than {limits.cpu_s} s of CPU time{hint}"
    if "bad_alloc" in last_words or "MemoryError" in last_words:
        return f"needed more than {limits.data_bytes >> 20} MiB of memory{hint}"
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "which has no name"
    more = ", as the kernel does when memory runs out" if number == signal.SIGKILL else ""
    return f"was ended by signal {number} ({name}){more}"


def _told(reply: bytes) -> dict[str, Any] | None:
    """The reply, if it has the form of one."""
    if not 8 < len(reply) <= _MOST_REPLY or struct.unpack("<Q", reply[:8])[0] != len(reply) - 8:
        return None
    try:
        told = read_json(reply[8:])
        said = [(str(kind), harmless(str(text))) for kind, text in told["warnings"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return {**told, "warnings": said}


def _error(told: Mapping[str, Any], doing: str, limits: Limits, hint: str) -> LiteError:
    """The error of a reply: one of ours by its class and words, or what the limits did."""
    text, trouble = harmless(str(told.get("text", ""))), told.get("trouble")
    if trouble == "memory":
        return ModelFileError(
            f"{doing} needed more than {limits.data_bytes >> 20} MiB of memory{hint}"
        )
    if trouble == "file":
        return ModelFileError(
            f"{doing} wrote a file of more than {limits.file_bytes >> 20} MiB{hint}"
        )
    name, problems = harmless(str(told.get("error")))[:80], told.get("problems")
    kind = getattr(errors, name, None)
    if trouble is not None or not (isinstance(kind, type) and issubclass(kind, LiteError)):
        return ModelFileError(
            f"{doing} failed in a way that was not foreseen: {name}: {text}; this is a bug: please "
            "report it with the model"
        )
    if kind is errors.UnsupportedOpError and isinstance(problems, dict):
        lists = {str(k): v for k, v in problems.items() if isinstance(v, list)}
        return errors.UnsupportedOpError(text, {k: [str(x) for x in v] for k, v in lists.items()})
    if kind is errors.SettingsError and isinstance(problems, list):
        return errors.SettingsError(text, [str(problem) for problem in problems])
    return kind(text)
