"""The listening socket of a worker: on a path, private, or abstract."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mindspore_lite.errors import ResourceError

BACKLOG = 128
_MAX_PATH_BYTES = 107  # of a socket's address in Linux, without the zero at its end
_PRIVATE_NAME = "worker.sock"
_ALONE_S = 2.0  # how long to wait for another worker that begins in the same directory; guess


class Listener:
    """A listening socket; `address` is what clients are told, a path or "@" and an abstract name.

    It does not block: the accepting thread waits for connections elsewhere. A `folder` is one
    that was made for the socket's file alone, and goes with it.
    """

    def __init__(self, sock: socket.socket, address: str, folder: str | None = None) -> None:
        self.address = address
        self._sock = sock
        self._folder = folder
        self._file = None if address.startswith("@") else os.lstat(address)
        sock.setblocking(False)

    def fileno(self) -> int:
        """The socket's descriptor, to wait for connections on."""
        return self._sock.fileno()

    def accept(self) -> socket.socket:
        """The next connection."""
        return self._sock.accept()[0]

    def stop(self) -> None:
        """Take no more connections, and wake a thread that waits. Harmless when repeated."""
        # the file goes first: while we listen, no other worker takes it for a left-over and
        # puts its own there, which would then be the one that is removed
        if self._file is not None:
            with suppress(OSError):
                if os.path.samestat(os.lstat(self.address), self._file):
                    os.unlink(self.address)
            self._file = None
        if self._folder is not None:
            with suppress(OSError):
                os.rmdir(self._folder)
            self._folder = None
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop, and let go of the socket; not while another thread waits on it."""
        self.stop()
        self._sock.close()


def abstract_listener() -> Listener:
    """Listens under a name that the kernel chose, and that goes with the socket."""
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind("")
        sock.listen(BACKLOG)
    except OSError as exc:
        raise ResourceError(f"no socket to listen on can be had: {exc.strerror or exc}") from exc
    name = sock.getsockname()
    assert isinstance(name, bytes)
    return Listener(sock, "@" + name[1:].decode())


def path_listener(path: str) -> Listener:
    """Listens at a path; the left-over file of a worker that was killed is replaced.

    Raises:
        ValueError: No socket can have such a path.
        ResourceError: It cannot be had, with the reason.
    """
    if not path:
        raise ValueError("the socket path is empty; choose one in a directory of yours")
    return _listening(os.path.abspath(path))


def private_listener() -> Listener:
    """Listens in a new directory that only the owner may look into; both go with the socket.

    Raises:
        ResourceError: It cannot be had, with the reason.
    """
    try:
        folder = tempfile.mkdtemp(prefix="mslite-", dir=_short_folder())
    except OSError as exc:
        raise ResourceError(f"no directory to listen in can be made: {exc}") from exc
    try:
        return _listening(os.path.join(folder, _PRIVATE_NAME), folder)
    except BaseException:
        with suppress(OSError):
            os.rmdir(folder)
        raise


def _short_folder() -> str:
    """Where temporary files go; /tmp where not every client can name that (Java in a C locale)."""
    found = os.path.abspath(tempfile.gettempdir())
    longest = os.path.join(found, "mslite-12345678", _PRIVATE_NAME)
    return found if longest.isascii() and len(longest) <= _MAX_PATH_BYTES else "/tmp"


def _listening(path: str, folder: str | None = None) -> Listener:
    _check_path(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone(os.path.dirname(path)):
            _remove_stale(path)
            before = os.umask(0o177)  # for the owner alone
            try:
                sock.bind(path)
            finally:
                os.umask(before)
            sock.listen(BACKLOG)
        return Listener(sock, path, folder)
    except OSError as exc:
        sock.close()
        raise ResourceError(f"cannot listen on {path!r}: {exc.strerror or exc}") from exc


def _check_path(path: str) -> None:
    size = len(os.fsencode(path))
    if size > _MAX_PATH_BYTES:
        raise ValueError(
            f"socket path {path!r} has {size} bytes, at most {_MAX_PATH_BYTES} are possible; "
            "choose a shorter one"
        )
    try:
        path.encode()  # as clients are told of it
    except UnicodeEncodeError:
        raise ValueError(f"socket path {path!r} is not UTF-8; choose another one") from None


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Have no other worker look at a left-over file in this directory at the same time.

    Two that find the same one would both remove it, and the second the first one's new socket with
    it. A courtesy among workers: one that cannot lock the directory in time goes on anyway.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise OSError(errno.ENOENT, f"there is no directory {folder!r}; make it first") from None
    except PermissionError:
        yield
        return
    try:
        due_s = time.monotonic() + _ALONE_S
        while not _locked(descriptor) and time.monotonic() < due_s:
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # and with it the lock


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _remove_stale(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "that is a directory; name a file in it")
        if not stat.S_ISSOCK(mode):
            raise OSError(
                errno.EEXIST, "there is a file that is no socket; remove it, or choose another path"
            )
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # it lives, and has much to do
            pass
    raise OSError(errno.EADDRINUSE, "another worker listens there; end it, or choose another path")
