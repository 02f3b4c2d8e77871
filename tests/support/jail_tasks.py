"""Tasks that tests run in a jail: some behave, some try to break out, some crash."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Arguments = dict[str, Any]


def echo(arguments: Arguments, blobs: list[bytes]) -> Any:
    return [arguments, [blob.decode() for blob in blobs]]


def warn(arguments: Arguments, blobs: list[bytes]) -> None:
    warnings.warn("look \x1b[31mhere", RuntimeWarning, stacklevel=1)


def state(arguments: Arguments, blobs: list[bytes]) -> Any:
    """What the process is, as it sees itself."""
    return {
        "environment": dict(os.environ),
        "descriptors": sorted(_open_descriptors()),
        "group": os.getpgid(0) == os.getpid(),
        "status": Path("/proc/self/status").read_text().splitlines(),
        "stdin": sys.stdin.read(),
        "dont_write_bytecode": sys.dont_write_bytecode,
    }


def _open_descriptors() -> list[int]:
    found = []
    for number in range(64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def crash(arguments: Arguments, blobs: list[bytes]) -> None:
    ctypes.string_at(0)


def abort(arguments: Arguments, blobs: list[bytes]) -> None:
    os.abort()


def spin(arguments: Arguments, blobs: list[bytes]) -> None:
    while True:
        pass


def pair(arguments: Arguments, blobs: list[bytes]) -> Any:
    """Whether descriptors could be hidden in a socket."""
    try:
        socket.socketpair()
    except PermissionError:
        return "refused"
    return "made"


def hang(arguments: Arguments, blobs: list[bytes]) -> None:
    threading.Event().wait()


def close_and_hang(arguments: Arguments, blobs: list[bytes]) -> None:
    """Hang with both pipes closed, so that only the process itself tells its end."""
    os.closerange(2, 64)
    threading.Event().wait()


def fill_files(arguments: Arguments, blobs: list[bytes]) -> None:
    """Write files of an allowed size for ever, in the way that is asked for."""
    folder, held = Path(os.environ["TMPDIR"]), []
    for number in range(1 << 30):
        if arguments["how"] == "memory":
            file = os.memfd_create("more")
        else:
            path = folder / str(number)
            file = os.open(path, os.O_RDWR | os.O_CREAT)
            if arguments["how"] == "removed":
                path.unlink()
        if arguments["how"] != "empty":
            os.write(file, bytes(4 << 20))
        if arguments["how"] in ("named", "empty"):
            os.close(file)
        else:
            held.append(file)
            if len(held) > 100:
                threading.Event().wait()


def eat_at_once(arguments: Arguments, blobs: list[bytes]) -> None:
    bytearray(1 << 40)


def eat_slowly(arguments: Arguments, blobs: list[bytes]) -> None:
    held = []
    while True:
        held.append(bytearray(16 << 20))


def fill_a_file(arguments: Arguments, blobs: list[bytes]) -> None:
    with open(Path(os.environ["HOME"], "file"), "wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()


def raise_one(arguments: Arguments, blobs: list[bytes]) -> None:
    from mindspore_lite import errors

    kind = getattr(errors, arguments["kind"])
    raise kind(arguments["text"], *arguments.get("more", []))


def raise_other(arguments: Arguments, blobs: list[bytes]) -> None:
    raise KeyError("a slip")


def lie(arguments: Arguments, blobs: list[bytes]) -> None:
    """Write bytes of the test's choice in place of a reply, as a child that was taken over."""
    os.write(int(sys.argv[2]), bytes.fromhex(arguments["reply"]))
    os._exit(0)


def flood(arguments: Arguments, blobs: list[bytes]) -> None:
    """Write replies without end."""
    while True:
        os.write(int(sys.argv[2]), bytes(1 << 16))


def chatter(arguments: Arguments, blobs: list[bytes]) -> str:
    """Write more to standard error than a pipe holds."""
    os.write(2, b"x" * 1_000_000)
    return "done"


def thread(arguments: Arguments, blobs: list[bytes]) -> list[int]:
    found: list[int] = []
    one = threading.Thread(target=found.append, args=(7,))
    one.start()
    one.join()
    return found


