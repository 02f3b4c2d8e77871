"""Pass: Gelu, spelt out as products and sums -> Gelu.

1. x / 2 * (1 + erf(x / sqrt(2))).
2. x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))): Gelu with approximate=tanh.

Exporters write them in many orders, with x**3 as a power or as products. So what is compared are
not nodes but polynomials: of x in front of the function, of x and its result behind it.

x * sigmoid(x) is left alone: a compiler for cards joins the two by itself. It would join these as
well; but one operator computes in float32 inside, where halves lose digits at each step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from mindspore_lite.passes.edit import become, dims_of, graph_nodes, is_op, number_of, only_user

FIRST_OPSET = 20  # that knows Gelu

Powers = tuple[int, int]  # of x, and of the function's result
Polynomial = dict[Powers, float]

_ROOT = math.sqrt(2 / math.pi)
_INSIDE: dict[str, Polynomial] = {
    "Erf": {(1, 0): math.sqrt(0.5)},
    "Tanh": {(1, 0): _ROOT, (3, 0): _ROOT * 0.044715},
}
_OUTSIDE: Polynomial = {(1, 0): 0.5, (1, 1): 0.5}
_APPROXIMATE = {"Erf": "none", "Tanh": "tanh"}
_DEGREE = 3
_DEPTH = 6  # operators in a row; the longest of these forms has five
# how far a constant may be off: people write 1.4142, and 16 bits hold no more
_OFF = {ir.DataType.FLOAT16: 2.0**-10, ir.DataType.BFLOAT16: 2.0**-7}
_OFF_WIDE = 2e-5


def fuse_gelu(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused. Shapes should be inferred before."""
    if model.opset_imports.get("", 0) < FIRST_OPSET:
        return 0
    return sum(is_op(node, "Erf", "Tanh") and _fuse(node) for node in graph_nodes(model))


def _fuse(bend: ir.Node) -> bool:
    before, after = bend.inputs[0], bend.outputs[0]
    for x in _operands(before, _DEPTH):
        inside = _polynomial(before, x, None, _DEPTH)
        if inside is None or not _alike(inside, _INSIDE[bend.op_type], x):
            continue
        for end in _users(after):
            outside = _polynomial(end.outputs[0], x, after, _DEPTH)
            if outside is not None and _alike(outside, _OUTSIDE, x):
                if not _same_rank(x, end.outputs[0]):
                    return False
                become(end, "Gelu", [x], {"approximate": _APPROXIMATE[bend.op_type]})
                return True
    return False


def _operands(value: ir.Value | None, depth: int) -> Iterator[ir.Value]:
    """What a value is computed from by arithmetic, the nearest first."""
    row = [value]
    for _ in range(depth):
        nodes = [v.producer() for v in row if v is not None]
        row = [v for n in nodes if is_op(n, "Add", "Mul", "Div", "Pow") and n for v in n.inputs]
        yield from dict.fromkeys(v for v in row if v is not None and number_of(v) is None)


def _users(value: ir.Value) -> Iterator[ir.Node]:
    """The arithmetic behind a value, as long as each result has one user."""
    for _ in range(_DEPTH):
        user = only_user(value)
        if user is None or not is_op(user, "Add", "Mul", "Div"):
            return
        yield user
        value = user.outputs[0]


def _polynomial(
    value: ir.Value | None, x: ir.Value, bent: ir.Value | None, depth: int
) -> Polynomial | None:
    """A value as a polynomial of x and of the function's result; None if it is none."""
    if value is None or value is x or value is bent:
        return None if value is None else {(1, 0) if value is x else (0, 1): 1.0}
    number = number_of(value)
    if number is not None:
        return {(0, 0): number}
    node = value.producer()
    if node is None or depth == 0 or not is_op(node, "Add", "Mul", "Div", "Pow"):
        return None
    left, right = (_polynomial(v, x, bent, depth - 1) for v in node.inputs)
    if left is None or right is None:
        return None
    if node.op_type == "Add":
        return {p: left.get(p, 0.0) + right.get(p, 0.0) for p in left | right}
    if node.op_type == "Mul":
        return _product(left, right)
    number = right.get((0, 0), 0.0) if len(right) == 1 else 0.0
    if node.op_type == "Div":
        return _product(left, {(0, 0): 1 / number}) if number else None
    if number not in (2, 3):
        return None
    square = _product(left, left)
    return square if number == 2 or square is None else _product(square, left)


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    found: Polynomial = {}
    for (a, b), factor in left.items():
        for (c, d), other in right.items():
            if a + b + c + d > _DEGREE:
                return None
            found[a + c, b + d] = found.get((a + c, b + d), 0.0) + factor * other
    return found


def _alike(found: Polynomial, wanted: Polynomial, x: ir.Value) -> bool:
    off = _OFF_WIDE if x.dtype is None else _OFF.get(x.dtype, _OFF_WIDE)
    off *= 4  # a factor may be the product of several constants
    return found.keys() == wanted.keys() and all(
        math.isclose(found[powers], wanted[powers], rel_tol=off) for powers in wanted
    )


def _same_rank(x: ir.Value, result: ir.Value) -> bool:
    """Whether no constant on the way has widened x."""
    was, now = dims_of(x), dims_of(result)
    return was is not None and now is not None and len(was) == len(now)
