"""Pass: attention, spelt out -> ScaledDotProductAttention, an operator of our own domain.

    MatMul(Softmax(MatMul(q, kT) * scale + mask), v) -> ScaledDotProductAttention(q, k, v, mask)

It means softmax(scale * (q @ k^T) + mask) @ v, the softmax over the keys, with q, k, v of
[.., queries or keys, size] and a mask that is added. Their axes before the last two, and those of
the mask, broadcast as in MatMul and Add. With is_causal=1 query i sees the keys 0 to i, without a
mask. Engines that know ONNX only cannot run it.

1. Scales are numbers that multiply or divide: the scores, q, k, or several of these.
2. Masks are added to the scores or taken off, before or behind the scale, and may broadcast.
3. Where(hidden, low, scores), and the other way round, is a mask too, see _can_be_added.
4. A constant mask that hides just the later keys becomes is_causal.
5. Between softmax and v: Dropout outside training, and zeros for rows that are NaN, which is how
   PyTorch writes rows without any key; torch's own operator makes zeros of them.
6. 16-bit scores may be cast to float32 for the softmax and back: torch's operator does so inside.
7. k comes transposed, by a Transpose that moves other axes too, or that lies before a Reshape of
   other axes: it is changed so that it leaves the last two. Else a Transpose is put in.

q, k and v have rank 3 or 4, and nothing in between has other users: weights of attention that a
model returns have to be computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    DOMAIN,
    array_of,
    attribute,
    become,
    before,
    constant,
    dims_of,
    given,
    graph_nodes,
    ints_of,
    is_op,
    name_all,
    number_of,
    single_user,
)

OP_TYPE = "ScaledDotProductAttention"
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
_HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_DEPTH = 12  # operators between a softmax and the scores; guess
_LOW = -1e4  # the least that models in float16 hide keys with: exp makes 0 of it, beside any score
_LOWEST = -1e30  # beside which any score vanishes, in bfloat16 as well
_MOST = 1 << 22  # elements of a constant mask that is looked at: 2048 queries and keys


@dataclass(frozen=True)
class _Added:
    """A mask that is added, so many times."""

    mask: ir.Value
    factor: float


@dataclass(frozen=True)
class _Hidden:
    """A number in the place of scores where a condition holds, or where it does not."""

    mask: ir.Value
    when: bool
    low: float


@dataclass(frozen=True)
class _Scores:
    """What a softmax is taken of: scale * (q @ turned), masked by one after the other."""

    q: ir.Value
    turned: ir.Value  # k, its last two axes swapped
    scale: float
    masks: tuple[_Added | _Hidden, ...] = ()


def fuse_attention(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused. Shapes should be inferred before."""
    count = 0
    for node in graph_nodes(model):
        if is_op(node, "MatMul"):
            count += _fuse(node)
    if count:
        model.opset_imports[DOMAIN] = 1
        name_all(model)
    return count


def _fuse(end: ir.Node) -> bool:
    weights, v = end.inputs
    softmax = _softmax(weights, end)
    if softmax is None or softmax.inputs[0] is None or v is None:
        return False
    found = _scores(softmax.inputs[0], softmax, 1.0, _DEPTH)
    if found is None or not _fits(found, v, end.outputs[0]) or not _can_be_added(found):
        return False
    k = _turned_back(end, found.turned, len(dims_of(v) or ()))
    inputs, causal = [found.q, k, v], _is_causal(found)
    if not causal and (mask := _mask(end, found)) is not None:
        inputs.append(mask)
    settings = {"scale": found.scale, "is_causal": int(causal)}
    become(end, OP_TYPE, inputs, settings, DOMAIN)
    return True


# --- from the result up to the scores ---


