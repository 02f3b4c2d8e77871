"""Chooses the engine that serves a target, and imports its runtime."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from contextlib import suppress

from mindspore_lite.engines import ascend
from mindspore_lite.engines.base import Engine
from mindspore_lite.errors import EngineError, EngineUnavailableError
from mindspore_lite.settings.table import AUTO as AUTO
from mindspore_lite.settings.table import ENGINES as ENGINES


def engine_for(target: str, engine: str = "", device: int = 0) -> Engine:
    """The engine of a target; its runtime is imported here, not before.

    Args:
        target: "cpu", "gpu" or "ascend".
        engine: One of ENGINES; "" and AUTO are the usual one of the target.
        device: The card, which must be there.

    Raises:
        EngineUnavailableError: A package or a card is missing; the text says what to do.
        EngineError: The target cannot be served by that engine.
    """
    name = target.lower()
    if name not in ("cpu", "gpu", "ascend"):
        raise ValueError(f"target is {target!r}, wanted 'cpu', 'gpu' or 'ascend'")
    on_card = name == "gpu" or (name == "ascend" and not ascend.emulated())
    if on_card and engine in ("onnxruntime", "openvino"):
        raise EngineError(
            f"[common_context] engine is {engine!r}, but target {name!r} is served by engine "
            "'torch' alone; leave the entry out, or use target 'cpu'"
        )
    if name == "ascend":
        ascend.require()
    if on_card:
        from mindspore_lite.engines.torch import cards

        cards.check(f"{'cuda' if name == 'gpu' else 'npu'}:{device}")
    if on_card or engine == "torch":
        return _torch()
    return _openvino() if engine == "openvino" else _onnxruntime(name)


def _onnxruntime(target: str) -> Engine:
    try:
        from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
    except ImportError as exc:
        raise EngineUnavailableError(
            f"target {target!r} needs ONNX Runtime, which cannot be imported ({exc}): "
            "pip install onnxruntime"
        ) from exc
    return OnnxRuntimeEngine()


def _openvino() -> Engine:
    _require("openvino", "OpenVINO", "openvino")
    from mindspore_lite.engines.openvino.engine import OpenVinoEngine

    return OpenVinoEngine()


def _torch() -> Engine:
    _require("torch", "PyTorch", "gpu")
    from mindspore_lite.engines.torch.engine import TorchEngine

    return TorchEngine()


def _require(engine: str, name: str, extra: str) -> None:
    """Import the package of an engine, alone, so that a fault of ours does not look like its."""
    try:
        importlib.import_module(engine)
    except (ImportError, OSError) as exc:  # the second: libraries of it are missing
        raise EngineUnavailableError(
            f"engine {engine!r} needs {name}, which cannot be imported ({exc}): "
            f"pip install 'mslite[{extra}]', or leave [common_context] engine out"
        ) from exc


def installed(engine: str) -> bool:
    """Whether the package of an engine is there; it is not loaded."""
    return importlib.util.find_spec(engine) is not None


def usable_targets() -> list[str]:
    """The targets for which a model can be built here."""
    found = []
    for target in ("cpu", "gpu", "ascend"):
        if target == "gpu" and not has_driver():
            continue
        with suppress(EngineUnavailableError):
            engine_for(target)
            found.append(target)
    return found


def has_driver() -> bool:
    """Whether NVIDIA's driver and PyTorch are here; to ask the latter takes seconds."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return importlib.util.find_spec("torch") is not None


def available() -> list[tuple[str, str | None, str]]:
    """(engine, version or None, what it serves or why it is missing) of every engine."""
    found: list[tuple[str, str | None, str]] = []
    try:
        from mindspore_lite.engines.onnxruntime.engine import VERSION

        found.append(("onnxruntime", VERSION, "target cpu"))
    except ImportError as exc:
        reason = f"target cpu: cannot be imported ({exc}): pip install onnxruntime"
        found.append(("onnxruntime", None, reason))
    try:
        from openvino import __version__ as release

        number = str(release).partition("-")[0]  # without the names of its build
        found.append(("openvino", number, "target cpu with engine=openvino"))
    except (ImportError, OSError) as exc:
        reason = f"target cpu: cannot be imported ({exc}): pip install 'mslite[openvino]'"
        found.append(("openvino", None, reason))
    try:
        from torch import __version__ as version
    except (ImportError, OSError) as exc:
        reason = f"targets gpu and ascend: cannot be imported ({exc}): pip install 'mslite[gpu]'"
        return [*found, ("torch", None, reason)]
    return [*found, ("torch", str(version), "targets gpu and ascend, cpu with engine=torch")]
