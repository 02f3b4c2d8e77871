"""Whether a worker grows: cycles go in, what the process holds before and after them comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mindspore_lite.remote.wire.bodies import Build
from mindspore_lite.remote.wire.client import WireSession

Holdings = dict[str, int]


def _read(file: Path) -> str:
    """What a file of /proc says; nothing of a thread that ended just now."""
    try:
        return file.read_text()
    except OSError:
        return ""


def holdings(pid: int) -> Holdings:
    """What a process has: descriptors, threads, children, memory shared and its own."""
    root = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (root / "status").read_text().splitlines())
    children = [_read(file).split() for file in root.glob("task/*/children")]
    memory = {name: int(status[name].split()[0]) for name in ("RssAnon", "RssShmem")}
    return {
        "descriptors": len(list((root / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "children": sum(map(len, children)),
        "shared KiB": memory["RssShmem"],
        "own KiB": memory["RssAnon"],
    }


def build_and_close(session: WireSession, build: Build, arrays: list[np.ndarray]) -> None:
    """One cycle: a model is built, run once, and closed."""
    model = session.build(build)
    model.predict(arrays)
    model.close()


def grown(
    pids: Sequence[int], cycle: Callable[[], object], count: int
) -> list[tuple[Holdings, Holdings]]:
    """What each process holds before and after so many cycles; some more come first."""
    for _ in range(max(2, count // 10)):  # until the allocator has what it needs
        cycle()
    before = [holdings(pid) for pid in pids]
    for _ in range(count):
        cycle()
    return list(zip(before, map(holdings, pids), strict=True))
