"""The model configuration as clients see it: Triton's message, made from what is in force."""

from __future__ import annotations

from collections.abc import MutableMapping, MutableSequence
from typing import Any

from google.protobuf.message import Message

from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.grpc.model_config_pb2 import (
    DataType,
    ModelConfig,
    ModelInput,
    ModelInstanceGroup,
)
from mindspore_lite.server.models import ServedModel
from mindspore_lite.server.repository.records import VersionPolicy
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.text import text_of

BACKEND = "mslite"
_KINDS = {"cpu": ModelInstanceGroup.KIND_CPU, "cuda": ModelInstanceGroup.KIND_GPU}
_QUEUE = ("parallel.queue_size", "parallel.timeout_s")  # settings that dynamic_batching tells of


def config_of(model: ServedModel) -> ModelConfig:
    """How a model is served now."""
    spec, said = model.service.spec, model.config
    message = ModelConfig(
        name=model.name,
        platform=model.platform,
        backend=BACKEND,
        max_batch_size=model.max_batch_size,
        default_model_filename=model.file,
    )
    _add_policy(message, said.policy)
    _add_tensors(message, model)
    # Triton always says so; nothing here is copied by way of pinned memory
    message.optimization.input_pinned_memory.enable = False
    message.optimization.output_pinned_memory.enable = False
    parameters = dict(said.parameters)
    if spec.max_batch_rows or spec.on_card:
        _add_batching(message, spec)
    else:
        found = {name: spec.settled[name] for name in _QUEUE}
        parameters |= {
            name: text_of(one.value) for name, one in found.items() if one.value != one.key.default
        }
    if said.ignored:
        parameters["ignored"] = ", ".join(said.ignored)
    for key, text in sorted(parameters.items()):
        message.parameters[key].string_value = text
    _add_instances(message, model, spec)
    _add_warm_ups(message, model)
    if said.cache_bytes:
        message.response_cache.enable = True
    return message


def as_json(message: Message) -> dict[str, Any]:
    """A message in the protocol's JSON form.

    Unlike that of protobuf itself it has plain values that are not set, and 64-bit integers as
    numbers.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if isinstance(value, MutableMapping):
            entry: Any = field.message_type
            kind = entry.fields_by_name["value"]
            found[field.name] = {str(key): _value(kind, one) for key, one in value.items()}
        elif isinstance(value, MutableSequence):
            found[field.name] = [_value(field, one) for one in value]
        elif not field.has_presence or message.HasField(field.name):
            found[field.name] = _value(field, value)
    return found


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return as_json(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


def _add_policy(message: ModelConfig, policy: VersionPolicy) -> None:
    if policy.all:
        message.version_policy.all.SetInParent()
    elif policy.specific:
        message.version_policy.specific.versions.extend(map(int, policy.specific))
    else:
        message.version_policy.latest.num_versions = policy.latest


def _add_tensors(message: ModelConfig, model: ServedModel) -> None:
    layouts = {one.name: one.layout for one in model.config.inputs}
    labels = {one.name: one.label_file for one in model.config.outputs}
    for port in model.inputs.values():
        layout = ModelInput.Format.Value(layouts.get(port.name) or "FORMAT_NONE")
        message.input.add(format=layout, **_tensor(model, port))
    for port in model.outputs.values():
        message.output.add(label_filename=labels.get(port.name, ""), **_tensor(model, port))


def _tensor(model: ServedModel, port: Any) -> dict[str, Any]:
    # the batch is not among the dims of a configuration
    dims = port.shape[1:] if model.max_batch_size else port.shape
    if port.shape == ANY_RANK:
        dims = ()
    return {"name": port.name, "data_type": DATATYPES[port.datatype].number, "dims": dims}


def _add_batching(message: ModelConfig, spec: Spec) -> None:
    batching = message.dynamic_batching
    sizes = spec.batch_buckets or ((spec.max_batch_rows,) if spec.max_batch_rows else ())
    batching.preferred_batch_size.extend(sizes)
    batching.max_queue_delay_microseconds = spec.max_batch_wait_us
    policy = batching.default_queue_policy
    policy.default_timeout_microseconds = round(spec.timeout_s * 1e6)
    policy.allow_timeout_override = True
    policy.max_queue_size = min(spec.queue_size, 2**32 - 1)


def _add_instances(message: ModelConfig, model: ServedModel, spec: Spec) -> None:
    given = "workers_num" in model.config.settings.get("parallel", {}) or model.config.context
    group = message.instance_group.add(
        name=f"{model.name}_0" if given else model.name,
        kind=_KINDS.get(spec.device_kind, ModelInstanceGroup.KIND_MODEL),
        count=model.workers,
    )
    if group.kind == ModelInstanceGroup.KIND_GPU:
        group.gpus.extend(spec.device_ids or (spec.device_id,))


def _add_warm_ups(message: ModelConfig, model: ServedModel) -> None:
    for one in model.config.warm_ups:
        warm_up = message.model_warmup.add(
            name=one.name, batch_size=one.batch_size, count=one.count
        )
        for name, given in one.inputs.items():
            value: Any = warm_up.inputs[name]
            value.data_type = DataType.Value(f"TYPE_{given.datatype}")
            value.dims.extend(given.dims)
            setattr(value, given.kind, given.file or True)
