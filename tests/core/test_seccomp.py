"""The seccomp filter: its program, read back by an interpreter of BPF, and in a real process."""

from __future__ import annotations

import errno
import struct
import subprocess
import sys

import pytest

from mindspore_lite.core import seccomp

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OWN = 4321


def verdict(machine: str, number: int, first: int = 0, arch: int | None = None) -> int:
    """What the filter says of one call."""
    program = seccomp.program(machine, OWN)
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    data = struct.pack("=iIQQ", number, ARCH[machine] if arch is None else arch, 0, first)
    at = loaded = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
            at += if_true if holds[operation] else if_false


@pytest.mark.parametrize(
    ("machine", "name", "number"),
    [
        (machine, name, numbers[at])
        for at, machine in enumerate(ARCH)
        for name, numbers in seccomp._REFUSED.items()
        if numbers[at] is not None
    ],
)
def test_every_call_of_the_list_is_refused(machine: str, name: str, number: int) -> None:
    assert verdict(machine, number) == EPERM, name


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        ("x86_64", {"read": 0, "mmap": 9, "openat": 257, "futex": 202, "exit_group": 231}),
        ("aarch64", {"read": 63, "mmap": 222, "openat": 56, "futex": 98, "exit_group": 94}),
    ],
)
def test_what_every_process_needs_is_allowed(machine: str, numbers: dict[str, int]) -> None:
    assert {verdict(machine, number) for number in numbers.values()} == {ALLOWED}


@pytest.mark.parametrize(
    ("machine", "kill", "clone", "prctl"), [("x86_64", 62, 56, 157), ("aarch64", 129, 220, 167)]
)
def test_some_calls_depend_on_their_first_argument(
    machine: str, kill: int, clone: int, prctl: int
) -> None:
    assert verdict(machine, kill, OWN) == ALLOWED
    assert verdict(machine, kill, OWN + 1) == EPERM
    assert verdict(machine, kill, 2**64 - 1) == EPERM
    assert verdict(machine, clone, 0x3D0F00) == ALLOWED  # what pthread_create asks for
    assert verdict(machine, clone, 17) == EPERM  # what fork asks for
    assert verdict(machine, prctl, 1) == EPERM
    assert verdict(machine, prctl, 15) == ALLOWED
    assert verdict(machine, 435) == ENOSYS


def test_calls_of_other_machines_are_no_way_round() -> None:
    assert verdict("x86_64", 0, arch=0x40000003) == KILLED  # i386
    assert verdict("x86_64", 0x40000000 | 41) == EPERM  # x32
    assert verdict("aarch64", 0, arch=0x40000028) == KILLED  # 32 bit ARM


def test_a_filter_takes_no_capability() -> None:
    script = """
import ctypes, struct
ctypes.CDLL(None).capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))
from mindspore_lite.core import landlock, seccomp
print(seccomp.available())
landlock.no_new_privileges()
seccomp.restrict()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{seccomp.available()}\n"


def test_a_machine_that_is_not_known_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert not seccomp.available()
    assert not seccomp.restrict()
