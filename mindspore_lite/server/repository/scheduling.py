"""instance_group and dynamic_batching of config.pbtxt as settings of workers, queue and batches."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.grpc.model_config_pb2 import (
    ModelConfig,
    ModelDynamicBatching,
    ModelInstanceGroup,
    ModelQueuePolicy,
)

Sections = dict[str, dict[str, str]]
_WHERE = "config.pbtxt:"
_TARGETS = {ModelInstanceGroup.KIND_CPU: "cpu", ModelInstanceGroup.KIND_GPU: "gpu"}
_GROUP_HINTS = ("rate_limiter", "secondary_devices", "profile", "host_policy")


def instances(groups: Sequence[ModelInstanceGroup]) -> tuple[dict[str, str], Sections, list[str]]:
    """Context, settings and ignored keys of the instance groups: where workers run, how many.

    Raises:
        ModelFileError: They cannot be obeyed.
    """
    targets, cards, count, ignored = set(), [], 0, []
    for group in groups:
        if group.passive:
            raise ModelFileError(f"{_WHERE} instance_group.passive is not supported")
        if group.count < 0 or min(group.gpus, default=0) < 0:
            raise ModelFileError(f"{_WHERE} instance_group has a negative number")
        given = {field.name for field, _ in group.ListFields()}
        ignored += [f"instance_group.{name}" for name in _GROUP_HINTS if name in given]
        target = _TARGETS.get(group.kind, "gpu" if group.gpus else "")
        if group.gpus and target == "cpu":
            raise ModelFileError(f"{_WHERE} instance_group has gpus with KIND_CPU; leave one out")
        targets.add(target)
        cards += list(group.gpus)
        count += group.count * (len(group.gpus) or 1)
    if len(targets) > 1:
        raise ModelFileError(
            f"{_WHERE} instance_group has groups of several kinds; a model runs on one here"
        )
    settings: dict[str, str] = {}
    if count:
        settings["workers_num"] = str(count)
    if cards:
        settings["device_ids"] = ",".join(map(str, dict.fromkeys(cards)))
    target = "".join(targets)
    return (
        {"target": target} if target else {},
        {"parallel": settings} if settings else {},
        list(dict.fromkeys(ignored)),
    )


def batching(message: ModelConfig, target: str) -> tuple[Sections, list[str]]:
    """Settings and ignored keys of dynamic_batching: how requests are joined, how long they wait.

    Raises:
        ModelFileError: It cannot be obeyed.
    """
    if not message.HasField("dynamic_batching"):
        return {}, []
    asked, most = message.dynamic_batching, message.max_batch_size
    sizes = sorted(set(asked.preferred_batch_size))
    if sizes and not 1 <= sizes[0] <= sizes[-1] <= most:
        raise ModelFileError(
            f"{_WHERE} dynamic_batching.preferred_batch_size is {sizes[:20]}, wanted 1 to "
            f"max_batch_size, which is {most}"
        )
    settings: Sections = {}
    ignored = _ignored(asked)
    if most > 1:
        # a batch leaves when it has the largest size that is preferred
        rows = {"max_batch_rows": str(sizes[-1] if sizes else most)}
        rows["max_batch_wait_us"] = str(asked.max_queue_delay_microseconds)
        settings["batching"] = rows
        if sizes and target == "gpu":
            settings["gpu_context"] = {"batch_buckets": ",".join(map(str, sizes))}
        elif len(sizes) > 1:
            ignored.append(f"dynamic_batching.preferred_batch_size {sizes[:-1]}")
    else:
        ignored.append(f"dynamic_batching: max_batch_size is {most}, so that nothing is joined")
    queue = _queue(asked.default_queue_policy)
    if queue:
        settings["parallel"] = queue
    return settings, ignored


def _ignored(asked: ModelDynamicBatching) -> list[str]:
    names = (
        "preserve_ordering", "priority_levels", "default_priority_level", "priority_queue_policy",
    )  # fmt: skip
    given = {field.name for field, _ in asked.ListFields()}
    return [f"dynamic_batching.{name}" for name in names if name in given]


def _queue(policy: ModelQueuePolicy) -> dict[str, str]:
    if policy.timeout_action == ModelQueuePolicy.DELAY:
        raise ModelFileError(
            f"{_WHERE} default_queue_policy.timeout_action DELAY is not supported; requests whose "
            "time is over are refused (REJECT)"
        )
    found = {}
    if policy.max_queue_size:
        found["queue_size"] = str(policy.max_queue_size)
    if policy.default_timeout_microseconds:
        found["timeout_s"] = f"{policy.default_timeout_microseconds / 1e6:.6f}"
    return found
