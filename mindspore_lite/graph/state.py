"""Parameters that a network assigns in one run and reads in the next: its state.

The graph of such a network has three more ends for each of them, which its metadata lists under
KEY: an input with the value that the run before left, an input that says whether there was none,
so that the value of the file counts, and an output with the value for the next run. Whoever runs
the graph carries the values (engines/sessions/state.py); callers never see these ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import ModelFileError, UnsupportedOpError

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.ops.tape import Tape

KEY = "mslite.state"  # metadata: [{"name": ..., "first": ..., "before": ..., "after": ...}] as JSON


@dataclass(frozen=True)
class Kept:
    """The ends of one parameter, by name."""

    name: str  # of the initializer, which has the value of the file
    first: str  # input: True where no run was before
    before: str  # input: what the run before left
    after: str  # output: what this run leaves


def kept_in(metadata: Mapping[str, str]) -> tuple[Kept, ...]:
    """The state of a translated model; an ONNX file may hold anything under that name."""
    text = metadata.get(KEY)
    if text is None:
        return ()
    try:
        found = tuple(Kept(**row) for row in read_json(text))
    except (ValueError, TypeError) as exc:
        raise ModelFileError(f"the model's metadata {KEY!r} makes no sense: {exc}") from exc
    if not all(isinstance(name, str) for kept in found for name in asdict(kept).values()):
        raise ModelFileError(f"the model's metadata {KEY!r} is {text[:200]!r}: wanted names")
    return found


def written(found: Iterable[Kept]) -> str:
    """What the metadata says of a state."""
    return json.dumps([asdict(kept) for kept in found])


@dataclass(frozen=True)
class Carried:
    """One parameter, or one part of a complex one, while its network is translated."""

    initial: ir.Value
    first: ir.Value
    before: ir.Value
    current: ir.Value  # what the network reads: one of the two

    def kept(self, after: str) -> Kept:
        """Its ends."""
        return Kept(str(self.initial.name), str(self.first.name), str(self.before.name), after)


def carried(tape: Tape, initial: ir.Value) -> Carried:
    """Let a parameter begin with what the run before left; its size is that of the file."""
    import onnx_ir as ir

    name = initial.name
    first = ir.Value(
        name=tape.unique(f"{name}/first"),
        type=ir.TensorType(ir.DataType.BOOL),
        shape=ir.Shape(()),
    )
    before = ir.Value(name=tape.unique(f"{name}/before"), type=initial.type, shape=initial.shape)
    tape.label = f"{name}/current"
    current = tape.op("Where", [first, initial, before])
    current.type, current.shape = initial.type, initial.shape
    return Carried(initial, first, before, current)


def reached(outputs: Iterable[ir.Value]) -> set[ir.Value]:
    """All values that outputs depend on, also through branches and loops.

    The shape of a value does not depend on the value.
    """
    found: set[ir.Value] = set()
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        node = value.producer()
        if node is not None and not (node.op_type == "Shape" and node.domain == ""):
            pending += (source for source in node.inputs if source is not None)
            pending += _inner(node)
    return found


def _inner(node: ir.Node) -> Iterator[ir.Value]:
    """The results of the graphs that a node holds."""
    for attribute in node.attributes.values():
        value: Any = attribute.value
        for graph in value if isinstance(value, list | tuple) else (value,):
            if hasattr(graph, "outputs") and hasattr(graph, "initializers"):
                yield from graph.outputs


def refuse(name: str | None) -> UnsupportedOpError:
    """The error where nothing carries a state."""
    return UnsupportedOpError(
        f"the network changes its parameter {name!r} and reads it in the next run, but no state is "
        "kept between runs here; run it by Model, or make it an input and an output"
    )
