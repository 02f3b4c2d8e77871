"""A model before any engine has seen it: what decides its content, and how to turn it into a graph.

Nothing here loads onnx or onnx-ir until a graph is really wanted: a start from the compile cache
never comes to that.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import local_name

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.mindir.records import Model

# input name -> dims, None for one known only at run time
Shapes = Mapping[str, Sequence[int | None]]

End = tuple[str, np.dtype, tuple[int, ...]]  # name, type and dims of an input or output
_RANKS = (2, 4, 3, 1, 5, 0)  # to try for inputs of any rank, the likely ones first


@dataclass(frozen=True)
class Trial:
    """What a model whose inputs may have any rank looks like with one of them."""

    open: tuple[str, ...]  # the inputs in question
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    metadata: dict[str, str]


class OpenRankError(UnsupportedOpError):
    """Inputs may have any number of dims: a graph can only be made for a given number."""

    def __init__(self, trial: Trial) -> None:
        names = list(trial.open)
        super().__init__(f"the inputs {names} have no fixed number of dims; give them shapes")
        self.trial = trial


@dataclass(frozen=True)
class Source:
    """An engine that finds a compiled artefact for `files` and `recipe` never calls `translate`."""

    files: tuple[Path, ...]  # hashed together: the model file and what it refers to
    recipe: str  # whatever else decides the graph: the translator, changed input shapes
    translate: Callable[[], ir.Model]


def mindir_source(path: Path, input_shapes: Shapes | None = None) -> Source:
    """A MindIR file, optionally with other input shapes than it was exported with."""

    def translate() -> ir.Model:
        from mindspore_lite.graph.from_mindir import from_mindir
        from mindspore_lite.mindir.read import read_file

        model = read_file(path)
        if not input_shapes and (names := _of_open_rank(model)):
            raise OpenRankError(_trial(model, names))
        return from_mindir(model, input_shapes)

    return Source((path,), _recipe("mindir", input_shapes), translate)


def _of_open_rank(model: Model) -> tuple[str, ...]:
    return tuple(
        declared.given_name or local_name(declared.name)
        for declared in model.graph.inputs
        if getattr(declared.type, "shape", ()) is None
    )


def _trial(model: Model, names: tuple[str, ...]) -> Trial:
    """Translate for the first rank that works, to know the outputs and what is unsupported."""
    from mindspore_lite.graph.element_types import element_types
    from mindspore_lite.graph.from_mindir import from_mindir

    refusals = []
    for rank in _RANKS:
        try:
            made = from_mindir(model, {name: [None] * rank for name in names})
        except UnsupportedOpError as exc:
            refusals.append(exc)
            continue
        types = element_types(made)
        inputs = tuple(_end(value, types[value]) for value in made.graph.inputs)
        outputs = tuple(_end(value, types[value]) for value in made.graph.outputs)
        return Trial(names, inputs, outputs, dict(made.metadata_props))
    raise refusals[0]


def _end(value: ir.Value, dtype: ir.DataType) -> End:
    dims = tuple(d if isinstance(d, int) else -1 for d in value.shape or ())
    return str(value.name), dtype.numpy(), dims


def onnx_source(path: Path, input_shapes: Shapes | None = None) -> Source:
    """An ONNX file with the external data files that it names."""
    from mindspore_lite.graph.onnx_file import external_files

    def translate() -> ir.Model:
        from mindspore_lite.graph.onnx_file import load_onnx

        return load_onnx(path, input_shapes)

    return Source((path, *external_files(path)), _recipe("onnx", input_shapes), translate)


def _recipe(kind: str, input_shapes: Shapes | None) -> str:
    shapes = {name: list(dims) for name, dims in (input_shapes or {}).items()}
    return f"{kind} {translator_digest()} {json.dumps(shapes, sort_keys=True)}"


@functools.cache
def translator_digest() -> str:
    """Changes with any line of the code that builds graphs: no artefact outlives its maker."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("mindir", "ops", "graph"):
        for file in sorted((package / folder).glob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
