"""What each engine can do, one row per engine; nothing of an engine is imported for it.

To add an engine: a folder engines/<name>/ whose module `engine` has ENGINE, the class of
engines/base.py, and a row here. Settings, placement, the command line and the benchmarks ask these
rows; no module outside the engine's folder needs its name. tests/engines/test_contract.py holds
rows to the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindspore_lite.core.extras import pip_install

_PLAIN = ("enforce_fp32", "preferred_fp16")
_ALL = (*_PLAIN, "preferred_bf16")


@dataclass(frozen=True)
class Capabilities:
    """One engine. Every engine serves target 'cpu'."""

    name: str  # in [common_context] engine, and of its folder under engines/
    title: str  # for people
    package: str  # of its runtime, as it is imported
    extra: str  # of this package, which brings that; "": it is no extra
    cpu_precisions: tuple[str, ...]
    serves_cards: bool = False  # targets 'gpu' and 'ascend'; engines/<name>/cards.py has check()
    maps_weights: bool = True  # sessions on the host share the pages of a cached model
    queues: bool = False  # runs of a session beyond Options.streams wait in it, in their order
    compiles_apart: bool = True  # Compiling: so it can be done in a jailed process
    exports: bool = False  # sessions on cards share their weights with other processes
    profiles: bool = False  # [common_context] profile
    builds_slowly: bool = False  # a first build is worth a word to who waits for it

    @property
    def install(self) -> str:
        """The command that installs its runtime."""
        return pip_install(self.extra) if self.extra else f"pip install {self.package}"


_ROWS = (  # the first is the default on the CPU, the first that serves cards the one on cards
    Capabilities(
        "onnxruntime", "ONNX Runtime", "onnxruntime", "", _PLAIN,
        profiles=True,
    ),
    Capabilities(
        "openvino", "OpenVINO", "openvino", "openvino", _ALL,
        maps_weights=False, queues=True,
    ),
    Capabilities(
        "torch", "PyTorch", "torch", "gpu", _ALL,
        serves_cards=True, compiles_apart=False, exports=True, builds_slowly=True,
    ),
)  # fmt: skip
ENGINES = {row.name: row for row in _ROWS}


def named(engine: str, on_card: bool = False) -> Capabilities:
    """The row of an engine; "" and "auto" are the usual one of the CPU, or of cards."""
    usual = next(row for row in _ROWS if row.serves_cards or not on_card)
    return ENGINES.get(engine, usual)


def those_that(fit: Callable[[Capabilities], bool]) -> str:
    """The names of the engines that fit, for a sentence: "openvino or torch"."""
    return " or ".join(name for name, row in ENGINES.items() if fit(row))
