"""Statistics of a runner over several devices, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.devices.supervisor import Life, Supervisor

__all__ = [
    "DeviceStatistics",
    "MultiDeviceStatistics",
]


@dataclass(frozen=True)
class DeviceStatistics:
    """One device: its process, and the parts of requests that it took."""

    device: int
    state: str  # starting, ready, down (starts again soon), out (failed too often), closed
    pid: int  # 0: no process
    cores: tuple[int, ...]
    restarts: int
    done: int
    failed: int  # also those that were called off, because another failed or nobody wanted them
    error: str  # why it is not ready
    runner: dict[str, Any]  # the statistics of the runner in its process; {}: no answer


@dataclass(frozen=True)
class MultiDeviceStatistics:
    """A runner at one moment: sent = running + done + failed + timed_out + cancelled."""

    sent: int
    running: int
    done: int
    failed: int
    timed_out: int
    cancelled: int
    retried: int  # parts that were lost with a worker and sent to another device
    devices: tuple[DeviceStatistics, ...]


def of_runner(life: Life, timeout_s: float) -> dict[str, Any]:
    """The statistics of the runner in a worker process; {} when it does not answer."""
    try:
        found: dict[str, Any] = read_json(life.model.statistics(timeout_s))
    except (LiteError, ValueError):  # it may be dying
        return {}
    return found


def taken(
    counts: Mapping[str, int], supervisors: Sequence[Supervisor], runners: Sequence[dict[str, Any]]
) -> MultiDeviceStatistics:
    """The books of a dispatcher, read under its lock."""
    ended = {name: counts.get(name, 0) for name in ("done", "failed", "timed_out", "cancelled")}
    sent = counts.get("sent", 0)
    return MultiDeviceStatistics(
        sent=sent,
        running=sent - sum(ended.values()),
        **ended,
        retried=counts.get("retried", 0),
        devices=tuple(map(_device, supervisors, runners)),
    )


def _device(supervisor: Supervisor, runner: dict[str, Any]) -> DeviceStatistics:
    process = supervisor.process
    return DeviceStatistics(
        device=supervisor.place.device,
        state=supervisor.state.value,
        pid=process.pid if process is not None and process.alive else 0,
        cores=supervisor.place.cores,
        restarts=supervisor.restarts,
        done=supervisor.done,
        failed=supervisor.failed,
        error="" if supervisor.error is None else str(supervisor.error),
        runner=runner,
    )
