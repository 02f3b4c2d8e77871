"""Reads config.pbtxt: Triton's model configuration, in our terms.

A key that cannot be obeyed is refused by its name; one that is a hint for another runtime, or a
feature that has no counterpart here, is listed in `ignored`. Nothing is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import text_format

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.errors import printable
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig, ModelInput
from mindspore_lite.server.grpc.pool import POOL
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.labels import read_labels
from mindspore_lite.server.repository.own_keys import check_settings
from mindspore_lite.server.repository.parameters import Parameters
from mindspore_lite.server.repository.records import (
    NEWEST,
    Declared,
    ServeConfig,
    VersionPolicy,
)
from mindspore_lite.server.repository.scheduling import batching, instances
from mindspore_lite.server.repository.tensors import dims_of, type_name
from mindspore_lite.server.repository.warm_ups import read_warm_ups

NAME = "config.pbtxt"
MAX_BYTES = 1 << 20  # guess: a hundred times what people write
USUAL_CACHE_BYTES = 64 << 20  # where response_cache is enabled and nothing says how large it is

_REFUSED = {  # and why
    "sequence_batching": "models here keep no state between requests",
    "ensemble_scheduling": "models are not joined here; call them one after the other",
    "batch_input": "inputs are those of the requests",
    "batch_output": "outputs are those of the model",
    "cc_model_filenames": "a version has one model file; use default_model_filename",
    "model_operations": "operators are not loaded from libraries",
    "model_repository_agents": "there are no agents",
}
_HINTS = ("optimization", "metric_tags", "model_metrics", "runtime")
_FLAGS = ("is_shape_tensor", "allow_ragged_batch", "optional", "is_non_linear_format_io")
_OURS = ("", "mslite", "onnxruntime", "onnxruntime_onnx", "onnx_onnxv1", "mslite_mindir")


def read_pbtxt(folder: Folder) -> ServeConfig:
    """What config.pbtxt of a folder says.

    Raises:
        LiteError: It makes no sense, or asks for what is not supported.
    """
    return from_message(parsed(folder.text(NAME, MAX_BYTES)), folder)


def parsed(text: str) -> ModelConfig:
    """A configuration in protobuf's text format.

    Raises:
        ModelFileError: It is none.
    """
    try:
        return text_format.Parse(text, ModelConfig(), descriptor_pool=POOL)
    except (text_format.ParseError, ValueError, RecursionError) as exc:
        raise ModelFileError(f"{NAME} cannot be read: {printable(str(exc))[:300]}") from exc


def from_message(message: ModelConfig, folder: Folder) -> ServeConfig:
    """What a configuration says; `folder` is that of the model, for the files it names.

    Raises:
        LiteError: It makes no sense, or asks for what is not supported.
    """
    _refuse(message)
    most = message.max_batch_size
    if most < 0:
        raise ModelFileError(f"{NAME}: max_batch_size is {most}, wanted 0 or more")
    ignored = [*_hints(message)]
    given = {key: one.string_value for key, one in message.parameters.items()}
    parameters = Parameters(given)
    context, of_instances, more = instances(message.instance_group)
    ignored += more
    of_batching, more = batching(message, context.get("target", ""))
    ignored += [*more, *parameters.ignored]
    # parameters in our own words count before Triton's
    settings = _joined(of_instances, of_batching, parameters.settings)
    context = {**context, **parameters.context}
    ignored += check_settings(settings, context)
    cache_bytes = parameters.values["cache_bytes"]
    if message.response_cache.enable and "cache_bytes" not in given:
        cache_bytes = USUAL_CACHE_BYTES
    return ServeConfig(
        max_batch_size=most,
        labels=read_labels(folder, {one.name: one.label_filename for one in message.output}),
        policy=_policy(message),
        settings=settings,
        context=context,
        warm_ups=read_warm_ups(message, folder),
        isolation=parameters.values["isolation"],
        share=parameters.values["share"],
        cache_bytes=cache_bytes,
        evictable=parameters.values["evictable"],
        inputs=_declared("input", message.input),
        outputs=_declared("output", message.output),
        parameters=given,
        file=message.default_model_filename,
        name=message.name,
        source=NAME,
        ignored=tuple(ignored),
    )


def _refuse(message: ModelConfig) -> None:
    given = {field.name for field, _ in message.ListFields()}
    for key, why in _REFUSED.items():
        if key in given:
            raise ModelFileError(f"{NAME}: {key} is not supported: {why}")
    if message.model_transaction_policy.decoupled:
        raise ModelFileError(
            f"{NAME}: model_transaction_policy.decoupled is not supported: a request has one answer"
        )
    if message.platform == "ensemble":
        raise ModelFileError(f"{NAME}: platform 'ensemble' is not supported")


def _hints(message: ModelConfig) -> list[str]:
    """Keys that are for other runtimes."""
    found = []
    for field, value in message.ListFields():
        if field.name == "optimization":
            found += [f"optimization.{one.name}" for one, _ in value.ListFields()]
        elif field.name in _HINTS:
            found.append(field.name)
        elif field.name in ("platform", "backend") and value not in _OURS:
            found.append(f"{field.name} {value[:80]!r}")
    return found


def _joined(*several: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Settings of all, the last counting first."""
    found: dict[str, dict[str, str]] = {}
    for sections in several:
        for section, entries in sections.items():
            found.setdefault(section, {}).update(entries)
    return found


def _policy(message: ModelConfig) -> VersionPolicy:
    policy = message.version_policy
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return VersionPolicy(all=True)
    if kind == "latest":
        return VersionPolicy(latest=policy.latest.num_versions or 1)
    if kind == "specific":
        versions = policy.specific.versions
        if not versions or min(versions) < 1:
            raise ModelFileError(
                f"{NAME}: version_policy.specific has versions {list(versions)[:20]}, wanted "
                "numbers from 1 on"
            )
        return VersionPolicy(specific=tuple(str(version) for version in versions))
    return NEWEST


def _declared(what: str, tensors: Sequence[Any]) -> tuple[Declared, ...]:
    found: dict[str, Declared] = {}
    for one in tensors:
        where = f"{NAME}: {what} {one.name[:80]!r}"
        if not one.name or one.name in found:
            raise ModelFileError(f"{where} {'is there twice' if one.name else 'has no name'}")
        for flag in (
            "is_shape_tensor",
            "allow_ragged_batch",
            "optional",
            "is_non_linear_format_io",
        ):
            if getattr(one, flag, False):
                raise ModelFileError(f"{where}: {flag} is not supported; leave it out")
        if one.HasField("reshape") and one.reshape.shape != one.dims:
            raise ModelFileError(
                f"{where}: reshape is not supported; give dims as the model has them, and leave "
                "it out"
            )
        found[one.name] = Declared(
            one.name,
            type_name(one.data_type, where),
            dims_of(one.dims, where) if one.dims else None,
            ModelInput.Format.Name(one.format) if what == "input" else "",
            getattr(one, "label_filename", ""),
        )
    return tuple(found.values())
