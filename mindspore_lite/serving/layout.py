"""Decides how many workers there are, with how many threads, on which cores.

C is the number of usable cores (affinity mask and cgroup quotas, a fraction counts as one), D the
number of physical cores among them. W and T are workers and threads as asked for, 0 is automatic.

    W  T   workers      threads           a request gets
    0  0   C            1                 D threads when alone, half of them next to another one,
                                          and so on, 1 in a crowd
    W  0   W            min(D, C // W)    the same widths, down to these threads
    0  T   C // T       T                 T threads
    W  T   W            T                 T threads

Nothing goes below 1; automatic numbers end at 1024, greater wishes are errors. Only wishes can ask
for more threads than C; the layout then is as asked for, with a warning.

On cards (card_layout) a worker is a stream on one of them, and no thread of it computes.

Workers are bound to disjoint cores by affinity mode 1 or by a list (in mode 0 or 1); bound workers
keep one width. Mode 1 deals cores: physical ones before hyper-threads, big before small, NUMA nodes
in turn, each worker inside one node as long as any node has room for it. A list is cut into W
slices of T in its own order; what of W and T is automatic follows from its length, T being 1 when
both are.

The function is pure: it reads the record, no file and no clock, and what it returns never changes.
A runner calls it once, when it is built, on the thread that builds; all threads may read a Layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mindspore_lite.core.cores import Cores, default_threads

_MOST = 1024  # guess: a greater number is a slip of the pen, not a machine
_MOST_LANES = 8  # each lane of a width above 1 is a session: 15 of them on a large machine


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; 0 and () mean automatic."""

    workers: int = 0
    threads: int = 0
    affinity_mode: int = 0
    core_list: tuple[int, ...] = ()


