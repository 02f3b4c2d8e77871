"""A model before an engine has seen it: what decides its content, and how to translate it.

Nothing here loads onnx or onnx-ir until a graph is really wanted: a start from the compile cache
never comes to that.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mindspore_lite.core import foreign_files
from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.open_rank import OpenRankError, of_open_rank, trial
from mindspore_lite.mindir.decrypt import Key, not_authentic
from mindspore_lite.mindir.opened import open_mindir
from mindspore_lite.mindir.scan import Data

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

# input name -> dims, None for one known only at run time
Shapes = Mapping[str, Sequence[int | None]]


@dataclass(frozen=True)
class ModelInput:
    """A model as the caller handed it over: a file or bytes, and what goes with it."""

    kind: str  # a name of ModelType
    path: Path | None = None  # None: the model is in memory
    data: bytes = field(default=b"", repr=False)
    weights: bytes | None = field(default=None, repr=False)  # its side file, in memory too
    beside: Path | None = None  # where the model file would lie for its side files to be found
    key: Key | None = None
    variable: tuple[tuple[str, str], ...] = ()  # weights that may change: name, node or ""
    budget: Budget = DEFAULT  # what building it may cost
    carries_state: bool = False  # whoever runs it carries what graph/state.py describes
    strict_bfloat16: bool = False  # MindIR: round after each operator, as MindSpore does
    reads_later: bool = False  # ONNX: big weights are read when they are used; see core/snapshot.py

    @property
    def name(self) -> str:
        """What errors call it."""
        return "the model in memory" if self.path is None else repr(str(self.path))

    @property
    def place(self) -> Path | None:
        """The model file next to which its side files are looked for."""
        return self.beside or self.path

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """Identify what is in memory; files are digested by the engine."""
        if self.path is not None:
            return ()
        parts = (self.data,) if self.weights is None else (self.data, self.weights)
        return tuple(hashlib.sha256(part).hexdigest() for part in parts)


@dataclass(frozen=True)
class ModelSource:
    """An engine that finds a compiled artefact for the files and recipe never calls `translate`."""

    snapshot: Snapshot  # hashed together: the model file and what it refers to
    recipe: str  # whatever else decides the graph: the translator, changed input shapes
    translate: Callable[[], ir.Model]
    storable: bool = True  # False: it was encrypted, and nothing of it may come to lie on a disk
    variable: tuple[tuple[str, str], ...] = ()  # weights that may change: name, node or ""
    # what the session begins with in place of some of them: those of a model that is resized
    replaced: Mapping[str, np.ndarray] = field(default_factory=dict)
    digests: tuple[str, ...] = ()  # of what is in memory, as if it were the first of the files
    budget: Budget = DEFAULT  # what compiling it may cost

    @property
    def files(self) -> tuple[Path, ...]:
        """The names of the files."""
        return self.snapshot.paths


def source_of(given: ModelInput, input_shapes: Shapes | None = None) -> ModelSource:
    """The source of a model, optionally with other input shapes than it was exported with."""
    make = {"MINDIR": _mindir_parts, "ONNX": _onnx_parts}[given.kind]
    with _naming(given):
        given = _authentic(given)
        snapshot, translate, storable = make(given, input_shapes)
    recipe = _recipe(given.kind.lower(), input_shapes)
    if given.variable:  # which one compiles apart from the others; their values do not matter
        recipe = f"{recipe} {json.dumps(given.variable)}"
    if given.strict_bfloat16:
        recipe = f"{recipe} bfloat16=strict"
    digests = given.digests if storable else ()
    return ModelSource(
        snapshot,
        recipe,
        translate,
        storable,
        given.variable,
        digests=digests,
        budget=given.budget,
    )


def _authentic(given: ModelInput) -> ModelInput:
    """The model with a key that accepts only what has tags, where the budget says so."""
    if not given.budget.require_authenticated:
        return given
    if given.key is None:
        raise not_authentic("the model was given without dec_key")
    return replace(given, key=replace(given.key, authentic=True))


# the files, how to make the graph, and whether that may be stored
_Parts = tuple[Snapshot, Callable[[], "ir.Model"], bool]


def _mindir_parts(given: ModelInput, input_shapes: Shapes | None) -> _Parts:
    data = memoryview(given.data) if given.path is None else None
    weights = None if given.weights is None else memoryview(given.weights)
    opened = open_mindir(given.path, data, key=given.key, weights=weights, beside=given.place)

    def translate() -> ir.Model:
        from mindspore_lite.graph.from_mindir import from_mindir
        from mindspore_lite.mindir.read import read
        from mindspore_lite.passes.limits import within

        with _naming(given):
            model = read(*opened.load(), is_own=data is None)
        if not input_shapes and (names := of_open_rank(model)):
            raise OpenRankError(trial(model, names, given.budget, given.carries_state))
        with _naming(given):
            made = from_mindir(
                model,
                input_shapes,
                given.budget,
                carries_state=given.carries_state,
                strict_bfloat16=given.strict_bfloat16,
            )
            return within(made, given.budget)

    return opened.snapshot, translate, not opened.encrypted


def _onnx_parts(given: ModelInput, input_shapes: Shapes | None) -> _Parts:
    from mindspore_lite.graph.onnx_file import external_files

    if given.key is not None:
        raise ModelFileError("dec_key was given, but ONNX files are not encrypted; leave it out")
    if given.weights is not None:
        raise ModelFileError("weight_bytes was given, which serves MindIR alone; leave it out")
    folder = given.place and given.place.parent
    own = [] if given.path is None else [open_file(given.path)]
    side = external_files(own[0] if own else memoryview(given.data), folder)
    snapshot = Snapshot([*own, *side.values()])

    def translate() -> ir.Model:
        from mindspore_lite.graph.onnx_file import load_onnx
        from mindspore_lite.passes.limits import within

        with _naming(given):
            loaded: Sequence[Data] = snapshot.open_later() if given.reads_later else snapshot.load()
            data = loaded[0] if own else memoryview(given.data)
            contents = dict(zip(side, loaded[len(own) :], strict=True))
            model = load_onnx(data, contents, input_shapes, given.budget.max_nodes)
            if given.reads_later:
                snapshot.check_times()
            return within(model, given.budget)

    return snapshot, translate, True


@contextmanager
def _naming(given: ModelInput) -> Iterator[None]:
    """Says of which model an error speaks."""
    try:
        yield
    except ModelFileError as exc:
        kind = {"MINDIR": "MindIR"}.get(given.kind, given.kind)
        exc = _foreign(given, exc) or exc
        # a wrong key may go unnoticed until its result makes no sense
        how = f"{kind} with this dec_key" if given.key else kind
        raise exc.prefixed(f"{given.name} cannot be loaded as {how}: ") from exc.__cause__


def _head(given: ModelInput) -> bytes:
    data = given.data if given.path is None else open_file(given.path)
    return bytes(data[: foreign_files.HEAD_BYTES])


def _foreign(given: ModelInput, problem: ModelFileError) -> ModelFileError | None:
    """The error for a file of another kind; None where the one that was raised says it all."""
    if given.key is not None or isinstance(problem.__cause__, OSError):
        return None
    with suppress(ModelFileError):  # it went away meanwhile
        found = foreign_files.recognised(_head(given), refused=True)
        if found is not None:
            return foreign_files.told(found)
    return None


def _recipe(kind: str, input_shapes: Shapes | None) -> str:
    shapes = {name: list(dims) for name, dims in (input_shapes or {}).items()}
    return f"{kind} {translator_digest()} {json.dumps(shapes, sort_keys=True)}"


@functools.cache
def translator_digest() -> str:
    """Changes with any line of the code that builds graphs: no artefact outlives its maker."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    # the last: which weights may change
    for folder in ("mindir", "ops", "passes", "graph", "weights"):
        for file in sorted((package / folder).rglob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
