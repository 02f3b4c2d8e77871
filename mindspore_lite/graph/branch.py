"""Translates an `if`: both functions of a Choice become branches of one ONNX If.

What comes out of a function is a set of leaves, single values under a key: the result, taken apart
where it is a tuple, and inside a loop (graph/loop.py) also what the next round starts with. Both
branches must put out the same leaves, so these are joined one by one:

1. the same storage on both sides, or a constant that is equal, needs no output at all;
2. a leaf that one side lacks is replaced there by an empty tensor, which is never read;
3. the rest become outputs of the If, of one type.

Storages of the outside that either branch changed in place come out as well, and are written after.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.control import FUNCTIONS, Choice, Raised
from mindspore_lite.graph.storage import Slot, birth_mark, take_back
from mindspore_lite.mindir.records import Monad
from mindspore_lite.ops.tape import OPSET, Complex, Tape, constant_of

if TYPE_CHECKING:
    from mindspore_lite.graph.loop import Loop
    from mindspore_lite.graph.walk import Walk

MAX_NESTING = 25  # of If and Loop: protobuf refuses messages nested deeper than 100, each takes 3

_LACKING = object()

Key = tuple[Hashable, ...]
Form = tuple["Form | None", ...] | None  # None is a single value, a tuple has one form per element


@dataclass
class Outcome:
    """What comes out of a function: single values by key, and how they make up tuples."""

    leaves: dict[Key, Slot] = field(default_factory=dict)
    forms: dict[Key, Form] = field(default_factory=dict)

    def put(self, key: Key, value: Slot) -> None:
        """Add a value, a tuple leaf by leaf."""
        self.forms[key] = self._spread(key, value)

    def _spread(self, key: Key, value: Slot) -> Form:
        if value.parts is None:
            self.leaves[key] = value
            return None
        return tuple(self._spread((*key, i), part) for i, part in enumerate(value.parts))

    def get(self, key: Key) -> Slot:
        """A value put together again."""
        return self._gathered(key, self.forms[key])

    @property
    def failed(self) -> bool:
        """Whether something in it could not be translated."""
        return any(leaf.failed for leaf in self.leaves.values())

    def _gathered(self, key: Key, form: Form) -> Slot:
        if form is None:
            return self.leaves[key]
        return Slot(tuple(self._gathered((*key, i), part) for i, part in enumerate(form)))


@dataclass
class Branch:
    """A piece of translation on the side: its nodes, what came out, and what it changed outside."""

    nodes: list[ir.Node] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    values: dict[Key, Any] = field(default_factory=dict)  # what the leaves hold at its end
    changed: dict[Slot, Any] = field(default_factory=dict)  # None for one that cannot be read


@contextmanager
def branch(walk: Walk) -> Iterator[Branch]:
    """Translate aside: nodes are kept apart, and changes of storages are noted and taken back."""
    if walk.nesting >= MAX_NESTING:
        raise UnsupportedOpError(f"control flow nested more than {MAX_NESTING} deep")
    found = Branch()
    outer, walk.changes = walk.changes, []
    mark = birth_mark()
    walk.nesting += 1
    try:
        with walk.tape.inner() as found.nodes:
            yield found
            for key, leaf in found.outcome.leaves.items():
                if not leaf.spoiled:
                    found.values[key] = leaf.read()
        for change in walk.changes:
            slot = change.slot
            if slot.birth < mark and not slot.is_view:  # views follow their base
                found.changed[slot] = None if slot.spoiled else slot.read()
    finally:
        take_back(walk.changes)
        walk.changes = outer
        walk.nesting -= 1


def choose(
    walk: Walk, choice: Choice, arguments: list[Slot], depth: int, loop: Loop | None
) -> Outcome:
    """Call one of two functions, as an ONNX If where it is known only at run time which."""
    known = constant_of(choice.condition)
    if known is not None:
        function = choice.yes if bool(known.reshape(())) else choice.no
        return walk.apply(function, arguments, depth, loop)
    label, mark = walk.tape.label, birth_mark()
    sides = []
    for function, other in ((choice.yes, choice.no), (choice.no, choice.yes)):
        try:
            with branch(walk) as side:
                side.outcome = walk.apply(function, arguments, depth + 1, loop)
        except Raised:
            return walk.apply(other, arguments, depth + 1, loop)
        if side.outcome.failed:
            return side.outcome
        sides.append(side)
    walk.tape.label = label
    return _joined(walk, choice.condition, sides[0], sides[1], mark)


def _joined(walk: Walk, condition: Any, yes: Branch, no: Branch, mark: int) -> Outcome:
    forms = yes.outcome.forms | no.outcome.forms
    for key in yes.outcome.forms.keys() & no.outcome.forms.keys():
        if yes.outcome.forms[key] != no.outcome.forms[key]:
            raise UnsupportedOpError("the two branches return tuples of different lengths")
    join = _Join(walk.tape)
    leaves, rivals = {}, []
    for key in yes.outcome.leaves | no.outcome.leaves:
        sides = [side for side in (yes, no) if key in side.outcome.leaves]
        shared = _shared(key, sides, mark)
        if shared is None:
            shared = join.output(*(side.values.get(key, _LACKING) for side in (yes, no)))
            rivals.append((shared, [side.outcome.leaves[key] for side in sides]))
        leaves[key] = shared
    writes: list[tuple[Slot, Slot | None]] = []
    for slot in yes.changed | no.changed:
        now = None if slot.spoiled else slot.read()
        values = [side.changed.get(slot, now) for side in (yes, no)]
        writes.append((slot, None if None in values else join.output(*values)))
    join.finish(_truth(walk.tape, condition), yes.nodes, no.nodes)
    for slot, made in writes:
        walk.changes += slot.spoil() if made is None else slot.write(made.read())
    for leaf, sources in rivals:
        leaf.may_share(sources)
    return Outcome(leaves, forms)


def _shared(key: Key, sides: list[Branch], mark: int) -> Slot | None:
    """The leaf itself, where it needs no output of the If."""
    slots = {side.outcome.leaves[key] for side in sides}
    first_slot = next(iter(slots))
    if len(slots) == 1 and first_slot.birth < mark:
        return first_slot
    if any(key not in side.values for side in sides):
        raise UnsupportedOpError("a branch returns a value whose storage was changed in place")
    values = [side.values[key] for side in sides]
    if any(isinstance(v, ir.Value) for v in values):
        return None
    first = values[0]
    if all(type(v) is type(first) and v == first for v in values):
        return Slot(first)
    if any(v is None or isinstance(v, (*FUNCTIONS, Complex, Monad, str)) for v in values):
        raise UnsupportedOpError("the two branches return values that ONNX cannot choose between")
    return None


def _truth(t: Tape, condition: Any) -> ir.Value:
    """One bool, from a tensor of any shape with one element, or a number."""
    truth: ir.Value = t.cast(condition, np.dtype(np.bool_))
    if truth.shape is not None and len(truth.shape) == 0:
        return truth
    made: ir.Value = t.op("Reshape", [truth, np.asarray([], np.int64)])
    return made


class _Join:
    """The outputs of an If in the making: one node list per side, and the values that come out."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.pairs: list[tuple[Any, Any]] = []
        self.outputs: list[ir.Value] = []

    def output(self, *values: Any) -> Slot:
        """One more output, of two values, one of which may be lacking."""
        present = [v for v in values if v is not _LACKING]
        dtype = self.tape.promoted(*present)
        made = ir.Value(
            name=self.tape.unique(f"{self.tape.label or 'if'}:out"),
            type=ir.TensorType(ir.DataType.from_numpy(dtype)),
            shape=_common_shape([shape_of(self.tape, v) for v in present]),
        )
        empty = np.zeros((0,) * len(made.shape or ()), dtype)
        yes, no = (empty if v is _LACKING else v for v in values)
        self.pairs.append((yes, no))
        self.outputs.append(made)
        return Slot(made)

    def finish(self, condition: ir.Value, yes: list[ir.Node], no: list[ir.Node]) -> None:
        """Record the If."""
        if not self.outputs:
            return
        t = self.tape
        name = t.unique(t.label or "if")
        graphs = {}
        for word, nodes, side in (("then_branch", yes, 0), ("else_branch", no, 1)):
            wanted = [
                (pair[side], out.dtype) for pair, out in zip(self.pairs, self.outputs, strict=True)
            ]
            outputs = sub_outputs(t, nodes, wanted)
            graphs[word] = ir.Graph([], outputs, nodes=nodes, name=f"{name}/{word}")
        t.nodes.append(
            ir.node("If", [condition], graphs, outputs=self.outputs, name=name, version=OPSET)
        )


