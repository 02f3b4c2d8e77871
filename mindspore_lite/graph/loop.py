"""Translates a `while`: a graph that ends by calling itself becomes an ONNX Loop.

    header(n, i, y):  Switch(i < n, Partial(body, n, i, y), Partial(exit, y)), called
    body(n, i, y):    ... ends in header(n, i + 1, y + ...), or in leaving (break, return)

One round is one run of the header. It ends either in another call of the header, whose arguments
are the state of the next round, or in leaving: a call of a graph from which no way leads back, or a
plain result. The function left for is not part of the loop: the arguments it is to be called with
come out, and it is called after the Loop. Where there are several ways out, `which` says which.

What a loop carries is found by trying. At first every argument is taken to be the same in all
rounds, which keeps weights and constants out of the state. Arguments that a round turns out to
replace, and storages of the outside that it changes in place, are carried from then on, and the
round is translated anew until nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.branch import Key, Outcome, branch, shape_of, sub_outputs
from mindspore_lite.graph.control import FUNCTIONS, Choice, Closure, Function, Known
from mindspore_lite.graph.storage import Slot, birth_mark
from mindspore_lite.mindir.records import Graph, GraphRef, Monad, SequenceType, TensorType, Type
from mindspore_lite.ops.tape import OPSET, Complex

if TYPE_CHECKING:
    from mindspore_lite.graph.walk import Walk

_AGAIN, _WHICH, _STATE, _EXIT = "again", "which", "state", "exit"


class Loop:
    """What a walk must know while it is inside a round."""

    def __init__(self, header: str, state: list[Slot], enclosing: frozenset[str]) -> None:
        self.header = header
        self.state = state
        self.enclosing = enclosing  # headers of the loops around this one
        self.exits: list[str | None] = []  # graphs left for, None for a plain result

    def again(self, arguments: list[Slot]) -> Outcome:
        """The round ends in a call of the header."""
        outcome = Outcome()
        outcome.put((_AGAIN,), Slot(True))
        for k, slot in enumerate(arguments):
            outcome.put((_STATE, k), slot)
        return outcome

    def leave(self, target: str | None, arguments: list[Slot]) -> Outcome:
        """The round ends in leaving; the state stays what it is."""
        outcome = self.again(self.state)
        if target not in self.exits:
            self.exits.append(target)
        way = self.exits.index(target)
        outcome.put((_AGAIN,), Slot(False))
        outcome.put((_WHICH,), Slot(way))
        outcome.put((_EXIT, way), Slot(tuple(arguments)))
        return outcome


@dataclass(frozen=True, eq=False)
class _Carried:
    """One value that goes from round to round."""

    first: Any
    inside: ir.Value
    following: Any


@dataclass(eq=False)
class _Round:
    """One translation of a round."""

    nodes: list[ir.Node]
    outcome: Outcome
    exits: list[str | None]
    mark: int  # births above it are inside the loop
    state: Outcome  # what the round begins with, where it is carried
    values: dict[Key, Any]  # what the leaves of the outcome hold at its end
    stored: dict[Slot, _Carried]  # storages of the outside
    spoiled: list[Slot]  # storages that must not be read any more


def run_loop(
    walk: Walk, graph: Graph, arguments: list[Slot], depth: int, outer: Loop | None
) -> Outcome:
    """Call a graph that calls itself at its end."""
    label = walk.tape.label
    carried: set[int] = set()
    stored: list[Slot] = []
    rivals = False  # whether carried values may share a storage, in some round
    while True:
        problems = walk.problems_so_far()
        found = _round(walk, graph, arguments, depth, carried, stored, rivals)
        if found.outcome.failed:
            return found.outcome
        replaced = _replaced(arguments, found.outcome) - carried
        written = [slot for slot in found.stored if slot not in stored]
        met = not rivals and _may_share(arguments, found)
        if not replaced and not written and not met:
            break
        carried |= replaced
        stored += written
        rivals |= met
        walk.problems = problems
    walk.tape.label = label
    return walk.apply(_emitted(walk, arguments, found), [], depth + 1, outer)


def _round(
    walk: Walk,
    graph: Graph,
    arguments: list[Slot],
    depth: int,
    carried: set[int],
    stored: list[Slot],
    rivals: bool,
) -> _Round:
    """Translate one round, with these arguments and storages carried."""
    mark = birth_mark()
    begin = [
        _fresh(walk, slot, declared.type) if k in carried else slot
        for k, (slot, declared) in enumerate(zip(arguments, graph.inputs, strict=True))
    ]
    state = Outcome()
    for k in sorted(carried):
        state.put((_STATE, k), begin[k])
    if rivals:
        outside = [part for slot in arguments for part in _flat(slot)]
        for entry in state.leaves.values():
            entry.may_share([*outside, *state.leaves.values()])
    loop = Loop(graph.name, begin, frozenset(walk.active))
    found = _Round([], Outcome(), loop.exits, mark, state, {}, {}, [])
    insides = {slot: _fresh_value(walk, slot.read(), None) for slot in stored}
    walk.active.append(graph.name)
    try:
        with branch(walk) as side:
            for slot, inside in insides.items():
                walk.changes += slot.write(inside)
            found.nodes, found.outcome = side.nodes, walk.graph(graph, begin, depth + 1, loop)
            side.outcome = found.outcome
            if found.outcome.failed:
                return found
    finally:
        walk.active.pop()
    found.values = side.values
    if any(key[0] == _STATE and key not in found.values for key in found.outcome.leaves):
        raise UnsupportedOpError("a loop hands on a value whose storage was changed in place")
    for slot, value in side.changed.items():
        if slot in state.leaves.values():  # the first round changed the caller's, later ones not
            found.spoiled += [arguments[k] for k in carried if slot in _flat(begin[k])]
        elif value is None:
            found.spoiled.append(slot)
        else:
            inside = insides.get(slot) or _fresh_value(walk, slot.read(), None)
            found.stored[slot] = _Carried(slot.read(), inside, value)
    return found


def _may_share(arguments: list[Slot], found: _Round) -> bool:
    """Whether two values that a round begins with may be one storage: at first, or later."""
    kept = [slot for k, slot in enumerate(arguments) if (_STATE, k) not in found.state.forms]
    first = [part for slot in arguments for part in _flat(slot)]
    later = [found.outcome.leaves[key] for key in found.state.leaves]
    return _overlap(first) or _overlap([*later, *(part for slot in kept for part in _flat(slot))])


def _overlap(slots: list[Slot]) -> bool:
    seen: set[int] = set()
    for slot in slots:
        if isinstance(slot.held, ir.Value):
            if slot.kin in seen:
                return True
            seen.add(slot.kin)
    return False


def _flat(slot: Slot) -> Iterator[Slot]:
    if slot.parts is None:
        yield slot
    else:
        for part in slot.parts:
            yield from _flat(part)


def _replaced(arguments: list[Slot], outcome: Outcome) -> set[int]:
    """The arguments that the next round gets another value for."""
    before = Outcome()
    for k, slot in enumerate(arguments):
        before.put((_STATE, k), slot)
    for key, form in before.forms.items():
        if outcome.forms[key] != form:
            raise UnsupportedOpError("a loop changes the length of a tuple")
    return {
        int(str(key[1]))
        for key, now in before.leaves.items()
        if not _same(now, outcome.leaves[key])
    }


def _same(a: Slot, b: Slot) -> bool:
    if a is b:
        return True
    x, y = a.read(), b.read()
    if isinstance(x, Monad) and isinstance(y, Monad):
        return True
    return not isinstance(x, ir.Value) and type(x) is type(y) and bool(x == y)


def _fresh(walk: Walk, slot: Slot, declared: Type | None) -> Slot:
    """A Slot of the same form that holds what a round is given."""
    if slot.parts is None:
        return Slot(_fresh_value(walk, slot.read(), declared))
    types = declared.items if isinstance(declared, SequenceType) else (None,) * len(slot.parts)
    if len(types) != len(slot.parts):
        raise UnsupportedOpError("a loop changes the length of a tuple")
    return Slot(tuple(_fresh(walk, p, t) for p, t in zip(slot.parts, types, strict=True)))


def _fresh_value(walk: Walk, value: Any, declared: Type | None) -> ir.Value:
    """An input of the loop's body; the type that the file states holds for all rounds."""
    if value is None or isinstance(value, (*FUNCTIONS, Complex, Monad, str)):
        raise UnsupportedOpError("a loop changes a value that is no tensor")
    t = walk.tape
    made = ir.Value(name=t.unique(f"{t.label or 'loop'}:in"))
    if isinstance(declared, TensorType):
        t.declare(made, declared)
        return made
    shape = shape_of(t, value)
    made.type = ir.TensorType(ir.DataType.from_numpy(t.dtype(value)))
    made.shape = None if shape is None else ir.Shape([None] * len(shape))
    return made


