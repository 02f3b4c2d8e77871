"""One worker process: cores and an environment go in, a session with a new process comes out.

The process is a child that holds one end of a socket pair: when this process ends, however that
happens, the kernel closes the other end, and the child ends as well. Its standard output and error
come here, into a short memory of last words, and onto a stream for whoever wants to see them.
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

from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineError, ResourceError, WorkerDiedError
from mindspore_lite.wire.client import Session

_LOG = logging.getLogger(__name__)
_START_S = 300.0  # for Python and its packages to be loaded, on a busy machine from a slow disk
_LINES, _LINE_BYTES = 20, 500  # of last words
_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from mindspore_lite.worker.start import serve_descriptor; "
    "serve_descriptor(int(sys.argv[2]), json.loads(sys.argv[3]))"
)


class WorkerProcess:
    """A running worker, and the session that this process has with it."""

    def __init__(self, device: int, cores: Sequence[int], *, output: TextIO | None = None) -> None:
        """Start it and wait until it answers.

        Args:
            device: Its number, for messages.
            cores: Where it may run; none leaves it as this process is.
            output: Where each line that it prints is shown as well.

        Raises:
            ResourceError: It cannot be started.
            WorkerDiedError: It ended before it answered.
        """
        self.device = device
        self.cores = tuple(cores)
        self._output = output
        self._words: deque[str] = deque(maxlen=_LINES)
        self._ended = threading.Event()
        self._on_end: Callable[[], None] | None = None
        ours, self._popen = self._start()
        self.pid = self._popen.pid
        thread = threading.Thread(target=self._listen, name=f"mslite-log-{device}", daemon=True)
        thread.start()
        try:
            self.session = Session(ours, _START_S)
        except WorkerDiedError as exc:
            ours.close()
            self.kill()
            raise self.died() from exc

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        if not sys.executable:
            raise EngineError("this Python does not know its own program, so no worker can start")
        ours = theirs = None
        try:
            ours, theirs = socket.socketpair()
            arguments = [json.dumps(sys.path), str(theirs.fileno()), json.dumps(self.cores)]
            popen = subprocess.Popen(
                # -P: what lies in the working directory is no module of ours
                [sys.executable, "-P", "-c", _PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env=os.environ | {ascend.QUIET: "1"},
                start_new_session=True,  # Ctrl-C is for this process, which then ends the worker
            )
        except OSError as exc:
            if ours is not None:
                ours.close()
            raise ResourceError(
                f"no worker process can be started for device {self.device}: {exc}"
            ) from exc
        finally:
            if theirs is not None:
                theirs.close()
        return ours, popen

    def when_ended(self, act: Callable[[], None]) -> None:
        """Have `act` called once, on another thread, when the process has ended."""
        self._on_end = act
        if self._ended.is_set():
            act()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self._ended.is_set()

    def died(self) -> WorkerDiedError:
        """Why it ended; waits until it has."""
        self._ended.wait()
        code = self._popen.returncode
        number = -code if code < 0 else 0
        how = f"was ended by {_signal_name(number)}" if number else f"ended with exit code {code}"
        words = "\n".join(self._words)
        text = f"the worker process of device {self.device} (pid {self.pid}) {how}"
        if words:
            text += f"; its last words: {words}"
        return WorkerDiedError(text, device=self.device, signal=number, last_words=words)

    def buried(self, patience_s: float) -> WorkerDiedError:
        """Why it ended, when its connection broke; one that goes on regardless is ended."""
        if not self._ended.wait(patience_s):
            self.kill()
        return self.died()

    def kill(self) -> None:
        """End it now."""
        if self.alive:
            self._popen.kill()

    def stop(self, timeout_s: float) -> None:
        """Ask it to end, and end it when it does not."""
        self.session.close()
        if not self._ended.wait(timeout_s):
            self.kill()
            self._ended.wait()

    def _listen(self) -> None:
        """Read what it says until it ends; then collect it, so that no zombie stays."""
        pipe = self._popen.stdout
        assert pipe is not None
        watch = os.pidfd_open(self.pid)
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(watch, select.POLLIN)
        rest = b""
        ended = False
        while not ended:
            ready = {number for number, _ in poll.poll()}
            ended = watch in ready
            if pipe.fileno() in ready:
                data = os.read(pipe.fileno(), 1 << 16)
                rest = self._heard(rest + data)
                ended = ended and len(data) < 1 << 16
                if not data:
                    poll.unregister(pipe)
        self._heard(rest + b"\n")
        os.close(watch)
        pipe.close()
        self._popen.wait()
        self._ended.set()
        if self._on_end is not None:
            self._on_end()

    def _heard(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            text = line[:_LINE_BYTES].decode("utf-8", "replace").rstrip()
            if text:
                self._words.append(text)
                _LOG.info("device %d: %s", self.device, text)
                if self._output is not None:
                    with suppress(OSError, ValueError):  # closed: the last words are kept anyway
                        self._output.write(f"{text}\n")
                        self._output.flush()
        return rest[-_LINE_BYTES:]


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
