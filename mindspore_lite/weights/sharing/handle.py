"""The handle of shared weights: packs the sharing process into one number, and back.

    bits 41 to 62   the process that shares, which distinguishes a dead process from a wrong handle
    bits 20 to 40   a random token of that process
    bits  0 to 19   a random number for each of its models

The number fits into a signed 64-bit cell, which is what programs of the original keep it in. It is
no secret that protects anything: who may use the weights is decided by the kernel's credentials.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import select
from typing import NamedTuple

PID_BITS, TOKEN_BITS, NUMBER_BITS = 22, 21, 20  # no Linux has process ids of more bits


class Handle(NamedTuple):
    """The parts of a handle."""

    pid: int
    token: int
    number: int

    def __int__(self) -> int:
        return (self.pid << TOKEN_BITS | self.token) << NUMBER_BITS | self.number

    @property
    def address(self) -> bytes:
        """The abstract socket of the process; a digest, for every user can list such names."""
        text = f"{self.pid} {self.token}"
        return b"\0mslite-weights-" + hashlib.sha256(text.encode()).hexdigest()[:32].encode()


def new_token() -> int:
    """A token for a process."""
    return secrets.randbits(TOKEN_BITS)


def new_number() -> int:
    """A number for a model."""
    return secrets.randbits(NUMBER_BITS)


def parts_of(handle: int) -> Handle | None:
    """The parts; None when no process can have made such a handle."""
    rest, number = divmod(handle, 1 << NUMBER_BITS)
    pid, token = divmod(rest, 1 << TOKEN_BITS)
    return Handle(pid, token, number) if 0 < pid < 1 << PID_BITS else None


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for yet does not."""
    try:
        watch = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        poll = select.poll()
        poll.register(watch, select.POLLIN)  # readable once the process has ended
        return not poll.poll(0)
    finally:
        os.close(watch)
