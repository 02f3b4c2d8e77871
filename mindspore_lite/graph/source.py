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

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import local_name

if TYPE_CHECKING:
    import onnx_ir as ir

# input name -> dims, None for one known only at run time
Shapes = Mapping[str, Sequence[int | None]]


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
        for declared in model.graph.inputs:  # engines have no way to say "any number of dims"
            if getattr(declared.type, "shape", ()) is None:
                raise UnsupportedOpError(
                    f"input {local_name(declared.name)!r} has no fixed number of dims; export the "
                    "network with a shape, None standing for each open dim"
                )
        return from_mindir(model, input_shapes)

    return Source((path,), _recipe("mindir", input_shapes), translate)


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
