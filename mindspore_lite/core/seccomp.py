"""A seccomp filter: system calls refused to a jailed process, beyond Landlock's rules.

Refused with EPERM: sockets of every kind and io_uring (no network, TCP or other), executing and
forking (threads are fine), looking into or signalling other processes, making namespaces and
mounts, changing modes, owners and times of files (which Landlock leaves alone), the scheduling and
limits of other processes, and objects that outlive the process (System V memory, message queues).
Written for x86_64 and aarch64.

This file imports nothing of the package: a child loads it by its path, before anything else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_SET_SECCOMP, _FILTER = 22, 2  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # struct seccomp_data, little endian
_X32 = 0x40000000  # system calls of the x32 ABI are numbered from here
_CLONE_THREAD = 0x10000
_SET_PDEATHSIG = 1

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_MACHINES = tuple(_ARCHITECTURES)

# numbers on x86_64 and aarch64; None: there is no such call
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "socketpair": (53, 199),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "memfd_secret": (447, 447),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# allowed where the first argument, a process, is this one; 0 names it, too
_OWN_ONLY = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
_CLONE, _CLONE3, _PRCTL = (56, 220), (435, 435), (157, 167)


def available() -> bool:
    """Whether `restrict` can do its work here: the machine is known, the kernel has filters."""
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        return False
    # with a null filter, a kernel that has filters finds the address bad
    done = _prctl(_SET_SECCOMP, _FILTER, None)
    return done < 0 and ctypes.get_errno() == errno.EFAULT


def restrict() -> bool:
    """Refuse the calls to this thread and all that it starts; False: it cannot be done here.

    The process must have given up new privileges (landlock.no_new_privileges).

    Raises:
        OSError: The kernel has filters, but refuses this one.
    """
    if not available():
        return False
    code = program(platform.machine(), os.getpid())
    kept = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count of instructions of 8 bytes, and where they are
    head = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    if _prctl(_SET_SECCOMP, _FILTER, head) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: applying the filter failed: {os.strerror(number)}")
    return True


def program(machine: str, process: int) -> bytes:
    """The filter in BPF for a machine and the process with this number."""
    at = _MACHINES.index(machine)
    code = [
        _instruction(_LOAD, _ARCH_AT),
        _instruction(_EQUAL, _ARCHITECTURES[machine], if_true=1),
        _instruction(_RETURN, _KILL),  # a call in the way of another machine, as of i386
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        code += [_instruction(_AT_LEAST, _X32, if_false=1), _refusal(errno.EPERM)]
    for numbers in _REFUSED.values():
        number = numbers[at]
        if number is not None:
            code += [_instruction(_EQUAL, number, if_false=1), _refusal(errno.EPERM)]
    # C libraries use clone when the kernel seems not to have clone3, whose flags cannot be seen
    code += [_instruction(_EQUAL, _CLONE3[at], if_false=1), _refusal(errno.ENOSYS)]
    for pair in _OWN_ONLY.values():
        code += _if_first_argument(pair[at], [(_EQUAL, 0), (_EQUAL, process)])
    code += _if_first_argument(_CLONE[at], [(_ANY_BIT, _CLONE_THREAD)])
    code += _unless_first_argument(_PRCTL[at], _SET_PDEATHSIG)
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _if_first_argument(number: int, tests: list[tuple[int, int]]) -> list[bytes]:
    """Allow a call if its first argument passes one of the tests, else refuse it."""
    body = [_instruction(_LOAD, _FIRST_ARGUMENT_AT)]
    for left, (how, value) in zip(range(len(tests), 0, -1), tests, strict=True):
        body.append(_instruction(how, value, if_true=left))  # over the tests left and the refusal
    body += [_refusal(errno.EPERM), _instruction(_RETURN, _ALLOW)]
    return [_instruction(_EQUAL, number, if_false=len(body)), *body]


def _unless_first_argument(number: int, value: int) -> list[bytes]:
    """Refuse a call with this first argument, else allow it."""
    body = [
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_EQUAL, value, if_false=1),
        _refusal(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    return [_instruction(_EQUAL, number, if_false=len(body)), *body]


def _refusal(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """struct sock_filter; the jumps say how many instructions to pass over."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _prctl(what: int, how: int, value: bytes | None) -> int:
    zero = ctypes.c_ulong(0)
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.prctl(what, ctypes.c_ulong(how), value, zero, zero))
