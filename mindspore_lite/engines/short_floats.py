"""Finds an engine for `precision_mode` preferred_fp16 and preferred_bf16 on the CPU.

On x86 ONNX Runtime has no kernels for 16 bits that are faster than float32; OpenVINO has, on CPUs
with instructions for them. An engine that the user named is kept. A wish that cannot be met is a
warning, and the model is computed in float32.
"""

from __future__ import annotations

import platform
import warnings
from dataclasses import replace

from mindspore_lite.core.capabilities import ENGINES, named, those_that
from mindspore_lite.engines.cache import digest
from mindspore_lite.engines.select import AUTO, installed
from mindspore_lite.errors import EngineError
from mindspore_lite.settings.spec import MEASURED, Spec

PLAIN = "enforce_fp32"
_USUAL, _ABLE = ENGINES["onnxruntime"], ENGINES["openvino"]
_DYNAMIC = b"DynamicQuantizeLinear"
_FAST = frozenset({"avx512_bf16", "amx_bf16", "avx512_fp16", "amx_fp16"})


def is_asked(spec: Spec) -> bool:
    """Whether a spec prefers 16 bits on the CPU."""
    return not spec.on_card and spec.precision != PLAIN


def is_chosen(spec: Spec) -> bool:
    """Whether the user named the engine; one that was measured may give way to another."""
    said = spec.settled.get("common_context.engine")
    return spec.engine not in ("", AUTO) and (said is None or said.source != MEASURED)


def is_picked(spec: Spec) -> bool:
    """Whether the engine of a settled spec is the one that `fitted` put in."""
    said = spec.settled.get("common_context.engine")
    return (
        is_asked(spec)
        and spec.engine == _ABLE.name
        and said is not None
        and said.value != spec.engine
    )


def check(graph: bytes) -> None:
    """Refuse a model for an engine that was picked: one that the usual engine computes faster."""
    if _DYNAMIC in graph:
        raise EngineError(
            f"its products are quantised while it runs (DYNAMIC_QUANT), for which {_ABLE.title} "
            "has no fast kernels"
        )


def fitted(spec: Spec) -> Spec:
    """The spec with an engine that computes in 16 bits, or with a warning and float32.

    Raises:
        EngineError: preferred_bf16 is asked for, and the usual engine does not know it.
    """
    if not is_asked(spec) or _is_met(spec):
        return spec
    reason = _why_not(spec)
    if not reason:
        return replace(spec, engine=_ABLE.name)
    if spec.precision not in named(spec.engine).cpu_precisions:
        able = those_that(lambda one: spec.precision in one.cpu_precisions)
        raise EngineError(
            f"[cpu_context] precision_mode is {spec.precision!r}, which on the CPU takes "
            f"[common_context] engine={able}, and none was picked: {reason}"
        )
    warnings.warn(
        f"[cpu_context] precision_mode is {spec.precision!r}, but {named(spec.engine).title} "
        f"computes in float32 here, and no faster: {reason}",
        UserWarning,
        stacklevel=7,
    )
    return replace(spec, precision=PLAIN)


def _is_met(spec: Spec) -> bool:
    """Whether the engine of a spec computes in 16 bits on this CPU, as far as it is known."""
    engine, features = named(spec.engine), _features()
    if engine is _USUAL:
        return not _is_x86() and "bf16" in features
    # without its instructions OpenVINO still computes in bfloat16, if there is AVX-512
    return engine is not _ABLE or not _is_x86() or bool(features & (_FAST | {"avx512f"}))


def _why_not(spec: Spec) -> str:
    """Why no other engine can be taken, and what to do; "" where one can."""
    leave = "leave precision_mode out"
    if not _is_x86() or not _features() & _FAST:
        wanted = "bf16" if not _is_x86() else "avx512_bf16 or amx_bf16"
        return f"the CPU has no instructions for 16 bits, wanted {wanted}; {leave}"
    if not installed(_ABLE.name):
        return f"{_ABLE.title}, which could, is not installed; {_ABLE.install}, or {leave}"
    if is_chosen(spec):
        return f"[common_context] engine={_ABLE.name} could; set that, or {leave}"
    if spec.profile:
        return f"[common_context] profile takes {_USUAL.title}; leave that out, or {leave}"
    return ""


def _is_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def _features() -> frozenset[str]:
    return frozenset(digest.cpu_features().split())
