"""Nodes with bodies: a branch that is known now is put in place, others are chosen at run time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch import fx

from mindspore_lite.kernels.lower import Held, Known, Lowering, Made

if TYPE_CHECKING:
    from collections.abc import Callable


def lowered(at: Lowering, node: ir.Node) -> Sequence[Held]:
    """Lower a node of control flow; what it makes."""
    return _LOWERED[node.op_type](at, node)


def _if(at: Lowering, node: ir.Node) -> Sequence[Held]:
    given = node.inputs[0]
    assert given is not None
    condition = at.held(given)
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    if isinstance(condition, Known):
        chosen = branches[0] if bool(condition.value) else branches[1]
        at.nodes(chosen)
        return [at.held(value) for value in chosen.outputs]
    bodies = [body(at, branch, ()) for branch in branches]
    assert isinstance(condition, Made)
    at.dynamic.append(f"If {node.name!r} depends on data")
    args = (condition.node, *bodies)
    return made(at, at.graph.call_function(run_if, args), len(node.outputs))


def body(at: Lowering, graph: ir.Graph, inputs: Sequence[ir.Value]) -> Any:
    """A body as an argument of an FX node: its module, and the outer values that it uses."""
    inner = Lowering(at.target, at)
    inner.dynamic.append("a body")
    for value in inputs:
        inner.placeholder(value, None)
    inner.nodes(graph)
    inner.graph.output(tuple(inner.result(value) for value in graph.outputs))
    found = inner.finished()
    name = f"body{len(at.bodies)}"
    at.bodies[name] = found
    setattr(at.root, name, found.module)
    outside = tuple(at.tensor(at.held(value), None) for value in inner.captured)
    return (at.graph.get_attr(name), outside)


def made(at: Lowering, node: fx.Node, count: int) -> list[Held]:
    """The results of a node that always returns a tuple."""
    return [Made(at.graph.call_function(getitem, (node, i)), None) for i in range(count)]


def run_if(condition: torch.Tensor, *branches: Any) -> Any:
    """Run one of two bodies."""
    module, outside = branches[0] if bool(condition) else branches[1]
    return module(*outside)


_LOWERED: dict[str, Callable[[Lowering, ir.Node], Sequence[Held]]] = {"If": _if}
