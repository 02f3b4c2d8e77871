"""`mslite serve` as a process, with its ports and its memory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LIMIT_S = 120.0


@dataclass
class ServeProcess:
    """A server that runs."""

    child: subprocess.Popen[str]
    http_port: int
    grpc_port: int

    @property
    def resident_bytes(self) -> int:
        """Of its memory, what is there."""
        with open(f"/proc/{self.child.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096


@contextmanager
def serve_process(*arguments: str) -> Iterator[ServeProcess]:
    """Start one on ports of its own, and end it."""
    command = [sys.executable, "-m", "mindspore_lite", "serve", *arguments, "--http-port", "0"]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.search(r"grpc://.*:(\d+) https?://.*:(\d+)", line)
        assert found is not None, (line, child.communicate(timeout=LIMIT_S))
        yield ServeProcess(child, int(found[2]), int(found[1]))
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=LIMIT_S)