def probe(arguments: Arguments, blobs: list[bytes]) -> dict[str, str]:
    """Try to break out in every way; returns what each try met."""
    outside, output, parent = arguments["outside"], arguments["output"], arguments["parent"]
    address = tuple(arguments["address"])
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*numbers: int) -> None:
        ctypes.set_errno(0)
        if libc.syscall(*(ctypes.c_long(number) for number in numbers)) < 0:
            raise OSError(ctypes.get_errno(), "refused")

    tries: dict[str, Callable[[], object]] = {
        "read the model": lambda: Path(arguments["model"]).read_bytes(),
        "write the output": lambda: Path(output, "file").write_bytes(b"x"),
        "read outside": lambda: Path(outside).read_bytes(),
        "write outside": lambda: Path(outside).write_bytes(b"x"),
        "write the model": lambda: Path(arguments["model"]).write_bytes(b"x"),
        "make a file in /tmp": lambda: Path("/tmp/mslite-escaped").write_bytes(b"x"),
        "remove outside": lambda: os.unlink(outside),
        "read the parent's memory": lambda: Path(f"/proc/{parent}/mem").read_bytes(),
        "read the parent's environment": lambda: Path(f"/proc/{parent}/environ").read_bytes(),
        "change a mode": lambda: os.chmod(outside, 0o777),
        "change a time": lambda: os.utime(outside),
        "change an owner": lambda: os.chown(outside, os.getuid(), os.getgid()),
        "link out": lambda: os.symlink(outside, Path(output, "link")),
        "name a file twice": lambda: os.link(arguments["model"], Path(output, "twice")),
        "TCP": lambda: socket.create_connection(address),
        "UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", address),
        "a Unix socket": lambda: socket.socket(socket.AF_UNIX),
        "a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "execute": lambda: subprocess.run(["/bin/true"], check=True),
        "fork": os.fork,
        "signal the parent": lambda: os.kill(parent, 0),
        "end the parent": lambda: os.kill(parent, signal.SIGTERM),
        "signal everybody": lambda: os.kill(-1, 0),
        "limit the parent": lambda: _limit(parent),
        "bind the parent to a core": lambda: os.sched_setaffinity(parent, {0}),
        "trace the parent": lambda: call(101, 16, parent, 0, 0),
        "a namespace": lambda: call(272, 0x10000000),
        "io_uring": lambda: call(425, 1, 0),
        "shared memory that stays": lambda: call(29, 0, 4096, 0o1600),
        "outlive the parent": lambda: call(157, 1, 0),
        "raise the CPU limit": lambda: _raise_limit(),
    }
    return {what: _met(work) for what, work in tries.items()}


def _limit(process: int) -> None:
    import resource

    resource.prlimit(process, resource.RLIMIT_NOFILE, (64, 64))


def _raise_limit() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _met(work: Callable[[], object]) -> str:
    try:
        work()
    except (OSError, ValueError) as exc:
        return type(exc).__name__
    return "done"


# --- children that were taken over: they write another folder than the compiler would -------------


def write_nothing(arguments: Arguments, blobs: list[bytes]) -> dict[str, Any]:
    return {}


def write_a_link(arguments: Arguments, blobs: list[bytes]) -> dict[str, Any]:
    """Landlock refuses links, so one with two names stands in where it does."""
    folder = Path(arguments["folder"])
    (folder / "skeleton.onnx").write_bytes(b"")
    try:
        (folder / "model.onnx").symlink_to("/etc/passwd")
    except OSError:
        os.link(folder / "skeleton.onnx", folder / "model.onnx")
    return {}


def write_a_folder(arguments: Arguments, blobs: list[bytes]) -> dict[str, Any]:
    folder = Path(arguments["folder"])
    (folder / "skeleton.onnx").write_bytes(b"")
    (folder / "model.onnx").mkdir()
    return {}


def write_a_stranger(arguments: Arguments, blobs: list[bytes]) -> dict[str, Any]:
    for name in ("skeleton.onnx", "model.onnx", "stranger"):
        Path(arguments["folder"], name).write_bytes(b"")
    return {}


def say_nonsense(arguments: Arguments, blobs: list[bytes]) -> Any:
    return {"open": 7}
