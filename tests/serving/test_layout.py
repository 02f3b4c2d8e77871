"""Layouts of machines that are built by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.core.cores import Core, Cores, default_threads
from mindspore_lite.serving.layout import Layout, Wanted, layout


def machine(
    *,
    physical: int,
    siblings: int = 1,
    sockets: int = 1,
    speeds: Sequence[int] = (),
    limit: int = 0,
    mask: Sequence[int] = (),
) -> Cores:
    """Numbered as Linux does: the physical cores of all sockets, then their second threads."""
    total = sockets * physical
    topology = []
    for number in mask or range(total * siblings):
        first = number % total
        speed = speeds[first] if speeds else 0
        topology.append(Core(number, tuple(first + total * s for s in range(siblings)), speed))
    ids = tuple(core.id for core in topology)
    nodes = [tuple(i for i in ids if i % total // physical == s) for s in range(sockets)]
    return Cores(
        ids=ids,
        limit=limit or len(ids),
        limit_from="cgroup v2 quota 1.5" if limit else "affinity mask",
        physical=len({core.physical for core in topology}),
        nodes=tuple(node for node in nodes if node),
        topology=tuple(topology),
    )


ONE = machine(physical=1)
FOUR = machine(physical=4)
QUOTA = machine(physical=8, limit=2)
TWO_SOCKETS = machine(physical=8, siblings=2, sockets=2)  # node 0: 0-7 and 16-23
BIG_LITTLE = machine(physical=6, speeds=[400, 400, 400, 400, 1000, 1000])


def sizes(found: Layout) -> tuple[int, int, tuple[int, ...]]:
    return found.workers, found.threads, found.widths


def unbound(found: Layout) -> bool:
    return found.cores == ((),) * found.workers and found.nodes == (-1,) * found.workers


@pytest.mark.parametrize(
    ("cores", "workers", "threads", "expected"),
    [
        (ONE, 0, 0, (1, 1, (1,))),
        (FOUR, 0, 0, (4, 1, (4, 2, 1))),
        (QUOTA, 0, 0, (2, 1, (2, 1))),
        (TWO_SOCKETS, 0, 0, (32, 1, (16, 8, 4, 1))),
        (FOUR, 1, 0, (1, 4, (4,))),
        (FOUR, 2, 0, (2, 2, (4, 2))),
        (FOUR, 3, 0, (3, 1, (4, 2, 1))),
        (TWO_SOCKETS, 1, 0, (1, 16, (16,))),  # hyper-threads are left to others
        (TWO_SOCKETS, 3, 0, (3, 10, (16, 10))),
        (TWO_SOCKETS, 8, 0, (8, 4, (16, 8, 4))),
        (TWO_SOCKETS, 16, 0, (16, 2, (16, 8, 4, 2))),
        (FOUR, 0, 2, (2, 2, (2,))),
        (FOUR, 0, 3, (1, 3, (3,))),
        (QUOTA, 0, 1, (2, 1, (1,))),
        (FOUR, 2, 1, (2, 1, (1,))),
        (FOUR, 2, 2, (2, 2, (2,))),
    ],
)
def test_sizes_without_binding(
    cores: Cores, workers: int, threads: int, expected: tuple[int, int, tuple[int, ...]]
) -> None:
    found = layout(cores, Wanted(workers, threads))
    assert sizes(found) == expected
    assert unbound(found)
    assert found.warning == ""


@pytest.mark.parametrize(
    ("physical", "widths"),
    [
        (1, (1,)),
        (2, (2, 1)),
        (3, (3, 1)),
        (7, (7, 3, 1)),
        (8, (8, 4, 2, 1)),
        (16, (16, 8, 4, 2, 1)),
        (64, (64, 32, 16, 8, 1)),
    ],
)
def test_widths_are_halved_while_there_are_few_lanes(
    physical: int, widths: tuple[int, ...]
) -> None:
    found = layout(machine(physical=physical), Wanted())
    assert found.widths == widths


@pytest.mark.parametrize(
    ("workers", "threads", "expected"),
    [
        (3, 0, (3, 1, (2, 1))),  # more workers than cores do not multiply the threads
        (8, 2, (8, 2, (2,))),
        (0, 4, (1, 4, (4,))),
    ],
)
def test_more_threads_than_cores_are_as_asked_for_and_warned_of(
    workers: int, threads: int, expected: tuple[int, int, tuple[int, ...]]
) -> None:
    found = layout(QUOTA, Wanted(workers, threads))
    assert sizes(found) == expected
    asked = f"{found.workers} workers of {found.threads} threads"
    total = f"make {found.workers * found.threads} threads"
    assert f"{asked} {total}, but 2 cores are usable (cgroup v2 quota 1.5)" in found.warning
    assert "set workers_num or thread_num lower" in found.warning


def test_a_layout_says_what_limits_it() -> None:
    found = layout(QUOTA, Wanted())
    assert (found.usable, found.limit_from) == (2, "cgroup v2 quota 1.5")


def test_lanes_share_out_the_cores() -> None:
    found = layout(TWO_SOCKETS, Wanted())
    assert [found.lanes(width) for width in found.widths] == [2, 4, 8, 32]
    two = layout(TWO_SOCKETS, Wanted(workers=2, threads=1))
    assert two.lanes(1) == 2  # never above the workers


def test_every_worker_has_a_lane_even_when_there_are_too_many() -> None:
    assert layout(QUOTA, Wanted(workers=8, threads=2)).lanes(2) == 8
    assert layout(QUOTA, Wanted(workers=3)).lanes(2) == 1
    assert layout(QUOTA, Wanted(workers=3)).lanes(1) == 3


def test_bound_workers_have_cores_of_their_own_and_one_width() -> None:
    found = layout(FOUR, Wanted(workers=2, affinity_mode=1))
    assert sizes(found) == (2, 2, (2,))
    assert (found.cores, found.nodes) == (((0, 1), (2, 3)), (0, 0))


def test_binding_within_a_quota_takes_no_more_cores_than_that() -> None:
    found = layout(QUOTA, Wanted(affinity_mode=1))
    assert (found.cores, found.widths, found.warning) == (((0,), (1,)), (1,), "")


def test_the_mask_and_not_the_quota_says_how_many_can_be_bound() -> None:
    found = layout(QUOTA, Wanted(workers=4, threads=2, affinity_mode=1))
    assert found.cores == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert "make 8 threads, but 2 cores are usable" in found.warning


def test_big_cores_are_dealt_before_small_ones() -> None:
    found = layout(BIG_LITTLE, Wanted(workers=3, threads=2, affinity_mode=1))
    assert found.cores == ((4, 5), (0, 1), (2, 3))


def test_physical_cores_are_dealt_before_hyper_threads() -> None:
    hyper = machine(physical=2, siblings=2)
    found = layout(hyper, Wanted(workers=4, threads=1, affinity_mode=1))
    assert found.cores == ((0,), (1,), (2,), (3,))
    odd = machine(physical=2, siblings=2, mask=[0, 2, 3])  # 0 and 2 are one core
    found = layout(odd, Wanted(workers=2, threads=1, affinity_mode=1))
    assert found.cores == ((0,), (3,))


def test_workers_are_dealt_to_nodes_in_turn() -> None:
    found = layout(TWO_SOCKETS, Wanted(workers=5, threads=4, affinity_mode=1))
    assert found.nodes == (0, 1, 0, 1, 0)
    assert found.cores == (
        (0, 1, 2, 3),
        (8, 9, 10, 11),
        (4, 5, 6, 7),
        (12, 13, 14, 15),
        (16, 17, 18, 19),
    )


def test_a_full_node_is_passed_over() -> None:
    uneven = machine(physical=4, sockets=2, mask=[0, 4, 5, 6, 7])
    found = layout(uneven, Wanted(workers=4, threads=1, affinity_mode=1))
    assert (found.cores, found.nodes) == (((0,), (4,), (5,), (6,)), (0, 1, 1, 1))


def test_a_physical_core_elsewhere_comes_before_a_hyper_thread_here() -> None:
    uneven = machine(physical=2, siblings=2, sockets=2, mask=[0, 2, 3, 4, 6, 7])
    found = layout(uneven, Wanted(workers=4, threads=1, affinity_mode=1))
    assert (found.cores, found.nodes) == (((0,), (2,), (3,), (4,)), (0, 1, 1, 0))


def test_a_worker_spans_nodes_only_when_none_has_room() -> None:
    found = layout(machine(physical=4, sockets=2), Wanted(2, 3, affinity_mode=1))
    assert (found.cores, found.nodes) == (((0, 1, 2), (4, 5, 6)), (0, 1))
    uneven = machine(physical=5, sockets=2, mask=[0, 1, 2, 3, 5, 6, 7, 8, 9])
    found = layout(uneven, Wanted(3, 3, affinity_mode=1))
    assert found.cores == ((0, 1, 2), (5, 6, 7), (8, 9, 3))
    assert found.nodes == (0, 1, 1)  # where most of its cores are
    found = layout(machine(physical=2, sockets=3), Wanted(2, 3, affinity_mode=1))
    assert found.cores == ((0, 1, 2), (4, 5, 3))


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(("workers", "threads"), [(2, 2), (2, 0), (0, 2)])
def test_a_core_list_is_cut_into_slices(mode: int, workers: int, threads: int) -> None:
    found = layout(TWO_SOCKETS, Wanted(workers, threads, mode, (9, 3, 1, 16)))
    assert sizes(found) == (2, 2, (2,))
    assert (found.cores, found.nodes) == (((9, 3), (1, 16)), (1, 0))


def test_a_core_list_alone_makes_a_worker_of_each_core() -> None:
    found = layout(FOUR, Wanted(core_list=(3, 1)))
    assert sizes(found) == (2, 1, (1,))
    assert found.cores == ((3,), (1,))


def test_a_core_list_beyond_the_quota_is_warned_of() -> None:
    found = layout(QUOTA, Wanted(core_list=(0, 1, 2)))
    assert "3 workers of 1 threads make 3 threads, but 2 cores are usable" in found.warning


def test_automatic_numbers_end_where_wishes_end() -> None:
    huge = machine(physical=2000)
    found = layout(huge, Wanted())
    assert (found.workers, found.widths[0], found.usable) == (1024, 1024, 2000)
    assert layout(huge, Wanted(workers=1)).threads == 1024
    assert layout(huge, Wanted(workers=1024, threads=1024)).workers == 1024


@pytest.mark.parametrize(
    ("cores", "wanted", "message"),
    [
        (FOUR, Wanted(affinity_mode=2), r"mode is 2, but concurrent .* 0 \(none\) and 1 \(big"),
        (FOUR, Wanted(affinity_mode=2, core_list=(0,)), r"mode is 2"),
        (FOUR, Wanted(affinity_mode=-1), r"mode is -1"),
        (FOUR, Wanted(workers=1025), r"1025 workers were asked for, wanted 1 to 1024, or 0"),
        (FOUR, Wanted(threads=1025), r"1025 threads were asked for"),
        (FOUR, Wanted(workers=-1), r"-1 workers"),
        (FOUR, Wanted(5, 1, 1), r"5 workers of 1 threads .* 4 cores \[0, 1, 2, 3\], wanted 5; ask"),
        (FOUR, Wanted(0, 5, 1), r"1 workers of 5 threads cannot be bound"),
        (FOUR, Wanted(core_list=(0, 7)), r"list \[0, 7\] holds \[7\].*wanted some of \[0, 1, 2, 3"),
        (FOUR, Wanted(core_list=(1, 1)), r"list \[1, 1\] holds a core twice"),
        (FOUR, Wanted(2, 2, 1, (0, 1, 2)), r"\[0, 1, 2\] has 3 cores, wanted 4: 2 for each of 2 w"),
        (FOUR, Wanted(2, 1, 1, (0, 1, 2)), r"has 3 cores, wanted 2: .*usable are \[0, 1, 2, 3\]"),
        (FOUR, Wanted(2, 0, 1, (0, 1, 2)), r"multiple of 2 to share among 2 workers; usable are"),
        (FOUR, Wanted(0, 2, 1, (0, 1, 2)), r"a multiple of 2 to share among workers of 2 threads"),
        (
            machine(physical=2000),
            Wanted(core_list=tuple(range(1025))),
            r"makes 1025 workers, wanted at most 1024",
        ),
        (
            machine(physical=2000),
            Wanted(workers=1, core_list=tuple(range(1025))),
            r"makes 1025 threads, wanted at most 1024",
        ),
    ],
)
def test_impossible_wishes_say_got_and_wanted(cores: Cores, wanted: Wanted, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout(cores, wanted)


@st.composite
def machines(draw: st.DrawFn) -> Cores:
    physical, siblings = draw(st.integers(1, 12)), draw(st.integers(1, 2))
    sockets = draw(st.integers(1, 4))
    speeds = draw(st.lists(st.sampled_from([0, 400, 1000]), min_size=48, max_size=48))
    everything = range(physical * siblings * sockets)
    mask = sorted(draw(st.sets(st.sampled_from(everything), min_size=1)))
    limit = draw(st.integers(1, len(mask)))
    return machine(
        physical=physical, siblings=siblings, sockets=sockets, speeds=speeds, limit=limit, mask=mask
    )


@st.composite
def wishes(draw: st.DrawFn) -> tuple[Cores, Wanted]:
    """Any machine with any wish; lists are mostly of usable cores, so that some are accepted."""
    cores = draw(machines())
    number = st.integers(0, 6) | st.integers(-1, 1100)
    one = st.sampled_from(cores.ids) | st.integers(-1, 100)
    listed = st.just([]) | st.lists(st.sampled_from(cores.ids), unique=True) | st.lists(one)
    mode = st.integers(0, 1) | st.integers(-1, 3)
    return cores, Wanted(draw(number), draw(number), draw(mode), tuple(draw(listed)))


@given(wishes())
def test_a_wish_becomes_a_sound_layout_or_a_clear_error(given_: tuple[Cores, Wanted]) -> None:
    cores, wanted = given_
    try:
        found = layout(cores, wanted)
    except ValueError as exc:
        assert "wanted" in str(exc) or "supports" in str(exc) or "name each once" in str(exc)
        assert wanted != Wanted()
        return
    assert 1 <= found.workers <= 1024
    assert wanted.workers in (0, found.workers)
    assert wanted.threads in (0, found.threads)
    assert list(found.widths) == sorted(set(found.widths), reverse=True)
    assert found.widths[-1] == found.threads >= 1
    assert found.lanes(found.threads) == found.workers
    assert bool(found.warning) == (found.workers * found.threads > cores.limit)
    if wanted.affinity_mode or wanted.core_list:
        check_bound(cores, wanted, found)
    else:
        assert unbound(found)
        assert found.threads == wanted.threads or found.widths[0] <= default_threads(cores)


def check_bound(cores: Cores, wanted: Wanted, found: Layout) -> None:
    flat = [core for slot in found.cores for core in slot]
    assert [len(slot) for slot in found.cores] == [found.threads] * found.workers
    assert len(set(flat)) == len(flat)
    assert set(flat) <= set(cores.ids)
    assert found.widths == (found.threads,)
    if wanted.core_list:
        assert flat == list(wanted.core_list)
    for slot, node in zip(found.cores, found.nodes, strict=True):
        assert slot[0] in cores.nodes[node]
    spanning = [
        slot for slot in found.cores if not any(set(slot) <= set(node) for node in cores.nodes)
    ]
    if not wanted.core_list:
        inside = sum(len(node) // found.threads for node in cores.nodes)
        assert len(spanning) == max(0, found.workers - inside)


@given(machines(), st.sampled_from([0, 1]))
def test_the_automatic_layout_never_oversubscribes(cores: Cores, mode: int) -> None:
    found = layout(cores, Wanted(affinity_mode=mode))
    assert found.workers * found.threads <= cores.limit
    assert found.warning == ""
    for width in found.widths:
        assert found.lanes(width) * width <= max(cores.limit, width)


@given(machines(), st.data(), st.sampled_from([0, 1]), st.booleans())
def test_one_modest_wish_never_oversubscribes(
    cores: Cores, data: st.DataObject, mode: int, of_workers: bool
) -> None:
    number = data.draw(st.integers(1, cores.limit))
    wanted = Wanted(number, 0, mode) if of_workers else Wanted(0, number, mode)
    found = layout(cores, wanted)
    assert found.workers * found.threads <= cores.limit
    for width in found.widths:
        assert found.lanes(width) * width <= max(cores.limit, width)