def _emitted(walk: Walk, arguments: list[Slot], found: _Round) -> Function:
    """Record the Loop; returns the function to go on with after it."""
    if found.values[_AGAIN,] is True:
        raise UnsupportedOpError("a loop that never ends")
    starts = _starts(arguments, found)
    carried = {
        key: _Carried(starts[key].read(), entry.read(), found.values[key])
        for key, entry in found.state.leaves.items()
    }
    carried |= {key: _leaving(walk, key, found) for key in _made_inside(found)}
    outputs = _loop_node(walk, found, [*carried.values(), *found.stored.values()])
    after = dict(zip(carried, outputs, strict=False))
    for slot, value in zip(found.stored, outputs[len(carried) :], strict=True):
        walk.changes += slot.write(value)
    for slot in found.spoiled:
        walk.changes += slot.spoil()
    return _way_out(walk, arguments, found, after)


def _starts(arguments: list[Slot], found: _Round) -> dict[Key, Slot]:
    """What the first round is given, leaf by leaf, where it is carried."""
    starts = Outcome()
    for key in found.state.forms:
        starts.put(key, arguments[int(str(key[1]))])
    return starts.leaves


def _made_inside(found: _Round) -> list[Key]:
    """Leaves of the ways out that only a Loop can bring out: they are made in the last round."""
    begin = set(found.state.leaves.values())
    return [
        key
        for key, leaf in found.outcome.leaves.items()
        if key[0] in (_WHICH, _EXIT)
        and isinstance(found.values.get(key), ir.Value)
        and leaf not in begin
        and leaf.birth > found.mark
    ]


