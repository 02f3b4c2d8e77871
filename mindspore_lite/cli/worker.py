"""`mslite worker`: a process that serves models to programs that speak its protocol."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from mindspore_lite.cli.console import fail

_MOST_CORES = 1 << 16  # more than any machine has


def worker(
    *,
    socket: str | None = None,
    stay: Annotated[bool, Parameter(negative="")] = False,
    fd: int | None = None,
    private: Annotated[bool, Parameter(negative="")] = False,
    cores: str | None = None,
) -> None:
    """Host models for other programs, in a process of their own.

    Parameters
    ----------
    socket
        The path to listen on; programs of the same user connect to it.
    stay
        Go on when the last client has left, and when the process that started the worker ends.
    fd
        Instead of a path: the number of an inherited socket, connected to the parent.
    private
        Instead of a path: listen in a new directory for the parent; the path is printed on stdout.
    cores
        The cores to use, such as 0-3,6; without it, all that the process may use.
    """
    if (socket is not None) + (fd is not None) + private != 1:
        fail(
            "worker wants one of --socket PATH, --fd N or --private (see mslite worker --help)",
            code=2,
        )
    if stay and socket is None:
        fail("--stay goes with --socket: any other worker ends with its parent", code=2)
    wanted = [] if cores is None else core_list(cores)
    from mindspore_lite.remote.worker.start import serve_descriptor, serve_path, serve_private

    if socket is not None:
        serve_path(socket, wanted, stays=stay)
    elif fd is not None:
        serve_descriptor(fd, wanted)
    else:
        serve_private(wanted)


def core_list(text: str) -> list[int]:
    """0-2,5 -> 0, 1, 2, 5.

    Raises:
        ValueError: The text is no such list.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else -1
        if not first <= last < _MOST_CORES:
            raise ValueError(f"--cores is {text!r}, wanted numbers and ranges, such as 0-3,6")
        found.update(range(first, last + 1))
    return sorted(found)
