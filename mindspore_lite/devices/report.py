"""What a runner over several devices did so far, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DeviceStatistics:
    """One device: its process, and the parts of requests that it took."""

    device: int
    state: str  # starting, ready, down (starts again soon), out (failed too often), closed
    pid: int  # 0: no process
    cores: tuple[int, ...]
    restarts: int
    done: int
    failed: int
    error: str  # why it is not ready
    runner: dict[str, Any]  # the statistics of the runner in its process; {} when it is not ready


@dataclass(frozen=True)
class MultiDeviceStatistics:
    """A runner at one moment: sent = running + done + failed + timed_out + cancelled."""

    sent: int
    running: int
    done: int
    failed: int
    timed_out: int
    cancelled: int
    retried: int  # parts that were lost with a worker and computed on another device
    devices: tuple[DeviceStatistics, ...]
