"""Checks the budget of a build against the graph, for every engine and the converter."""

from __future__ import annotations

import math

import onnx_ir as ir

from mindspore_lite.core.budget import SECTION, Budget
from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.edit import attribute, dims_of, given, graph_nodes
from mindspore_lite.passes.inline import inline_functions
from mindspore_lite.passes.opset import upgraded

# Steps of one pooling node for its smallest input, about 20 seconds of one core. The largest honest
# ones, windows of a pyramid over batches of images, take a tenth of that.
MAX_WINDOW_STEPS = 1 << 34


def within(model: ir.Model, budget: Budget) -> ir.Model:
    """The model without functions, its nodes in order, found to be within the budget.

    Raises:
        ModelFileError: It is not; the error names the key of [build] that would let it pass.
    """
    has_functions = bool(model.functions)
    inline_functions(model, budget.max_nodes)
    if has_functions:
        _check_copies(model, budget)
        if any(node.version is not None for node in graph_nodes(model)):
            model = upgraded(model)  # engines read one opset for the whole model
    _sort(model)
    _check_windows(model)
    return model


def _check_copies(model: ir.Model, budget: Budget) -> None:
    """Refuse constants of functions that calls multiply: a model is written out with each copy."""
    nbytes = sum(
        _bytes_of(held) for node in graph_nodes(model) for held in node.attributes.values()
    )
    for graph in model.graphs():
        if graph is not model.graph:
            held_by = (value.const_value for value in graph.initializers.values())
            nbytes += sum(tensor.nbytes for tensor in held_by if tensor is not None)
    limit = budget.fold_limit(0)
    if nbytes > limit:
        raise ModelFileError(
            f"the constants of the model's functions would take {nbytes} bytes once inlined, more "
            f"than the {limit} that [{SECTION}] max_fold_bytes allows; if the file can be trusted, "
            "set a larger one"
        )


def _bytes_of(held: ir.Attr) -> int:
    """About what an attribute takes; graphs are no part of it."""
    value = held.value
    if held.is_ref() or held.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return 0
    if held.type == ir.AttributeType.TENSOR:
        return int(held.as_tensor().nbytes)
    if held.type == ir.AttributeType.TENSORS:
        return sum(tensor.nbytes for tensor in held.as_tensors())
    if held.type == ir.AttributeType.STRINGS:
        return sum(map(len, value))
    return 8 * len(value) if isinstance(value, list | tuple | str | bytes) else 0


def _sort(model: ir.Model) -> None:
    """Bring nodes into order, which some exporters did not care for."""
    seen: set[ir.Node] = set()
    for node in graph_nodes(model):
        needed = (value.producer() for value in node.inputs if value is not None)
        if any(one is not None and one not in seen for one in needed):
            break
        seen.add(node)
    else:
        return
    try:
        model.graph.sort()
    except ValueError as exc:  # OpenVINO takes minutes over a circle of two nodes
        raise ModelFileError(f"its nodes need each other in a circle ({exc})") from exc


def _check_windows(model: ir.Model) -> None:
    """Refuse pooling windows and pads that keep an engine busy for hours on a small input."""
    for node in graph_nodes(model):
        kernel = attribute(node, "kernel_shape")
        if kernel is None or "Pool" not in str(node.op_type) or not _is_list(kernel):
            continue
        steps = _window_steps(node, [max(0, size) for size in kernel])
        if steps > MAX_WINDOW_STEPS:
            name = str(node.name or node.outputs[0].name)[:200]
            raise ModelFileError(
                f"node {name!r} ({node.op_type[:200]}) would take {steps} steps for its smallest "
                f"input, at most {MAX_WINDOW_STEPS} are allowed; its windows or pads are too large"
            )


def _window_steps(node: ir.Node, kernel: list[int]) -> int:
    """Windows of a pooling node times the size of each; an open dim of its input counts as 1."""
    rank = len(kernel)
    dims = dims_of(given(node, 0)) or [1] * (rank + 2)
    sizes = [1 if size is None else max(1, size) for size in dims]
    pads, strides, dilations = (
        _sizes(node, name, count, default)
        for name, count, default in (
            ("pads", 2 * rank, 0), ("strides", rank, 1), ("dilations", rank, 1),
        )
    )  # fmt: skip
    windows = math.prod(sizes[:-rank]) if rank else 1
    for at, (size, length) in enumerate(zip(sizes[-rank:] if rank else (), kernel, strict=False)):
        room = size + pads[at] + pads[rank + at] - dilations[at] * (length - 1) - 1
        windows *= max(0, room) // max(1, strides[at]) + 1
    return windows * math.prod(kernel)


def _sizes(node: ir.Node, name: str, count: int, default: int) -> list[int]:
    found = attribute(node, name)
    usable = _is_list(found) and len(found) == count
    return [max(0, size) for size in found] if usable else [default] * count


def _is_list(found: object) -> bool:
    return isinstance(found, list | tuple) and all(isinstance(size, int) for size in found)
