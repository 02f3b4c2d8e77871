"""The CPU cores that this process may use, from /proc, /sys and the affinity mask.

The mask says which cores, the cgroup quotas say how many of them may be busy at once. A fraction
of a core counts as one. Everything is read again on each call, since containers are resized.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SAME_CLASS = 0.9  # guess: boost clocks of equal cores differ by less than a tenth


@dataclass(frozen=True)
class Core:
    """One logical processor."""

    id: int
    physical: tuple[int, ...]  # the logical processors of the same physical core, this one included
    speed: int  # relative; 0 when the machine does not say


@dataclass(frozen=True)
class Cores:
    """The processors of this process, and how many of them it may keep busy."""

    ids: tuple[int, ...]
    limit: int
    limit_from: str  # "affinity mask", or the quota that is smaller
    physical: int  # distinct physical cores among ids
    nodes: tuple[tuple[int, ...], ...]  # ids by NUMA node, each id once
    topology: tuple[Core, ...]  # one per id

    def ordered(self, mode: int) -> tuple[int, ...]:
        """The ids in order of preference.

        Mode 1: one processor of each physical core before its hyper-threads, big cores first.
        Mode 2: the same, but the biggest class goes last; without classes it equals mode 1.
        """
        if mode not in (1, 2):
            raise ValueError(f"thread affinity mode is {mode}, wanted 1 (big) or 2 (middle)")
        classes = _classes([core.speed for core in self.topology])

        def preference(core: Core) -> tuple[int, bool, int, int]:
            siblings = [i for i in core.physical if i in self.ids]
            rank = classes[core.speed]
            return (siblings.index(core.id), mode == 2 and rank == 0, rank, core.id)

        return tuple(core.id for core in sorted(self.topology, key=preference))

    def pick(self, mode: int, count: int, core_list: Sequence[int] = ()) -> tuple[int, ...]:
        """The cores to bind `count` threads to; () means no binding. A list wins over the mode."""
        if core_list:
            if len(self.checked_list(core_list)) < count:
                raise ValueError(
                    f"thread affinity core list {list(core_list)} has {len(core_list)} cores, "
                    f"wanted at least one for each of {count} threads"
                )
            return tuple(core_list[:count])
        if mode == 0:
            return ()
        if mode not in (1, 2):
            raise ValueError(
                f"thread affinity mode is {mode}, wanted 0 (none), 1 (big) or 2 (middle)"
            )
        if count > len(self.ids):
            raise ValueError(
                f"{count} threads cannot be bound to {len(self.ids)} cores {list(self.ids)}; "
                "ask for fewer threads, or for thread affinity mode 0"
            )
        return self.ordered(mode)[:count]

    def checked_list(self, core_list: Sequence[int]) -> tuple[int, ...]:
        """A list that the user wrote, if each of its cores is usable and named once."""
        given = list(core_list)
        outside = sorted(set(given) - set(self.ids))
        if outside:
            raise ValueError(
                f"thread affinity core list {given} holds {outside}, which this process may not "
                f"use; wanted some of {list(self.ids)}"
            )
        if len(set(given)) != len(given):
            raise ValueError(
                f"thread affinity core list {given} holds a core twice; name each once"
            )
        return tuple(given)


def default_threads(cores: Cores) -> int:
    """Threads for one request by default: physical cores within the quota, at least one.

    Hyper-threads share the units that matrix products keep busy, so they are left out.
    """
    return max(1, min(cores.physical, cores.limit))


def usable(
    mask: Iterable[int] | None = None,
    sys_root: Path = Path("/sys"),
    proc_root: Path = Path("/proc"),
) -> Cores:
    """Read what this process may use; mask None asks the kernel for the calling thread's."""
    ids = tuple(sorted(os.sched_getaffinity(0) if mask is None else mask))
    topology = tuple(_core(i, sys_root / "devices/system/cpu") for i in ids)
    limit, limit_from = len(ids), "affinity mask"
    for quota, name in _quotas(sys_root / "fs/cgroup", proc_root):
        if max(1, math.ceil(quota)) < limit:
            limit, limit_from = max(1, math.ceil(quota)), f"{name} quota {quota:g}"
    return Cores(
        ids=ids,
        limit=limit,
        limit_from=limit_from,
        physical=len({core.physical for core in topology}),
        nodes=_nodes(ids, sys_root / "devices/system/node"),
        topology=topology,
    )


def _classes(speeds: Iterable[int]) -> dict[int, int]:
    """Speed -> class, 0 being the biggest; speeds close to the head of a class belong to it."""
    classes: dict[int, int] = {}
    head, rank = None, -1
    for speed in sorted(set(speeds), reverse=True):
        if head is None or speed < head * _SAME_CLASS:
            head, rank = speed, rank + 1
        classes[speed] = rank
    return classes


def _core(number: int, cpus: Path) -> Core:
    cpu = cpus / f"cpu{number}"
    together = _text(cpu / "topology/core_cpus_list") or _text(
        cpu / "topology/thread_siblings_list"
    )
    physical = _id_list(together)
    speed = _text(cpu / "cpu_capacity") or _text(cpu / "cpufreq/cpuinfo_max_freq")
    return Core(
        number,
        physical if number in physical else (number,),
        int(speed) if speed.isdecimal() else 0,
    )


def _nodes(ids: tuple[int, ...], nodes: Path) -> tuple[tuple[int, ...], ...]:
    """The ids by node; all in one where the machine does not say of each to which it belongs."""
    found = []
    for node in sorted(nodes.glob("node[0-9]*"), key=lambda p: int(p.name[4:])):
        members = set(_id_list(_text(node / "cpulist")))
        found.append(tuple(i for i in ids if i in members))
    if sorted(i for node in found for i in node) != list(ids):
        return (ids,)
    return tuple(node for node in found if node)


def _quotas(mount: Path, proc_root: Path) -> Iterator[tuple[float, str]]:
    """Every CPU quota above this process, as a number of cores, with the name of its kind.

    A container may see the host's path of its cgroup, which does not exist inside; its own limits
    then lie at the mount's root, which the walk upwards reaches in any case.
    """
    for line in _text(proc_root / "self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        folders = tuple(p for p in path.split("/") if p not in ("", ".", ".."))
        for depth in range(len(folders), -1, -1):
            inner = Path(*folders[:depth])
            if number == "0" and not controllers:
                for root in (mount, mount / "unified"):  # the second: v1 and v2 side by side
                    yield from _quota(_text(root / inner / "cpu.max"), "cgroup v2")
            elif "cpu" in controllers.split(","):
                for root in (mount / controllers, mount / "cpu"):
                    quota = _text(root / inner / "cpu.cfs_quota_us")
                    period = _text(root / inner / "cpu.cfs_period_us")
                    yield from _quota(f"{quota} {period}", "cgroup v1")


def _quota(text: str, name: str) -> Iterator[tuple[float, str]]:
    """ "150000 100000" -> 1.5; "max ..." and -1 mean no limit."""
    numbers = text.split()
    if len(numbers) == 2 and all(n.isdecimal() and int(n) > 0 for n in numbers):
        yield int(numbers[0]) / int(numbers[1]), name


def _id_list(text: str) -> tuple[int, ...]:
    """ "0-2,5" -> (0, 1, 2, 5); what cannot be read counts as empty."""
    ids: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            ids.extend(range(int(first), int(last or first) + 1))
    return tuple(ids)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeError):
        return ""
