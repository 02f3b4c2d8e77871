"""Landlock: restricts this thread, and all it starts, to the named files.

The rules hold until the process ends and pass on to threads and children made later. Threads that
run already are not bound by them, so call `restrict` before anything starts one. Landlock decides
over opening, making and removing files, over TCP (ABI 4), and over signals and abstract sockets
that would leave the group of processes under the same rules (ABI 6). It does not decide over stat,
chmod and chown, UDP, or what is open already: see seccomp.py.

This file imports nothing of the package: a child loads it by its path, before anything else.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

# the same numbers on all machines that Linux gained after 2019, and on x86_64
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

_FIRST_RIGHTS = (1 << 13) - 1  # all of ABI 1
_RIGHTS_SINCE = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
_TCP_BIND_AND_CONNECT = 0b11  # ABI 4
_SOCKETS_AND_SIGNALS = 0b11  # ABI 6

_READING = _READ_FILE | _READ_DIR
# plain files and folders; no devices, FIFOs, sockets or links
_WRITING = (
    _READING | _WRITE_FILE | _TRUNCATE | _MAKE_REG | _MAKE_DIR | _REMOVE_FILE | _REMOVE_DIR | _REFER
)
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def abi() -> int:
    """The version of Landlock that the kernel has; 0: it has none, or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    found = _libc().syscall(_long(_CREATE_RULESET), None, _long(0), _long(_VERSION_FLAG))
    return max(0, int(found))


def restrict(
    read: Iterable[str | Path] = (),
    write: Iterable[str | Path] = (),
    *,
    listed: Iterable[str | Path] = (),
    network: bool = False,
) -> int:
    """Bind this thread to these files; returns the ABI, 0 where the kernel has no Landlock.

    Programs cannot be executed any more, not even readable ones; libraries can be loaded.

    Args:
        read: Files and folders that may be read, with all below them. Missing ones are left out.
        write: Folders in which plain files and folders may be made, changed and removed, too.
        listed: Folders whose names may be seen, and those below, but no content.
        network: Whether TCP sockets may be bound and connected.

    Raises:
        OSError: The kernel has Landlock, but refuses the rules.
    """
    version = abi()
    if not version:
        return 0
    handled = _FIRST_RIGHTS | sum(bit for since, bit in _RIGHTS_SINCE if version >= since)
    tcp = _TCP_BIND_AND_CONNECT if version >= 4 and not network else 0
    rules = struct.pack("=QQQ", handled, tcp, _SOCKETS_AND_SIGNALS)
    rules = rules[: 24 if version >= 6 else 16 if version >= 4 else 8]  # what the kernel knows
    made = _libc().syscall(_long(_CREATE_RULESET), rules, _long(len(rules)), _long(0))
    ruleset = _checked("making the rules", made)
    try:
        for paths, rights in ((read, _READING), (write, _WRITING), (listed, _READ_DIR)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        no_new_privileges()
        done = _libc().syscall(_long(_RESTRICT_SELF), _long(ruleset), _long(0))
        _checked("applying the rules", done)
    finally:
        os.close(ruleset)
    return version


def no_new_privileges() -> None:
    """No program that is executed later gains rights, as those with a set-user-id bit do."""
    zero = ctypes.c_ulong(0)
    done = _libc().prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero)
    _checked("giving up new privileges", done)


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return  # what is not there needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _OF_A_FILE
        rule = struct.pack("=Qi", rights, beneath)
        done = _libc().syscall(
            _long(_ADD_RULE), _long(ruleset), _long(_PATH_BENEATH), rule, _long(0)
        )
        _checked(f"a rule for {str(path)!r}", done)
    finally:
        os.close(beneath)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _long(number: int) -> ctypes.c_long:
    """A number as syscall() reads it: a plain int would fill half of a register."""
    return ctypes.c_long(number)


def _checked(doing: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {doing} failed: {os.strerror(number)}")
    return result
