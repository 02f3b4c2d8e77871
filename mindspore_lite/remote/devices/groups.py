"""Divides the usable cores among cpu devices.

A group is an affinity mask. The cores are taken in the order of their NUMA nodes, hyper-threads of
one physical core side by side, and cut into as many runs as there are devices. A physical core is
cut only where devices outnumber physical cores. The groups' numbers of (physical) cores differ by
one at most, since the slowest part of a batch decides how long it takes; which groups get the one
more is chosen so that as few groups as possible reach across nodes.

A mask does not say how many of its cores it may keep busy when a cgroup quota allows
fewer: each process would see the whole quota and take it for its own. So a group says how many
threads to start in it: its physical cores, while the quota is dealt out in turn among the groups,
at least one each. They add up to more than the quota only when the groups outnumber it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from mindspore_lite.core import cores as machine
from mindspore_lite.core.cores import Cores
from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineError


@dataclass(frozen=True)
class CoreGroup:
    """Where a device's process runs."""

    cores: tuple[int, ...]  # its affinity mask
    threads: int  # of one request, unless the user asks for another number


def masks(target: str, ids: Sequence[int], core_list: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """The affinity mask of each device's process; () leaves it as it is.

    Args:
        target: "cpu", "gpu" or "ascend".
        ids: The devices.
        core_list: The cores to share out; none are all that this process may use.

    Raises:
        EngineError: There is no such device or core.
    """
    if target == "gpu" or (target == "ascend" and not ascend.require()):
        return [()] * len(ids)  # the card computes, and whether it is there its process finds out
    usable = machine.usable()
    try:
        wanted = usable.checked_list(core_list)
        if wanted:
            usable = machine.usable(wanted)
        if target == "cpu":
            found = groups(usable, ids)
        else:
            for number in ids:
                ascend.check_device(f"target {target!r}", number)
            found = shared_groups(usable, ids)
    except ValueError as exc:
        raise EngineError(str(exc)) from exc
    # every process would take the whole of a quota for its own: so it sees fewer cores
    is_scarce = usable.limit < len(usable.ids)
    return [group.cores[: group.threads] if is_scarce else group.cores for group in found]


def groups(cores: Cores, ids: Sequence[int]) -> list[CoreGroup]:
    """The group of each id: device i is the i-th of (greatest id + 1) disjoint groups.

    Raises:
        ValueError: There are not enough cores for such a device.
    """
    missing = sorted({i for i in ids if not 0 <= i < len(cores.ids)})
    if missing:
        raise ValueError(
            f"cpu device ids {list(ids)} hold {missing}, but this process may use "
            f"{len(cores.ids)} cores {list(cores.ids)}, one at least for each device, so cpu "
            f"devices 0 to {len(cores.ids) - 1} exist; name some of them"
        )
    found = _groups(cores, max(ids) + 1)
    return [found[i] for i in ids]


def shared_groups(cores: Cores, ids: Sequence[int]) -> list[CoreGroup]:
    """The group of each id of made-up devices, of which there may be more than cores.

    The devices that are named share all the cores; with too few cores they get them in turn.
    """
    named = sorted(set(ids))
    found = _groups(cores, min(len(named), len(cores.ids)))
    return [found[named.index(i) % len(found)] for i in ids]


def _groups(cores: Cores, count: int) -> list[CoreGroup]:
    physical = {core.id: core.physical for core in cores.topology}
    node = {i: at for at, members in enumerate(cores.nodes) for i in members}
    order = sorted(cores.ids, key=lambda i: (node[i], min(physical[i]), i))
    units: list[list[int]] = []  # what is not cut: physical cores, if there are enough of them
    for i in order:
        if units and cores.physical >= count and physical[units[-1][0]] == physical[i]:
            units[-1].append(i)
        else:
            units.append([i])
    sizes = _sizes([node[unit[0]] for unit in units], count)
    masks = [
        tuple(i for unit in units[end - size : end] for i in unit)
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    threads = _threads([len({physical[i] for i in mask}) for mask in masks], cores.limit)
    return [CoreGroup(mask, number) for mask, number in zip(masks, threads, strict=True)]


def _sizes(nodes: Sequence[int], count: int) -> list[int]:
    """Units per group, from the node of each unit: near equal, reaching across few nodes.

    CoreGroup by group, and for each number of groups that got one more so far, the best way to come
    there is kept. Among equals the larger groups come first.
    """
    each, more = divmod(len(nodes), count)
    ways: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}  # nodes crossed, 0 for one more
    for group in range(count):
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        for used, (reach, less) in ways.items():
            start = group * each + used
            for extra in (0, 1) if used < more else (0,):
                last = start + each + extra - 1
                way = (reach + nodes[last] - nodes[start], (*less, 1 - extra))
                longer[used + extra] = min(way, longer.get(used + extra, way))
        ways = longer
    return [each + 1 - less for less in ways[more][1]]


def _threads(sizes: Sequence[int], limit: int) -> list[int]:
    """Threads per group, from its physical cores: dealt out in turn until the limit is reached."""
    turns = sorted((turn, group) for group, size in enumerate(sizes) for turn in range(size))
    dealt = Counter(group for _, group in turns[: max(limit, len(sizes))])
    return [dealt[group] for group in range(len(sizes))]