def sub_outputs(
    t: Tape, nodes: list[ir.Node], wanted: Sequence[tuple[Any, ir.DataType | None]]
) -> list[ir.Value]:
    """Values as outputs of a sub-graph: each of the asked type, made in it, and only once."""
    free = {id(value) for node in nodes for value in node.outputs}
    outputs: list[ir.Value] = []
    outer, t.nodes = t.nodes, nodes
    try:
        for operand, dtype in wanted:
            assert dtype is not None
            count = len(nodes)
            value = t.cast(operand, dtype.numpy())
            if len(nodes) > count:
                free.add(id(value))  # the cast itself
            if id(value) not in free:
                source, value = value, t.op("Identity", [value])
                value.type, value.shape = source.type, source.shape
            free.discard(id(value))
            outputs.append(value)
    finally:
        t.nodes = outer
    return outputs


def shape_of(t: Tape, value: Any) -> tuple[int | None, ...] | None:
    """The dims of a value, None where not even their number is known."""
    try:
        return t.shape(value)
    except UnsupportedOpError:
        return None


def _common_shape(shapes: list[tuple[int | None, ...] | None]) -> ir.Shape | None:
    """What can be said of a value that has one of these shapes."""
    first, last = shapes[0], shapes[-1]
    if first is None or last is None or len(first) != len(last):
        return None
    return ir.Shape([a if a == b else None for a, b in zip(first, last, strict=True)])
