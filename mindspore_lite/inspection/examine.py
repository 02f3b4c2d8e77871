"""Examines a model file: its facts and, when wanted, sketches of its graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindspore_lite.core.files import open_file
from mindspore_lite.core.foreign_files import HEAD_BYTES, recognised, told
from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.inspection import mindir_model, mindir_sketch, onnx_model
from mindspore_lite.inspection.facts import Facts
from mindspore_lite.inspection.sketch import Sketch
from mindspore_lite.mindir.read import read_file
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.weights.resolve import Listed, every_weight


@dataclass(frozen=True)
class Examined:
    """A model file that was looked at."""

    facts: Facts
    sketches: Callable[[], list[Sketch]]  # made when called: only a drawing needs them


def examine(path: Path) -> Examined:
    """Look at a model file: ONNX or MindIR."""
    if model_kind(path) == "ONNX":
        try:
            facts, sketches = onnx_model.examine(path, source_of(ModelInput("ONNX", path)))
        except LiteError:
            raise
        except Exception as exc:  # damage that the loader lets through: onnx raises many kinds
            raise ModelFileError(f"{str(path)!r} makes no sense as ONNX: {exc!r:.300}") from exc
        return Examined(facts, lambda: sketches)
    source = source_of(ModelInput("MINDIR", path, carries_state=True))
    try:
        model = read_file(path)
    except ModelFileError as exc:
        with open_file(path) as file:
            found = recognised(file[:HEAD_BYTES], refused=True)
        if found is None:
            raise
        raise told(found).prefixed(f"{str(path)!r} cannot be loaded as MindIR: ") from exc
    facts = mindir_model.facts_of(path, model, source)
    return Examined(facts, lambda: mindir_sketch.sketches(model, facts.problems))


def weights_of(path: Path) -> list[Listed]:
    """Every weight of a model file, ONNX or MindIR, as the engine would see it."""
    try:
        return every_weight(source_of(ModelInput(model_kind(path), path)).translate())
    except OpenRankError as exc:
        raise ModelFileError(
            f"{str(path)!r} leaves the number of dims of an input open: its graph is made when a "
            "request comes, and none of its weights can change"
        ) from exc
    except LiteError:
        raise
    except Exception as exc:  # damage that the loader lets through: onnx raises many kinds
        raise ModelFileError(f"{str(path)!r} makes no sense: {exc!r:.300}") from exc
