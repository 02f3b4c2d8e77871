"""Random nodes with bodies: branches and loops that use values from outside."""

from __future__ import annotations

import numpy as np
from onnx import helper
from support.random_nodes import MAKERS, WEIGHTS, maker, maybe
from support.random_onnx import FLOATS, Builder, NotThisTime, Val


def inside(b: Builder, least: int = 1) -> Builder:
    """A body with some nodes."""
    if len(b.lineage()) > 2:
        raise NotThisTime
    child = Builder(b.rng, b.opset, b)
    for _ in range(b.rng.randint(least, 3)):
        child.attempt(b.rng.choices(MAKERS, WEIGHTS)[0])
    return child


def made_in(child: Builder, value: Val) -> Val:
    """A result of a body: something that a node of it made."""
    return (
        child.op("Identity", [child.take(value)])[0]
        if child.rng.random() < 0.3 or value not in [v for v in child.pool if not v.const]
        else value
    )


@maker(3)
def branch(b: Builder) -> None:
    kind = b.rng.choice(FLOATS)
    graphs, used, count = [], [], b.rng.randint(1, 2)
    for _ in range(2):
        child = inside(b, 0)
        outputs = [made_in(child, child.some((kind,))) for _ in range(count)]
        if len({v.name for v in outputs}) < count:
            raise NotThisTime
        graphs.append(child.body(outputs))
        used += child.used
    flag = b.setting(b.rng.random() < 0.5, "bool")
    names = [b.fresh() for _ in range(count)]
    node = helper.make_node("If", [flag.name], names, b.fresh("if"), then_branch=graphs[0],
                            else_branch=graphs[1])  # fmt: skip
    b.add(node, _unique([flag, *used]))


def _unique(values: list[Val]) -> list[Val]:
    return list({v.name: v for v in values}.values())


@maker(3)
def loop(b: Builder) -> None:
    states = [
        b.some(("float32", "float32", "int64", "float64")) for _ in range(b.rng.randint(1, 2))
    ]
    child = inside(b, 0)
    turn, going = (
        Val(child.fresh("turn"), np.asarray(0)),
        Val(child.fresh("going"), np.asarray(True)),
    )
    inner = [Val(child.fresh("state"), s.array) for s in states]
    child.inputs += [turn, going, *inner]
    child.pool += inner
    results = [_next(child, v) for v in inner]
    scans = [made_in(child, child.some(("float32",)))] if b.rng.random() < 0.4 else []
    if b.rng.random() < 0.3 and child.opset >= 9:
        (again,) = child.op("Less", [turn, child.weight(np.asarray(b.rng.randint(0, 4)))])
    else:
        (again,) = child.op("Identity", [going])
    outputs = [again, *results, *scans]
    if len({v.name for v in outputs}) < len(outputs):
        raise NotThisTime
    graph = child.body(outputs, [turn, going, *inner])
    count = b.setting(b.rng.randint(0, 4) if b.rng.random() < 0.8 else [2])
    flag = maybe(b, b.setting(b.rng.random() < 0.9, "bool"))
    names = [b.fresh() for _ in outputs[1:]]
    inputs = [count.name, flag.name if flag else "", *(s.name for s in states)]
    node = helper.make_node("Loop", inputs, names, b.fresh("loop"), body=graph)
    b.add(node, _unique([count, *([flag] if flag else []), *states, *child.used]))


def _next(child: Builder, state: Val) -> Val:
    """What a state becomes: of the same shape and type, and not far away."""
    rng = child.rng
    value = state
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(["Add", "Sub", "Mul", "Max", "Tanh"])
        if name == "Tanh" and state.dtype in FLOATS:
            (value,) = child.op(name, [value])
        else:
            other = child.like(value)
            (value,) = child.op("Max" if name == "Tanh" else name, [value, other])
    return value


@maker(2)
def scan(b: Builder) -> None:
    if b.opset < 9:
        raise NotThisTime
    rows = b.some(("float32",), 2)
    state = b.new("float32", rows.shape[1:])
    child = inside(b, 0)
    inner = Val(child.fresh("state"), state.array)
    row = Val(child.fresh("row"), rows.array[0])
    child.inputs += [inner, row]
    child.pool += [inner, row]
    (mixed,) = child.op("Add", [inner, row])
    (following,) = child.op("Tanh", [mixed])
    (kept,) = child.op("Identity", [mixed])
    graph = child.body([following, kept], [inner, row])
    names = [b.fresh(), b.fresh()]
    backwards = [b.rng.randint(0, 1)]
    node = helper.make_node("Scan", [state.name, rows.name], names, b.fresh("scan"), body=graph,
                            num_scan_inputs=1, scan_input_directions=backwards)  # fmt: skip
    b.add(node, _unique([state, rows, *child.used]))
