"""Context: where and how a model should run. It holds checked values and nothing else.

The library only reads a Context and never writes to it, so one object may configure many models.
Readers that must not see later changes take `copy.deepcopy(context)`.
"""

from __future__ import annotations

import os

from mindspore_lite.core import checks
from mindspore_lite.core.attributes import Setting, Settings
from mindspore_lite.core.paths import nowhere

TARGETS = ("cpu", "gpu", "ascend")
AFFINITY_MODES = {0: "no binding", 1: "big cores first", 2: "middle cores first"}


def _affinity_mode(name: str, value: object) -> int:
    mode = checks.integer(name, value)
    if mode not in AFFINITY_MODES:
        legal = ", ".join(f"{number} ({meaning})" for number, meaning in AFFINITY_MODES.items())
        raise ValueError(f"{name} must be one of {legal}, but got {mode}.")
    return mode


def _targets(name: str, value: object) -> list[str]:
    targets = [] if value is None else checks.instances(name, value, str)
    for target in targets:
        if target.lower() not in TARGETS:
            raise ValueError(f"{name} elements must be in {list(TARGETS)}, but got {target!r}.")
    return targets or ["cpu"]


def _config_path(name: str, value: object) -> str:
    path = checks.path(name, value)
    if path and not os.path.exists(path):
        raise ValueError(f"{name} does not exist: {nowhere(path)}")
    return path


def _device_ids(name: str, value: object) -> list[int]:
    ids = checks.integers(name, value)
    if any(number < 0 for number in ids):
        raise ValueError(f"{name} contain a negative number: {ids}")
    return ids


class _CPU(Settings):
    """Settings of target "cpu"; a thread number of 0 means automatic."""

    _path = "context.cpu"
    _prefix = "cpu_"

    precision_mode = Setting(checks.one_of("enforce_fp32", "preferred_fp16"), "enforce_fp32")
    thread_num = Setting(checks.non_negative, 0)
    inter_op_parallel_num = Setting(checks.non_negative, 0)
    thread_affinity_mode = Setting(_affinity_mode, 0)
    thread_affinity_core_list = Setting[list[int]](checks.integers, [])

    def __str__(self) -> str:
        return (
            f"device_type: DeviceType.kCPU,\n"
            f"precision_mode: {self.precision_mode},\n"
            f"thread_num: {self.thread_num},\n"
            f"inter_op_parallel_num: {self.inter_op_parallel_num},\n"
            f"thread_affinity_mode: {self.thread_affinity_mode},\n"
            f"thread_affinity_core_list: {self.thread_affinity_core_list}."
        )


class _GPU(Settings):
    """Settings of target "gpu"."""

    _path = "context.gpu"
    _prefix = "gpu_"

    precision_mode = Setting(checks.one_of("enforce_fp32", "preferred_fp16"), "enforce_fp32")
    device_id = Setting(checks.non_negative, 0)
    rank_id = Setting(checks.non_negative, 0)

    @property
    def group_size(self) -> int:
        """The number of processes that run one model together; it cannot be set."""
        return 1

    def __str__(self) -> str:
        return (
            f"device_type: DeviceType.kGPU,\n"
            f"precision_mode: {self.precision_mode},\n"
            f"device_id: {self.device_id},\n"
            f"rank_id: {self.rank_id},\n"
            f"group_size: {self.group_size}."
        )


class _Ascend(Settings):
    """Settings of target "ascend"."""

    _path = "context.ascend"
    _prefix = "ascend_"

    precision_mode = Setting(
        checks.one_of(
            "enforce_fp32", "preferred_fp32", "enforce_fp16", "enforce_origin", "preferred_optimal"
        ),
        "",
    )
    device_id = Setting(checks.non_negative, 0)
    rank_id = Setting(checks.non_negative, 0)
    provider = Setting(checks.string, "")

    def __str__(self) -> str:
        # the last three share a line, as programs that read this text expect
        return (
            f"device_type: DeviceType.kAscend,\n"
            f"precision_mode: {self.precision_mode},\n"
            f"device_id: {self.device_id}.provider: {self.provider}.rank_id: {self.rank_id}."
        )


class _Parallel(Settings):
    """Settings of ModelParallelRunner; 0 workers means automatic.

    Additions of mslite: queue_size, how many requests may wait; timeout_s, within which each must
    be answered (0: no limit); max_batch_rows, up to how many rows requests are joined (0: never; on
    cards as many as the model is prepared for, and 1 is never); max_batch_wait_us, how long a
    request waits for others to join it; warm_up, whether the build runs the model once on made-up
    inputs.
    """

    _path = "context.parallel"

    workers_num = Setting(checks.non_negative, 0)
    queue_size = Setting(checks.positive, 1000)
    timeout_s = Setting(checks.seconds, 0.0)
    max_batch_rows = Setting(checks.non_negative, 0)
    max_batch_wait_us = Setting(checks.non_negative, 0)
    warm_up = Setting(checks.flag, True)
    config_info = Setting[checks.Sections](checks.sections, {})
    config_path = Setting(_config_path, "")
    device_ids = Setting[list[int]](_device_ids, [])

    def __str__(self) -> str:
        info = "\n".join(
            f"{section}: {key} {value}"
            for section, entries in self.config_info.items()
            for key, value in entries.items()
        )
        return (
            f"workers num: {self.workers_num},\nconfig info: {info},\n"
            f"config file: {self.config_path}."
        )


class Context(Settings):
    """Where and how a model shall run.

    `target` lists the devices in order of preference, each "cpu", "gpu" or "ascend" in any case;
    an empty list or None stands for ["cpu"]. `group_info_file` names the communication group of a
    model that is spread over several devices. Lists and dicts are copied when set and when read.

    An attribute that does not exist may be set, as programs do: it is kept, has no effect, and
    the first time a warning says so.

    Raises:
        TypeError: A value of the wrong type was set.
        ValueError: A value outside the legal ones was set.

    Examples:
        >>> from mindspore_lite.context import Context
        >>> context = Context()
        >>> context.target = ["cpu"]
        >>> context.cpu.thread_num = 2
        >>> context.parallel.workers_num = 4
        >>> print(context)
        target: ['cpu'].
    """

    _path = "context"

    target = Setting(_targets, ["cpu"])
    group_info_file = Setting(checks.string, "")

    def __init__(self) -> None:
        self._cpu = _CPU()
        self._gpu = _GPU()
        self._ascend = _Ascend()
        self._parallel = _Parallel()

    @property
    def cpu(self) -> _CPU:
        """Threads, core binding and precision on the CPU."""
        return self._cpu

    @property
    def gpu(self) -> _GPU:
        """Device and precision on an NVIDIA GPU."""
        return self._gpu

    @property
    def ascend(self) -> _Ascend:
        """Device, provider and precision on Ascend."""
        return self._ascend

    @property
    def parallel(self) -> _Parallel:
        """Workers and configuration of ModelParallelRunner."""
        return self._parallel

    def __str__(self) -> str:
        return f"target: {self.target}."
