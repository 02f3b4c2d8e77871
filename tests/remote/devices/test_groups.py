"""groups.py: cores of machines that are built by hand, dealt out to devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.core import cores as pool_cores
from mindspore_lite.core.cores import Core, Cores, usable
from mindspore_lite.errors import EngineError, EngineUnavailableError
from mindspore_lite.remote.devices.groups import CoreGroup, groups, shared_groups
from mindspore_lite.remote.devices.groups import masks as device_masks


def machine(*nodes: int, siblings: int = 1, limit: int = 0, mask: Sequence[int] = ()) -> Cores:
    """Physical cores per node, numbered as Linux does: second threads after all first ones."""
    total = sum(nodes)
    node_of = [at for at, size in enumerate(nodes) for _ in range(size)]
    ids = tuple(mask or range(total * siblings))
    topology = tuple(Core(i, tuple(range(i % total, total * siblings, total)), 0) for i in ids)
    members = [tuple(i for i in ids if node_of[i % total] == at) for at in range(len(nodes))]
    return Cores(
        ids=ids,
        limit=limit or len(ids),
        limit_from="cgroup v2 quota 4" if limit else "affinity mask",
        physical=len({core.physical for core in topology}),
        nodes=tuple(node for node in members if node),
        topology=topology,
    )


def masks(found: Sequence[CoreGroup]) -> list[tuple[int, ...]]:
    return [group.cores for group in found]


def threads(found: Sequence[CoreGroup]) -> list[int]:
    return [group.threads for group in found]


@pytest.mark.parametrize(
    ("cores", "count", "expected"),
    [
        (machine(1), 1, [(0,)]),
        (machine(2), 2, [(0,), (1,)]),
        (machine(5), 2, [(0, 1, 2), (3, 4)]),
        (machine(4, 4), 2, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (machine(4, mask=[0, 2, 3]), 2, [(0, 2), (3,)]),
        # hyper-threads stay with their core ...
        (machine(2, siblings=2), 2, [(0, 2), (1, 3)]),
        (machine(3, siblings=2), 2, [(0, 3, 1, 4), (2, 5)]),
        # ... until there are more devices than cores
        (machine(2, siblings=2), 3, [(0, 2), (1,), (3,)]),
        (machine(2, siblings=2), 4, [(0,), (2,), (1,), (3,)]),
        # the larger group is where it does not reach into another node
        (machine(2, 3), 2, [(0, 1), (2, 3, 4)]),
        (machine(6, 7), 4, [(0, 1, 2), (3, 4, 5), (6, 7, 8, 9), (10, 11, 12)]),
        (machine(2, 1, 4), 2, [(0, 1, 2), (3, 4, 5, 6)]),
        # equal sizes come first
        (machine(5, 1), 2, [(0, 1, 2), (3, 4, 5)]),
    ],
)
def test_cores_are_dealt_out(cores: Cores, count: int, expected: list[tuple[int, ...]]) -> None:
    assert masks(groups(cores, range(count))) == expected


def test_devices_that_are_not_named_keep_their_cores() -> None:
    assert masks(groups(machine(4), [3, 1])) == [(3,), (1,)]


def test_the_same_device_twice_has_the_same_cores() -> None:
    assert masks(groups(machine(4), [0, 1, 0])) == [(0, 1), (2, 3), (0, 1)]


@pytest.mark.parametrize("ids", [[0, 2], [5], [-1]], ids=str)
def test_a_device_that_does_not_exist_is_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"2 cores \[0, 1\].* so cpu devices 0 to 1 exist"):
        groups(machine(2), ids)


@pytest.mark.parametrize(
    ("cores", "count", "expected"),
    [
        (machine(5), 2, [3, 2]),
        (machine(2, 3), 2, [2, 3]),
        (machine(4, siblings=2), 2, [2, 2]),  # hyper-threads are left to others
        (machine(64, limit=4), 2, [2, 2]),
        (machine(64, limit=5), 2, [3, 2]),
        (machine(64, limit=1), 2, [1, 1]),
        (machine(2, siblings=2), 4, [1, 1, 1, 1]),
    ],
)
def test_threads_keep_to_the_physical_cores_and_the_quota(
    cores: Cores, count: int, expected: list[int]
) -> None:
    assert threads(groups(cores, range(count))) == expected


def test_made_up_devices_get_cores_in_turn() -> None:
    found = shared_groups(machine(2), range(8))
    assert masks(found) == [(0,), (1,)] * 4
    assert threads(found) == [1] * 8


@pytest.mark.parametrize("ids", [[0, 1], [0, 2], [6, 7]], ids=str)
def test_made_up_devices_share_all_cores_whatever_their_numbers(ids: list[int]) -> None:
    assert masks(shared_groups(machine(4), ids)) == [(0, 1), (2, 3)]


def test_the_same_made_up_device_twice_has_the_same_cores() -> None:
    assert masks(shared_groups(machine(4), [5, 3, 5])) == [(2, 3), (0, 1), (2, 3)]


def test_this_machine_can_be_dealt_out() -> None:
    here = usable()
    found = groups(here, range(len(here.ids)))
    assert sorted(core for group in found for core in group.cores) == list(here.ids)


@given(
    nodes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    siblings=st.integers(1, 2),
    limit=st.integers(0, 20),
    data=st.data(),
)
def test_groups_are_disjoint_even_and_cut_no_physical_core_in_vain(
    nodes: list[int], siblings: int, limit: int, data: st.DataObject
) -> None:
    cores = machine(*nodes, siblings=siblings, limit=min(limit, sum(nodes) * siblings))
    count = data.draw(st.integers(1, len(cores.ids)))
    found = groups(cores, range(count))
    assert sorted(core for group in found for core in group.cores) == list(cores.ids)
    physical = {core.id: core.physical for core in cores.topology}
    uncut = count <= cores.physical
    sizes = [len({physical[i] for i in g.cores}) if uncut else len(g.cores) for g in found]
    assert max(sizes) - min(sizes) <= 1
    if uncut:
        assert all(set(physical[i]) <= set(group.cores) for group in found for i in group.cores)
    assert min(threads(found)) >= 1
    assert sum(threads(found)) <= max(cores.limit, count)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_no_group_reaches_across_nodes_that_can_be_dealt_out_evenly(
    size: int, nodes: int, per_node: int
) -> None:
    cores = machine(*[size * per_node] * nodes)
    for group in groups(cores, range(nodes * per_node)):
        assert any(set(group.cores) <= set(node) for node in cores.nodes)


# --- the masks of a target's devices --------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "limit", "expected"),
    [
        ("cpu", 0, [(0, 1), (2, 3)]),
        ("ascend", 0, [(0, 1), (2, 3)]),
        ("gpu", 0, [(), ()]),  # the card computes: any core will do
        ("cpu", 2, [(0,), (2,)]),  # a quota is shared out as cores that a process does not see
        ("ascend", 2, [(0,), (2,)]),
    ],
)
def test_each_device_of_a_target_has_its_mask(
    target: str, limit: int, expected: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:2")
    monkeypatch.setattr(pool_cores, "usable", lambda: machine(4, limit=limit))
    assert device_masks(target, [0, 1]) == expected


def test_real_ascend_devices_leave_the_cores_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineUnavailableError, match="pip install torch_npu"):
        device_masks("ascend", [0, 1])
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    sys.modules["torch_npu"].__spec__ = ModuleSpec("torch_npu", None)
    assert device_masks("ascend", [0, 1]) == [(), ()]


def test_a_device_that_is_not_there_has_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:2")
    with pytest.raises(EngineUnavailableError, match=r"^target 'ascend' asks for device 2, but"):
        device_masks("ascend", [0, 2])
    monkeypatch.setattr(pool_cores, "usable", lambda: machine(2))
    with pytest.raises(EngineError, match=r"^cpu device ids \[0, 2\] hold \[2\], but"):
        device_masks("cpu", [0, 2])