def _softmax(value: ir.Value | None, user: ir.Node) -> ir.Node | None:
    """The softmax whose result is multiplied with v."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.graph is not user.graph or not single_user(value):
        return None
    is_same = is_op(node, "Identity") or (is_op(node, "Dropout") and given(node, 2) is None)
    if is_same or (is_op(node, "Cast") and _to_half(node)):
        return _softmax(node.inputs[0], node)
    if is_op(node, "Where"):
        return _guarded(node)
    return node if _is_over_keys(node) else None


def _guarded(where: ir.Node) -> ir.Node | None:
    """The softmax of Where(IsNaN(softmax), 0, softmax)."""
    condition, zero, value = where.inputs
    test = None if condition is None else condition.producer()
    node = None if value is None else value.producer()
    if value is None or node is None or value.is_graph_output() or not _is_over_keys(node):
        return None
    if test is None or not is_op(test, "IsNaN") or number_of(zero) != 0:
        return None
    is_closed = test.inputs[0] is value and all(u.node in (where, test) for u in value.uses())
    return node if is_closed else None


def _is_over_keys(node: ir.Node) -> bool:
    rank = len(dims_of(node.outputs[0]) or ())
    return is_op(node, "Softmax") and attribute(node, "axis", -1) in (-1, rank - 1)


def _to_half(cast: ir.Node) -> bool:
    return attribute(cast, "to") in _HALVES


def _scores(value: ir.Value, user: ir.Node, factor: float, depth: int) -> _Scores | None:
    """Read scores, of which the softmax sees so many times as much."""
    node = value.producer()
    if node is None or node.graph is not user.graph or not single_user(value) or depth == 0:
        return None
    if is_op(node, "MatMul"):
        return _product(node, factor)
    if is_op(node, "Cast"):
        inner = node.inputs[0]
        widens = inner is not None and inner.dtype in _HALVES and value.dtype == ir.DataType.FLOAT
        return _scores(inner, node, factor, depth - 1) if inner is not None and widens else None
    if is_op(node, "Where"):
        return _where(node, factor, depth)
    for inner, other, sign in _operands(node):
        number = number_of(other)
        if is_op(node, "Mul", "Div"):
            scale = None if number is None else _scale(node.op_type, number)
            found = None if scale is None else _scores(inner, node, factor * scale, depth - 1)
        else:
            found = _scores(inner, node, factor, depth - 1)
            if found is not None:
                found = _masked(found, _Added(other, sign * factor))
        if found is not None:
            return found
    return None


def _operands(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value, float]]:
    """(scores, what they are joined with, its sign) in the orders that make sense."""
    if not is_op(node, "Mul", "Div", "Add", "Sub"):
        return
    a, b = node.inputs
    if a is None or b is None:
        return
    yield a, b, -1.0 if node.op_type == "Sub" else 1.0
    if node.op_type in ("Mul", "Add"):
        yield b, a, 1.0


def _where(node: ir.Node, factor: float, depth: int) -> _Scores | None:
    condition, yes, no = node.inputs
    if condition is None or yes is None or no is None:
        return None
    for when, low, inner in ((True, number_of(yes), no), (False, number_of(no), yes)):
        if low is None or low * factor > _LOW:
            continue
        found = _scores(inner, node, factor, depth - 1)
        if found is not None:
            return _masked(found, _Hidden(condition, when, low * factor))
    return None


def _masked(found: _Scores, mask: _Added | _Hidden) -> _Scores:
    return replace(found, masks=(*found.masks, mask))


def _scale(op_type: str, number: float) -> float | None:
    if op_type == "Div":
        return 1 / number if number else None
    return number


def _product(node: ir.Node, factor: float) -> _Scores | None:
    q, turned = node.inputs
    if q is None or turned is None:
        return None
    q, first = _unscaled(q)
    turned, second = _unscaled(turned)
    scale = factor * first * second
    # kernels look for the largest score before they scale
    return _Scores(q, turned, scale) if 0 < scale < math.inf else None


def _unscaled(value: ir.Value) -> tuple[ir.Value, float]:
    """A value without the number that it was multiplied with or divided by."""
    node = value.producer()
    if node is None or not is_op(node, "Mul", "Div"):
        return value, 1.0
    for inner, other, _ in _operands(node):
        number = number_of(other)
        scale = None if number is None else _scale(node.op_type, number)
        was, now = dims_of(inner), dims_of(value)
        if scale is not None and was is not None and now is not None and len(was) == len(now):
            return inner, scale
    return value, 1.0


# --- when it holds ---


def _fits(found: _Scores, v: ir.Value, result: ir.Value) -> bool:
    """Whether types and ranks are alike."""
    every = [dims for value in (found.q, found.turned, v, result) if (dims := dims_of(value))]
    if len(every) != 4 or {len(dims) for dims in every} not in ({3}, {4}):
        return False
    q, k, values, _ = every
    if k[-1] is not None and values[-2] is not None and k[-1] != values[-2]:
        return False  # of one key, a mask would make more
    added = [mask for mask in found.masks if isinstance(mask, _Added)]
    dtypes = {value.dtype for value in (found.q, found.turned, v, *(a.mask for a in added))}
    if len(dtypes) != 1 or found.q.dtype not in _FLOATS:
        return False
    masks = [dims_of(mask.mask) for mask in found.masks]
    return all(dims is not None and len(dims) <= len(q) for dims in masks)


def _can_be_added(found: _Scores) -> bool:
    """Whether scores plus what hides them are what they are when they are hidden.

    Keys hidden by -inf count nothing, and a row of none but these has no meaning. Keys hidden by a
    low number count nothing beside others; but of a row of none but these the mean is taken, so
    scores have to vanish beside the number. A single mask may hide by a lower number than it says.
    """
    hidden = [mask for mask in found.masks if isinstance(mask, _Hidden)]
    if all(mask.low == -math.inf for mask in hidden):
        return True
    if len(found.masks) == 1 and _leaves_some(hidden[0]):
        return True
    if found.q.dtype in _HALVES:  # which hold no such number
        return False
    return len(found.masks) == 1 or all(mask.low <= _LOWEST for mask in hidden)


def _leaves_some(hidden: _Hidden) -> bool:
    """Whether a constant condition leaves every query a key."""
    condition = array_of(hidden.mask, _MOST)
    if condition is None or condition.ndim < 1:
        return False
    return bool((condition != hidden.when).any(axis=-1).all())


def _is_causal(found: _Scores) -> bool:
    """Whether the only mask is a constant, by which each query sees itself and what is before."""
    if len(found.masks) != 1:
        return False
    (mask,) = found.masks
    numbers = array_of(mask.mask, _MOST)
    if numbers is None or numbers.ndim < 2:
        return False
    queries, keys = dims_of(found.q), dims_of(found.turned)
    shape = None if queries is None or keys is None else (queries[-2], keys[-1])
    if numbers.shape[-2:] != shape or math.prod(numbers.shape[:-2]) != 1:
        return False
    if isinstance(mask, _Hidden):
        seen = numbers != mask.when
    else:
        seen = numbers == 0
        if not (seen | (numbers.astype(np.float64) * mask.factor <= _LOW)).all():
            return False
    return bool((seen == np.tril(np.ones(seen.shape[-2:], np.bool_))).all())


# --- what it becomes ---


def _mask(end: ir.Node, found: _Scores) -> ir.Value | None:
    """All masks as one that is added: what they make of scores of 0."""
    assert found.q.dtype is not None
    kind = found.q.dtype.numpy()
    total = None
    for mask in found.masks:
        if isinstance(mask, _Hidden):
            low = constant(end, np.asarray(_low_enough(found, mask), kind), "low")
            other = constant(end, np.asarray(0, kind), "zero") if total is None else total
            choices = [low, other] if mask.when else [other, low]
            total = before(end, "Where", [mask.mask, *choices], label="mask")
            continue
        part = mask.mask
        if mask.factor != 1:
            factor = constant(end, np.asarray(mask.factor, kind), "factor")
            part = before(end, "Mul", [part, factor], label="mask")
        total = part if total is None else before(end, "Add", [total, part], label="mask")
    return total


def _low_enough(found: _Scores, hidden: _Hidden) -> float:
    """The number that hides in a mask; what the type cannot hold is -inf, as in the model."""
    assert found.q.dtype is not None
    low = min(hidden.low, _LOWEST)
    return low if low >= float(ir.DataType(found.q.dtype).min) else -math.inf


def _turned_back(end: ir.Node, value: ir.Value, rank: int) -> ir.Value:
    """A value with its last two axes swapped, by taking a Transpose away where possible."""
    node = value.producer()
    if node is not None and is_op(node, "Transpose") and node.inputs[0] is not None:
        perm = list(attribute(node, "perm", range(rank)[::-1]))
        return _transposed(end, node.inputs[0], [*perm[:-2], perm[-1], perm[-2]])
    target = _lead(node) if node is not None and is_op(node, "Reshape") else None
    if node is not None and target is not None and node.inputs[0] is not None:
        inner = node.inputs[0]
        inner = _turned_back(end, inner, len(dims_of(inner) or ()))
        return before(end, "Reshape", [inner, constant(end, np.asarray(target), "shape")])
    return _transposed(end, value, [*range(rank - 2), rank - 1, rank - 2])


def _transposed(end: ir.Node, value: ir.Value, perm: list[int]) -> ir.Value:
    if perm == sorted(perm):
        return value
    return before(end, "Transpose", [value], {"perm": perm})


def _lead(node: ir.Node) -> list[int] | None:
    """The target of a Reshape of the axes before the last two, if these two were swapped."""
    was, now, target = dims_of(node.inputs[0]), dims_of(node.outputs[0]), ints_of(given(node, 1))
    if was is None or now is None or target is None or len(was) < 2 or len(now) != len(target):
        return None
    if None in was[-2:] or was[-2:] != now[-2:] or 0 in was[-2:] or len(now) < 2:
        return None
    lead = target[:-2]
    if any(number == 0 and at >= len(was) - 2 for at, number in enumerate(lead)):
        return None  # takes over one of the two
    if 0 in lead and attribute(node, "allowzero", 0):
        return None
    return [*lead, int(now[-1] or 0), int(now[-2] or 0)]
