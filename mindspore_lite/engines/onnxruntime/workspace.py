"""Scratch memory that the sessions of groups share; it lives as long as one of them.

ONNX Runtime's environment has room for one such allocator. A session takes the one that is
registered when it is opened, and registering another leaves the old one to those that took it. So
all groups of a process that share their scratch memory share it with each other. What its sessions
gave back is kept for the next run, as in a session's own allocator; when the last of them is gone a
fresh allocator takes its place, and the memory goes back to the system.

After a fork the child begins anew, because a thread that does not exist there may have been inside
the old allocator.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from mindspore_lite.core.fork import after_fork_in_child

ENTRIES = {
    "session.use_env_allocators": "1",
    # else weights that are not mapped would lie among the scratch memory, and never leave it
    "session.use_device_allocator_for_initializers": "1",
}


class Lease:
    """A session holds one as long as it lives; all that live at the same time hold the same."""


class Workspace:
    """The allocator that is registered, and whether anybody uses it."""

    def __init__(self, register: Callable[[], None]) -> None:
        """`register` makes an allocator and puts it into the place of the one before."""
        self._register = register
        self._begin()
        after_fork_in_child(self._begin)

    def _begin(self) -> None:
        self._lock = threading.RLock()  # a lease may end while its own thread takes another
        self._lease: Callable[[], Lease | None] = lambda: None

    def lease(self) -> Lease:
        """To be taken before a session is opened, and held with it."""
        with self._lock:
            found = self._lease()
            if found is None:
                self._register()
                found = Lease()
                self._lease = weakref.ref(found)
                weakref.finalize(found, self._ended).atexit = False
            return found

    def _ended(self) -> None:
        with self._lock:
            if self._lease() is None:  # nobody took another meanwhile
                self._register()
