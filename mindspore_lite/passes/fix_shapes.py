"""Pass: sets input sizes that the caller gives, and everything that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes.edit import graph_nodes
from mindspore_lite.passes.follow_sizes import follow_sizes
from mindspore_lite.passes.infer_shapes import forget_shapes, infer_shapes, light_proto
from mindspore_lite.passes.shapes import output_shapes

REPLACED = "sizes of inputs replaced"
Symbols = dict[str, tuple[int, str]]  # the size of a named dim, and the input that fixed it


def fix_shapes(model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Fix inputs to these shapes, in place; others stay open, but for dims that share a name.

    A size that the model fixed is replaced, and constants that hold it follow. What the model said
    about the shapes of its values before is forgotten and inferred again. Returns what was done.

    Raises:
        ShapeError: Names that are no inputs, wrong ranks, sizes that contradict each other, or
            shapes that its layers cannot take; every problem is listed.
    """
    if not shapes:
        return {}
    inputs = {str(value.name): value for value in model.graph.inputs}
    symbols: Symbols = {}
    problems = [f"{name!r} is no input" for name in shapes if name not in inputs]
    for name, value in inputs.items():
        if name in shapes:
            problems += _check(value, shapes[name], symbols)
    if problems:
        known = ", ".join(described(value) for value in inputs.values())
        raise ShapeError(
            f"the input shapes do not fit the model: {'; '.join(problems)}. Its inputs: {known}"
        )
    replaced = sum(len(_replaced(value, shapes.get(name))) for name, value in inputs.items())
    followed = follow_sizes(model, shapes)
    for name, value in inputs.items():
        value.shape = _fixed(value, shapes.get(name), symbols)
    forget_shapes(model)
    _check_layers(model)
    infer_shapes(model)
    return {REPLACED: replaced, "constants that followed them": followed}


def freed(model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> dict[str, list[int | None]]:
    """The shapes of a model's inputs, None for sizes to replace; {} where there are none.

    Shapes that make no sense are left to fix_shapes().
    """
    found: dict[str, list[int | None]] = {}
    changed = False
    for value in model.graph.inputs:
        if value.shape is None:
            return {}
        at = _replaced(value, shapes.get(str(value.name)))
        changed |= bool(at)
        dims = [dim if isinstance(dim, int) else None for dim in value.shape]
        found[str(value.name)] = [None if n in at else dim for n, dim in enumerate(dims)]
    return found if changed else {}


def _replaced(value: ir.Value, dims: Sequence[int] | None) -> list[int]:
    """The places of sizes that the model fixed and that become others."""
    if dims is None or value.shape is None or len(dims) != len(value.shape):
        return []
    pairs = enumerate(zip(value.shape, dims, strict=True))
    return [at for at, (own, size) in pairs if isinstance(own, int) and own != size]


def described(value: ir.Value) -> str:
    """An input as messages show it: x: float32[batch,3,224,224]."""
    kind = "?" if value.dtype is None else ir.DataType(value.dtype).numpy().name
    if value.shape is None:
        return f"{value.name}: {kind} of any rank"
    dims = (str(d) if isinstance(d, int) else d.value or "?" for d in value.shape)
    return f"{value.name}: {kind}[{','.join(dims)}]"


def _check(value: ir.Value, dims: Sequence[int], symbols: Symbols) -> list[str]:
    found = []
    if any(size < 1 for size in dims):
        found.append(f"{value.name!r} has sizes below 1 in {list(dims)}")
    if value.shape is None:
        return found
    if len(dims) != len(value.shape):
        return [*found, f"{value.name!r} has {len(value.shape)} dims, {list(dims)} has {len(dims)}"]
    for at, (size, own) in enumerate(zip(dims, value.shape, strict=True)):
        if not isinstance(own, int) and own.value:
            other, who = symbols.setdefault(own.value, (size, str(value.name)))
            if other != size:
                where = "itself" if who == value.name else repr(who)
                found.append(
                    f"dim {at} of {value.name!r} is {size}, but it is the {own.value!r} "
                    f"that {where} fixes to {other}"
                )
    return found


def _fixed(value: ir.Value, dims: Sequence[int] | None, symbols: Symbols) -> ir.Shape | None:
    if dims is not None:
        return ir.Shape(dims)
    if value.shape is None:
        return None
    return ir.Shape(
        [d if isinstance(d, int) else symbols.get(d.value or "", (d,))[0] for d in value.shape]
    )


def _check_layers(model: ir.Model) -> None:
    """Ask ONNX whether the layers can take the sizes, where it knows all of them."""
    if any(node.domain for node in graph_nodes(model)):
        return
    shapes = {
        str(v.name): list(v.shape.numpy())
        for v in model.graph.inputs
        if v.shape is not None and v.shape.is_static()
    }
    output_shapes(light_proto(model).SerializeToString(), shapes)
