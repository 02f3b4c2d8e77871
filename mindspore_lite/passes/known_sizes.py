"""What is known about numbers that come from shapes, in terms of symbols.

Shape(x) of x: (n, 3, 224) is [n, 3, 224]; Gather, Slice and Concat of it know what they take.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import array_of, attribute, given, ints_of

Known = dict[ir.Value, np.ndarray]  # arrays of objects: whole numbers, and open dims as they are


def sizes_of(node: ir.Node, known: Known) -> np.ndarray | None:
    """The result of a node of the default domain as far as it is known; None for not at all."""
    x = given(node, 0)
    if node.op_type == "Shape":
        if x is None or x.shape is None:
            return None
        part = slice(attribute(node, "start", 0), attribute(node, "end", None))
        return np.array([*x.shape], object)[part]
    if node.op_type == "Concat":
        return _joined(node, known)
    source = _sizes(x, known)
    if source is None:
        return None
    match node.op_type:
        case "Identity":
            return source
        case "Cast":
            return source if attribute(node, "to") == ir.DataType.INT64 else None
        case "Gather":
            return _taken(node, source)
        case "Slice":
            return _sliced(node, source)
        case "Unsqueeze":
            return source.reshape(1) if source.ndim == 0 else None
        case "Squeeze":
            return source.reshape(()) if source.shape == (1,) else None
        case "Reshape":
            return source.reshape(-1) if ints_of(given(node, 1)) in ([-1], [source.size]) else None
    return None


def _sizes(value: ir.Value | None, known: Known) -> np.ndarray | None:
    if value is None or value in known:
        return known.get(value) if value is not None else None
    found = array_of(value)
    if found is None or found.dtype != np.int64 or found.ndim > 1:
        return None
    return found.astype(object)


def _joined(node: ir.Node, known: Known) -> np.ndarray | None:
    parts = [_sizes(value, known) for value in node.inputs]
    if any(part is None or part.ndim != 1 for part in parts):
        return None
    return np.concatenate([part for part in parts if part is not None])


def _taken(node: ir.Node, source: np.ndarray) -> np.ndarray | None:
    at = array_of(given(node, 1))
    if at is None or source.ndim != 1 or at.ndim > 1:
        return None
    if at.size and not (-len(source) <= at.min() and at.max() < len(source)):
        return None
    return np.asarray(source[at.astype(np.int64)], object)


def _sliced(node: ir.Node, source: np.ndarray) -> np.ndarray | None:
    starts, ends, steps = (ints_of(given(node, at)) for at in (1, 2, 4))
    if given(node, 4) is None:
        steps = [1]
    if source.ndim != 1 or not all(n is not None and len(n) == 1 for n in (starts, ends, steps)):
        return None
    (start,), (end,), (step,) = starts, ends, steps  # type: ignore[misc]
    return source[start:end:step] if step > 0 else None
