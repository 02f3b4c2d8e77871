"""Pass: guards integer division by -1, which crashes on the smallest integer.

Processors answer the division of the least integer by -1 with a signal, for its result does not
fit. Engines check for zero, and not for that. So x / -1 is computed as -x / 1, and the rest of a
division by -1 as that of 0 / 1: both are right for every x, and the least one stays what it is.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import array_of, before, constant, graph_nodes, name_all
from mindspore_lite.passes.element_types import element_types

_TYPES = {ir.DataType.INT32, ir.DataType.INT64}  # the others are divided as wider ones


def guard_division(model: ir.Model) -> int:
    """Guard each Div and Mod whose divisor may be -1; returns how many there were."""
    found = [n for n in graph_nodes(model) if n.op_type in ("Div", "Mod") and not n.domain]
    if not found:
        return 0
    types = element_types(model)
    guarded = 0
    for node in found:
        value, divisor = node.inputs
        kind = types.get(divisor) if divisor is not None else None
        if value is None or divisor is None or kind not in _TYPES or _is_harmless(divisor):
            continue
        _guard(node, value, divisor, kind)
        guarded += 1
    if guarded:
        name_all(model)
    return guarded


def _is_harmless(divisor: ir.Value) -> bool:
    known = array_of(divisor)
    return known is not None and not (known == -1).any()


def _guard(node: ir.Node, value: ir.Value, divisor: ir.Value, kind: ir.DataType) -> None:
    def number(value: int, label: str) -> ir.Value:
        return constant(node, np.asarray(value, kind.numpy()), label)

    is_minus = before(node, "Equal", [divisor, number(-1, "minus")], label="is_minus")
    instead = before(node, "Neg", [value]) if node.op_type == "Div" else number(0, "zero")
    node.replace_input_with(0, before(node, "Where", [is_minus, instead, value], label="dividend"))
    safe = before(node, "Where", [is_minus, number(1, "one"), divisor], label="divisor")
    node.replace_input_with(1, safe)
