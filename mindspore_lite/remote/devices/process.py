"""Starts one worker process, watches it, and keeps the session with it.

The process is a child that holds one end of a socket pair: when this process ends, however that
happens, the kernel closes the other end, and the child ends as well. Its standard output and error
come here, into a short memory of last words, and onto a stream, if one was given.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from mindspore_lite.core.environment import for_child
from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineError, ResourceError, WorkerDiedError
from mindspore_lite.remote.wire.client import WireSession

_LOG = logging.getLogger(__name__)
_START_S = 300.0  # for Python and its packages to be loaded, on a busy machine from a slow disk
_KILLED_S = 5.0  # for the kernel to end a process; one inside a driver may take forever
_LINES, _LINE_BYTES = 20, 500  # of last words
_CHUNK = 1 << 16
_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from mindspore_lite.remote.worker.start import serve_descriptor; "
    "serve_descriptor(int(sys.argv[2]), json.loads(sys.argv[3]))"
)


def _nothing() -> None:
    """Nobody wants to know."""


class WorkerProcess:
    """A running worker, and the session that this process has with it.

    It is started, but not waited for: the first use of the session does that.
    """

    def __init__(
        self,
        device: int,
        cores: Sequence[int],
        on_end: Callable[[], None] = _nothing,
        *,
        output: TextIO | None = None,
        name: str = "",
        nice: int = 0,
    ) -> None:
        """Start it.

        Args:
            device: Its number, for messages.
            cores: Where it may run; none leaves it as this process is.
            on_end: Called once, on another thread, when the process has ended.
            output: Where each line that it prints is shown as well.
            name: What messages call it; "" is the device.
            nice: By how much it gives way to others, compared with this process.

        Raises:
            ResourceError: It cannot be started.
        """
        self.device = device
        self.name = name or f"device {device}"
        self.cores = tuple(cores)
        self._output = output
        self._session: WireSession | None = None
        self._on_end = on_end
        self._why = ""  # it was ended by us
        self._words: deque[str] = deque(maxlen=_LINES)
        self._ended = threading.Event()
        self._ours, self._popen = self._started()
        self.pid = self._popen.pid
        if nice:
            with suppress(OSError):  # it has ended, which is noticed below
                # before it has other threads, which inherit this; more is always allowed
                own = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, self.pid, min(19, own + nice))
        watch = -1
        try:
            watch = os.pidfd_open(self.pid)
            threading.Thread(
                target=self._listen, args=(watch,), name=f"mslite-log-{device}", daemon=True
            ).start()
        except (OSError, RuntimeError) as exc:
            if watch >= 0:
                os.close(watch)
            self._ours.close()
            self._popen.kill()
            with self._popen:  # closes its pipe, and waits for it
                pass
            raise self._no_room(exc) from exc

    def _started(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        if not sys.executable:
            raise EngineError("this Python does not know its own program, so no worker can start")
        try:
            ours, theirs = socket.socketpair()
        except OSError as exc:
            raise self._no_room(exc) from exc
        path = [entry for entry in sys.path if isinstance(entry, str)]
        arguments = [json.dumps(path), str(theirs.fileno()), json.dumps(self.cores)]
        with theirs:  # the child has its own copy
            try:
                popen = subprocess.Popen(
                    # -P: what lies in the working directory is no module of ours
                    [sys.executable, "-P", "-c", _PROGRAM, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[theirs.fileno()],
                    env=for_child(**{ascend.QUIET: "1"}),
                    # Ctrl-C is for this process, which then ends it. A group of its own, but no
                    # session: so the kernel wakes and ends one that was stopped when we die
                    process_group=0,
                )
            except OSError as exc:
                ours.close()
                raise self._no_room(exc) from exc
        return ours, popen

    def _no_room(self, exc: Exception) -> ResourceError:
        return ResourceError(f"no worker process can be started for {self.name}: {exc}")

    @property
    def session(self) -> WireSession:
        """The session with it; the first use waits until the process answers.

        Raises:
            WorkerDiedError: The connection broke, or it does not answer.
        """
        if self._session is None:
            try:
                self._session = WireSession(self._ours, _START_S)
            except BaseException:
                self._ours.close()
                raise
        return self._session

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self._ended.is_set()

    def died(self, patience_s: float = 0.0) -> WorkerDiedError:
        """Why it ended; one that goes on for longer than patience_s is ended now."""
        if not self._ended.wait(patience_s):
            self.kill("its connection broke")
        self._ended.wait(_KILLED_S)
        code = self._popen.returncode
        number = -code if code is not None and code < 0 else 0
        if code is None:
            how = f"does not end, although it was killed: {self._why}"
        elif number == signal.SIGKILL and self._why:
            how = f"was ended: {self._why}"
        elif number:
            how = f"was ended by {_signal_name(number)}"
        else:
            how = f"ended with exit code {code}"
        words = "\n".join(self._words.copy())
        text = f"the worker process of {self.name} (pid {self.pid}) {how}"
        if words:
            text += f"; its last words: {words}"
        return WorkerDiedError(text, device=self.device, signal=number, last_words=words)

    def kill(self, why: str) -> None:
        """End it now. Takes no lock: a garbage collection may call it wherever one happens."""
        if self.alive:
            self._why = self._why or why
            self._popen.kill()

    def stop(self, timeout_s: float) -> None:
        """Ask it to end, and end it when it does not, or cannot be asked yet."""
        can_be_asked = self._session is not None
        self.hang_up()
        if not self._ended.wait(timeout_s if can_be_asked else 0.0):
            self.kill("it did not end when it was asked to")
            self._ended.wait(_KILLED_S)

    def hang_up(self) -> None:
        """Close the connections with it, which ends it unless it hangs."""
        if self._session is not None:
            self._session.close()
            return
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._ours.close()

    def _listen(self, watch: int) -> None:
        """Read what it says until it ends; then collect it, so that no zombie stays."""
        pipe = self._popen.stdout
        assert pipe is not None
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(watch, select.POLLIN)
        rest = b""
        ended = False
        while not ended:
            ready = {number for number, _ in poll.poll()}
            ended = watch in ready
            if pipe.fileno() in ready:
                data = os.read(pipe.fileno(), _CHUNK)
                rest = self._heard(rest + data)
                ended = ended and len(data) < _CHUNK  # there may be more
                if not data:
                    poll.unregister(pipe)
        self._heard(rest + b"\n")
        os.close(watch)
        pipe.close()
        self._popen.wait()
        self._ended.set()
        self._on_end()

    def _heard(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            text = line[:_LINE_BYTES].decode("utf-8", "replace").rstrip()
            if text:
                self._words.append(text)
                _LOG.info("%s: %s", self.name, text)
                if self._output is not None:
                    with suppress(OSError, ValueError):  # closed: the last words are kept anyway
                        self._output.write(f"{text}\n")
                        self._output.flush()
        return rest[:_LINE_BYTES]


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
