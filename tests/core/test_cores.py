"""Usable cores, read from fake /sys and /proc trees."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mindspore_lite.core import cores
from mindspore_lite.core.cores import Cores


class Machine:
    """A /sys and /proc of one's own."""

    def __init__(self, root: Path) -> None:
        self.sys, self.proc = root / "sys", root / "proc"
        self.write(self.proc / "self/cgroup", "0::/\n")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cpu(self, number: int, siblings: str = "", capacity: int = 0, max_freq: int = 0) -> None:
        cpu = self.sys / f"devices/system/cpu/cpu{number}"
        self.write(cpu / "topology/thread_siblings_list", f"{siblings or number}\n")
        if capacity:
            self.write(cpu / "cpu_capacity", f"{capacity}\n")
        if max_freq:
            self.write(cpu / "cpufreq/cpuinfo_max_freq", f"{max_freq}\n")

    def cgroup(self, file: str, text: str) -> None:
        self.write(self.sys / "fs/cgroup" / file, text)

    def usable(self, *mask: int) -> Cores:
        return cores.usable(mask, self.sys, self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_this_machine_can_be_read() -> None:
    here = cores.usable()
    assert set(here.ids) == os.sched_getaffinity(0)
    assert 1 <= cores.default_threads(here) <= here.limit <= len(here.ids)
    assert sorted(i for node in here.nodes for i in node) == list(here.ids)
    assert sorted(here.ordered(1)) == sorted(here.ordered(2)) == list(here.ids)


def test_mask_alone_is_the_limit(machine: Machine) -> None:
    found = machine.usable(3, 1)
    assert (found.ids, found.limit, found.limit_from) == ((1, 3), 2, "affinity mask")


@pytest.mark.parametrize(
    ("text", "limit", "limit_from"),
    [
        ("max 100000", 8, "affinity mask"),
        ("150000 100000", 2, "cgroup v2 quota 1.5"),
        ("10000 100000", 1, "cgroup v2 quota 0.1"),
        ("1600000 100000", 8, "affinity mask"),
        ("", 8, "affinity mask"),
        ("rubbish 0", 8, "affinity mask"),
        ("100000 0", 8, "affinity mask"),
    ],
)
def test_v2_quota(machine: Machine, text: str, limit: int, limit_from: str) -> None:
    machine.cgroup("cpu.max", f"{text}\n")
    found = machine.usable(*range(8))
    assert (found.limit, found.limit_from) == (limit, limit_from)


def test_smallest_quota_up_to_the_root_counts(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "0::/pod/box\n")
    machine.cgroup("cpu.max", "500000 100000")
    machine.cgroup("pod/cpu.max", "250000 100000")
    machine.cgroup("pod/box/cpu.max", "400000 100000")
    assert machine.usable(*range(8)).limit_from == "cgroup v2 quota 2.5"


def test_path_of_the_host_still_finds_the_root_of_the_container(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "0::/../../docker/0123abcd\n")
    machine.cgroup("cpu.max", "200000 100000")
    assert machine.usable(*range(8)).limit == 2


def test_only_the_own_branch_of_nested_cgroups_counts(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "0::/pods/mine/box\n")
    machine.cgroup("pods/cpu.max", "max 100000")
    machine.cgroup("pods/mine/cpu.max", "620000 100000")
    machine.cgroup("pods/other/cpu.max", "100000 100000")
    machine.cgroup("pods/mine/box/inner/cpu.max", "100000 100000")
    found = machine.usable(*range(8))
    assert (found.limit, found.limit_from) == (7, "cgroup v2 quota 6.2")


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_v1_quota(machine: Machine, mount: str) -> None:
    machine.write(machine.proc / "self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n")
    machine.cgroup(f"{mount}/job/cpu.cfs_quota_us", "350000\n")
    machine.cgroup(f"{mount}/job/cpu.cfs_period_us", "100000\n")
    found = machine.usable(*range(8))
    assert (found.limit, found.limit_from) == (4, "cgroup v1 quota 3.5")


def test_v1_quota_of_minus_one_means_none(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "1:cpu:/\n")
    machine.cgroup("cpu/cpu.cfs_quota_us", "-1\n")
    machine.cgroup("cpu/cpu.cfs_period_us", "100000\n")
    assert machine.usable(0, 1).limit_from == "affinity mask"


def test_v1_quota_of_a_parent_counts(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "1:cpu:/pod/box\n")
    for group, quota in {"": -1, "pod": 50000, "pod/box": 200000}.items():
        machine.cgroup(f"cpu/{group}/cpu.cfs_quota_us", f"{quota}\n")
        machine.cgroup(f"cpu/{group}/cpu.cfs_period_us", "100000\n")
    found = machine.usable(*range(8))
    assert (found.limit, found.limit_from) == (1, "cgroup v1 quota 0.5")


def test_smaller_of_v1_and_v2_counts(machine: Machine) -> None:
    machine.write(machine.proc / "self/cgroup", "1:cpu:/\n0::/\n")
    machine.cgroup("cpu/cpu.cfs_quota_us", "300000\n")
    machine.cgroup("cpu/cpu.cfs_period_us", "100000\n")
    machine.cgroup("unified/cpu.max", "500000 100000")
    assert machine.usable(*range(8)).limit_from == "cgroup v1 quota 3"


def test_a_cpuset_is_seen_through_the_mask(machine: Machine) -> None:
    """The kernel keeps the mask inside of the cpuset, so the file could only repeat it."""
    machine.cgroup("cpuset.cpus.effective", "0\n")
    machine.cgroup("cpuset/cpuset.cpus", "0\n")
    assert machine.usable(2, 3).limit == 2


def test_v2_beside_v1_is_read_from_its_own_mount(machine: Machine) -> None:
    machine.cgroup("unified/cpu.max", "100000 100000")
    assert machine.usable(0, 1).limit == 1


def test_no_proc_and_no_sys_leave_the_mask(tmp_path: Path) -> None:
    found = cores.usable((0, 1, 2), tmp_path / "sys", tmp_path / "proc")
    assert (found.limit, found.physical, found.nodes) == (3, 3, ((0, 1, 2),))


def hyper_threads(machine: Machine) -> None:
    """Two cores with two threads each: 0 and 2, 1 and 3."""
    for number in range(4):
        machine.cpu(number, siblings=f"{number % 2},{number % 2 + 2}")


def test_hyper_threads_are_counted_once_and_come_last(machine: Machine) -> None:
    hyper_threads(machine)
    found = machine.usable(0, 1, 2, 3)
    assert (found.physical, cores.default_threads(found)) == (2, 2)
    assert found.ordered(1) == (0, 1, 2, 3)
    assert machine.usable(0, 2, 3).ordered(1) == (0, 3, 2)  # 3 is alone: its core's first is masked


def test_default_threads_keep_to_the_quota(machine: Machine) -> None:
    machine.cgroup("cpu.max", "50000 100000")
    assert cores.default_threads(machine.usable(0, 1, 2, 3)) == 1


@pytest.mark.parametrize("scale", ["capacity", "max_freq"])
def test_classes_of_cores(machine: Machine, scale: str) -> None:
    for number, size in enumerate([400, 400, 700, 1000, 1010, 700]):
        machine.cpu(number, **{scale: size})
    found = machine.usable(*range(6))
    assert found.ordered(1) == (3, 4, 2, 5, 0, 1)
    assert found.ordered(2) == (2, 5, 0, 1, 3, 4)


def test_equal_cores_have_no_middle(machine: Machine) -> None:
    hyper_threads(machine)
    found = machine.usable(0, 1, 2, 3)
    assert found.ordered(2) == found.ordered(1)


def numa(machine: Machine, nodes: dict[str, str]) -> None:
    for name, ids in nodes.items():
        machine.write(machine.sys / f"devices/system/node/{name}/cpulist", f"{ids}\n")


def test_nodes_hold_only_usable_cores(machine: Machine) -> None:
    numa(machine, {"node0": "0-3", "node1": "4-7", "node10": "8-11", "node2": ""})
    assert machine.usable(1, 2, 5, 8).nodes == ((1, 2), (5,), (8,))


def test_lists_of_nodes_may_be_single_numbers_or_mixed(machine: Machine) -> None:
    numa(machine, {"node0": "3", "node1": "0-1,4", "node2": "2"})
    assert machine.usable(*range(5)).nodes == ((3,), (0, 1, 4), (2,))


def test_nodes_without_cores_or_offline_do_not_count(machine: Machine) -> None:
    numa(machine, {"node1": "0-1", "node3": "2-3", "node4": ""})  # 0 and 2 are offline
    machine.write(machine.sys / "devices/system/node/possible", "0-4\n")
    assert machine.usable(*range(4)).nodes == ((0, 1), (2, 3))


@pytest.mark.parametrize("nodes", [{"node0": "0-1"}, {"node0": "0-2", "node1": "2-3"}])
def test_nodes_that_miss_or_repeat_a_core_are_not_believed(
    machine: Machine, nodes: dict[str, str]
) -> None:
    numa(machine, nodes)
    assert machine.usable(*range(4)).nodes == ((0, 1, 2, 3),)


def test_pick_without_binding(machine: Machine) -> None:
    assert machine.usable(0, 1).pick(0, 5) == ()


def test_pick_by_mode_and_by_list(machine: Machine) -> None:
    found = machine.usable(0, 1, 2, 3)
    assert found.pick(1, 2) == (0, 1)
    assert found.pick(1, 2, [3, 1, 0]) == (3, 1)
    assert found.pick(0, 1, [2]) == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.pick(0, 1, [0, 9]), r"holds \[9\].*wanted some of \[0, 1\]"),
        (lambda c: c.pick(0, 1, [-1]), r"holds \[-1\]"),
        (lambda c: c.pick(0, 1, [1, 1]), r"\[1, 1\] holds a core twice"),
        (lambda c: c.pick(0, 2, [1]), r"has 1 cores, wanted .* 2 threads"),
        (lambda c: c.pick(1, 3), r"3 threads cannot be bound to 2 cores"),
        (lambda c: c.pick(3, 1), r"mode is 3, wanted 0 .* 1 .* 2"),
        (lambda c: c.ordered(0), r"mode is 0, wanted 1 .* 2"),
    ],
)
def test_impossible_picks_say_got_and_wanted(
    machine: Machine, call: Callable[[Cores], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(machine.usable(0, 1))
