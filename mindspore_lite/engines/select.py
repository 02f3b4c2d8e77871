"""Which engine serves a target: its name goes in, an engine or a clear error comes out."""

from __future__ import annotations

from contextlib import suppress

from mindspore_lite.engines import ascend
from mindspore_lite.engines.base import Engine
from mindspore_lite.errors import EngineUnavailableError


def engine_for(target: str) -> Engine:
    """The engine of a target; its runtime is imported here, not before."""
    name = target.lower()
    if name == "gpu":
        raise EngineUnavailableError(
            f"target {target!r} is not available in this version; use target 'cpu'"
        )
    if name == "ascend":
        ascend.require()
    elif name != "cpu":
        raise ValueError(f"target is {target!r}, wanted 'cpu', 'gpu' or 'ascend'")
    try:
        from mindspore_lite.engines.onnxruntime import OnnxRuntimeEngine
    except ImportError as exc:
        raise EngineUnavailableError(
            f"target {name!r} needs ONNX Runtime, which cannot be imported ({exc}): "
            "pip install onnxruntime"
        ) from exc
    return OnnxRuntimeEngine()


def usable_targets() -> list[str]:
    """The targets for which a model can be built here."""
    found = []
    for target in ("cpu", "gpu", "ascend"):
        with suppress(EngineUnavailableError):
            engine_for(target)
            found.append(target)
    return found


def available() -> list[tuple[str, str | None, str]]:
    """(engine, version or None, what it serves or why it is missing) of every engine."""
    found: list[tuple[str, str | None, str]] = []
    try:
        from mindspore_lite.engines.onnxruntime import VERSION

        found.append(("onnxruntime", VERSION, "target cpu"))
    except ImportError as exc:
        reason = f"target cpu: cannot be imported ({exc}): pip install onnxruntime"
        found.append(("onnxruntime", None, reason))
    return [*found, ("torch", None, "targets gpu and ascend: not used in this version")]