def _leaving(walk: Walk, key: Key, found: _Round) -> _Carried:
    """Such a leaf; before the last round it is empty."""
    inside = _fresh_value(walk, found.values[key], None)
    assert inside.dtype is not None
    empty = np.zeros((0,) * len(inside.shape or ()), inside.dtype.numpy())
    return _Carried(empty, inside, found.values[key])


def _loop_node(walk: Walk, found: _Round, carried: list[_Carried]) -> list[ir.Value]:
    t = walk.tape
    name = t.unique(t.label or "loop")
    counter = ir.Value(name=f"{name}:round", type=ir.TensorType(ir.DataType.INT64))
    entered = ir.Value(name=f"{name}:entered", type=ir.TensorType(ir.DataType.BOOL))
    counter.shape = entered.shape = ir.Shape([])
    wanted = [(c.following, c.inside.dtype) for c in carried]
    body = ir.Graph(
        [counter, entered, *[c.inside for c in carried]],
        sub_outputs(t, found.nodes, [(found.values[_AGAIN,], ir.DataType.BOOL), *wanted]),
        nodes=found.nodes,
        name=f"{name}/body",
    )
    first = [t.cast(c.first, c.inside.dtype.numpy()) for c in carried if c.inside.dtype]
    outputs = [
        ir.Value(name=t.unique(f"{name}:out"), type=c.inside.type, shape=c.inside.shape)
        for c in carried
    ]
    truth = t.constant(np.asarray(True))
    t.nodes.append(
        ir.node(
            "Loop", [None, truth, *first], {"body": body}, outputs=outputs, name=name, version=OPSET
        )
    )
    return outputs


def _way_out(
    walk: Walk, arguments: list[Slot], found: _Round, after: dict[Key, ir.Value]
) -> Function:
    """What was left for, with its arguments as they are after the loop."""
    final = {entry: after[key] for key, entry in found.state.leaves.items()}
    # what a round begins with is what it was called with, or what the round before handed on
    starts = _starts(arguments, found)
    beginnings = {
        entry: (starts[key], found.outcome.leaves[key]) for key, entry in found.state.leaves.items()
    }

    def seen(key: Key, leaf: Slot) -> Slot:
        if key not in after and leaf not in final:
            return leaf
        made = Slot(after[key] if key in after else final[leaf])
        made.may_share([leaf, *beginnings.get(leaf, ())])
        return made

    leaves = {key: seen(key, leaf) for key, leaf in found.outcome.leaves.items()}
    outside = Outcome(leaves, found.outcome.forms)
    ways: list[Function] = []
    for way, target in enumerate(found.exits):
        taken = outside.get((_EXIT, way)).items()
        known = target is None
        ways.append(Known(taken[0]) if known else Closure(GraphRef(str(target)), taken))
    which = outside.leaves[_WHICH,].read()
    chosen = ways[-1]
    for way in range(len(ways) - 2, -1, -1):
        left = walk.tape.op("Equal", [which, np.asarray(way, np.int64)])
        chosen = Choice(left, ways[way], chosen)
    return chosen
