"""Rewrites models of MindSpore 2.10 as older releases would have exported them."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from support.op_case import as_attribute

from mindspore_lite.mindir import records as r
from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS


def attribute_form(model: r.Model) -> r.Model:
    """MindIR 1 (MindSpore 1.7 to 2.2): init arguments are attributes, not constant inputs."""
    graphs = [model.graph, *model.functions.values()]
    constants = {n.name: n.value for g in graphs for n in g.nodes if isinstance(n, r.Constant)}
    main, *others = [
        replace(g, nodes=tuple(_as_attributes(n, constants) for n in g.nodes)) for g in graphs
    ]
    functions = {g.name: g for g in others}
    return replace(model, graph=main, functions=functions, mind_ir_version=1, ir_version="0.1.1")


def _as_attributes(node: r.Node, constants: dict[str, Any]) -> r.Node:
    if not isinstance(node, r.Call) or not isinstance(node.target, r.Primitive):
        return node
    row = OPS.get(node.target.op)
    if row is None or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in row.call_args):
        return node
    kept: list[str] = []
    held = dict(node.target.attributes)
    parameters = [*row.call_args, *row.init_args]
    for name in node.inputs:
        value = constants.get(name, node)
        if isinstance(value, r.Monad) or not parameters:
            kept.append(name)
            continue
        parameter = parameters.pop(0)
        if parameter in row.init_args and value is not node and not isinstance(value, r.Tensor):
            held.update([as_attribute(parameter.name, value)])
        else:
            kept.append(name)
    return replace(node, inputs=tuple(kept), target=r.Primitive(node.target.op, held))