@dataclass(frozen=True)
class Layout:
    """Who runs where, settled."""

    workers: int  # requests that may run at the same time
    threads: int  # of one request when all workers are busy
    widths: tuple[int, ...]  # threads a request may get, widest first, ending in `threads`
    cores: tuple[tuple[int, ...], ...]  # per worker, the cores it is bound to; () when not bound
    nodes: tuple[int, ...]  # per worker, its NUMA node's place in Cores.nodes; -1 when not bound
    usable: int  # how many cores there are to use
    limit_from: str  # what says so
    warning: str = ""  # set when the user asked for more threads than there are cores
    devices: tuple[str, ...] = ()  # per worker, the card it computes on; () on the CPU

    def lanes(self, width: int) -> int:
        """How many requests of that width may run at once without more threads than cores.

        At the last width it is all the workers, even where the user asked for too many.
        """
        if width == self.threads:
            return self.workers
        return min(self.workers, max(1, self.usable // width))


def layout(cores: Cores, wanted: Wanted) -> Layout:
    """Settle what is automatic by the rules above; ValueError for what cannot be."""
    _check(wanted)
    if wanted.core_list:
        workers, threads = _counts_of_list(cores, wanted)
    else:
        workers, threads = _counts(cores, wanted)
    bound = _bound(cores, wanted, workers, threads)
    adapts = not bound and not wanted.threads
    wider = [w for w in _automatic_widths(cores) if w > threads] if adapts else []
    place = {core: at for at, node in enumerate(cores.nodes) for core in node}
    return Layout(
        workers=workers,
        threads=threads,
        widths=(*wider, threads),
        cores=bound or ((),) * workers,
        nodes=tuple(place.get(slot[0], -1) for slot in bound) or (-1,) * workers,
        usable=cores.limit,
        limit_from=cores.limit_from,
        warning=_warning(cores, workers, threads),
    )


def card_layout(cores: Cores, devices: tuple[str, ...]) -> Layout:
    """Workers that compute on cards, one for each device that is named."""
    count = len(devices)
    check_workers(count)
    return Layout(
        workers=count,
        threads=1,
        widths=(1,),
        cores=((),) * count,
        nodes=(-1,) * count,
        usable=cores.limit,
        limit_from=cores.limit_from,
        devices=devices,
    )


def check_workers(count: int) -> None:
    """Refuse a number of workers that no machine has, before anything is made for each of them.

    Raises:
        ValueError: It is too large.
    """
    _check(Wanted(workers=count))


def _check(wanted: Wanted) -> None:
    if wanted.affinity_mode not in (0, 1):
        raise ValueError(
            f"thread affinity mode is {wanted.affinity_mode}, but concurrent inference supports "
            "0 (none) and 1 (big cores first); choose one of them, or name the cores in a thread "
            "affinity core list"
        )
    for name, number in {"workers": wanted.workers, "threads": wanted.threads}.items():
        if not 0 <= number <= _MOST:
            raise ValueError(
                f"{number} {name} were asked for, wanted 1 to {_MOST}, or 0 for automatic"
            )


def _counts(cores: Cores, wanted: Wanted) -> tuple[int, int]:
    """Workers and threads when there is no list."""
    workers, threads = wanted.workers, wanted.threads
    if workers and not threads:
        threads = max(1, min(_most_threads(cores), cores.limit // workers))
    elif not workers:
        threads = threads or 1
        workers = max(1, min(_MOST, cores.limit // threads))
    return workers, threads


def _counts_of_list(cores: Cores, wanted: Wanted) -> tuple[int, int]:
    """Workers and threads that a core list has room for."""
    given = list(cores.checked_list(wanted.core_list))
    workers, threads = wanted.workers, wanted.threads
    named = f"thread affinity core list {given} has {len(given)} cores"
    usable = f"usable are {list(cores.ids)}"
    if workers and threads:
        if len(given) != workers * threads:
            raise ValueError(
                f"{named}, wanted {workers * threads}: {threads} for each of {workers} workers; "
                f"{usable}"
            )
        return workers, threads
    group = workers or threads or 1
    if len(given) % group:
        shared = f"{workers} workers" if workers else f"workers of {threads} threads"
        raise ValueError(f"{named}, wanted a multiple of {group} to share among {shared}; {usable}")
    count = len(given) // group
    if count > _MOST:
        raise ValueError(
            f"{named}, which makes {count} {'threads' if workers else 'workers'}, wanted at most "
            f"{_MOST}; name fewer cores, or set workers_num and thread_num"
        )
    return (workers, count) if workers else (count, group)


def _most_threads(cores: Cores) -> int:
    return min(_MOST, default_threads(cores))


def _automatic_widths(cores: Cores) -> list[int]:
    """All physical cores, half of them, and so on while there are few lanes of that width; 1."""
    width = _most_threads(cores)
    found: list[int] = []
    while width > 1 and (not found or cores.limit // width <= _MOST_LANES):
        found.append(width)
        width //= 2
    return [*found, 1]


def _bound(cores: Cores, wanted: Wanted, workers: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """The cores of each worker; () when nothing is bound."""
    if wanted.core_list:
        return tuple(
            wanted.core_list[at : at + threads] for at in range(0, workers * threads, threads)
        )
    if wanted.affinity_mode == 0:
        return ()
    if workers * threads > len(cores.ids):
        raise ValueError(
            f"{workers} workers of {threads} threads cannot be bound to {len(cores.ids)} cores "
            f"{list(cores.ids)}, wanted {workers * threads}; ask for fewer workers or threads, or "
            "for thread affinity mode 0"
        )
    return tuple(_dealt(cores, workers, threads))


def _dealt(cores: Cores, workers: int, threads: int) -> Iterator[tuple[int, ...]]:
    """Cores per worker in mode 1; there must be enough."""
    order = cores.ordered(1)
    physical = set(order[: cores.physical])
    free = [[core for core in order if core in node] for node in cores.nodes]  # next turn first
    for _ in range(workers):
        fits = [n for n in free if len(physical.intersection(n)) >= threads]
        fits = fits or [n for n in free if len(n) >= threads]
        if fits:
            free.remove(fits[0])
            free.append(fits[0][threads:])
            yield tuple(fits[0][:threads])
        else:  # the fullest nodes first, so that the worker spans as few as possible
            rest = [core for node in sorted(free, key=len, reverse=True) for core in node]
            taken = tuple(rest[:threads])
            free = [[core for core in node if core not in taken] for node in free]
            yield taken


def _warning(cores: Cores, workers: int, threads: int) -> str:
    if workers * threads <= cores.limit:
        return ""
    return (
        f"{workers} workers of {threads} threads make {workers * threads} threads, but "
        f"{cores.limit} cores are usable ({cores.limit_from}), so the threads take turns; "
        "set workers_num or thread_num lower, or to 0 for automatic"
    )
