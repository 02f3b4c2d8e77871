"""Pass: Squeeze(Conv(Unsqueeze(x), Unsqueeze(w))), of int8 made float -> Conv(x, w) over one axis.

MindSpore has no convolution over one axis: a file has one over two, of which one has the size 1.
ONNX Runtime makes an int8 kernel of a Conv only if its inputs come straight from DequantizeLinear.

1. The weight comes from DequantizeLinear. A float32 one stays: over two axes it has faster kernels.
2. The same axis is added to both, and taken from the result, which has no other use.
3. Nothing is padded along it, so that its size stays 1.
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import attribute, become, given, graph_nodes, ints_of, is_op
from mindspore_lite.passes.edit import only_user as user_of

_RANK = 4  # of what a Conv over two axes takes and gives
_LISTS = ("strides", "dilations", "kernel_shape")


def join_conv1d(model: ir.Model) -> int:
    """Join in place; returns how many were joined. Unused nodes are left behind."""
    return sum(is_op(node, "Conv") and _join(node) for node in graph_nodes(model))


def _join(conv: ir.Node) -> bool:
    squeeze = user_of(conv.outputs[0])
    axis = _axis(squeeze, "Squeeze")
    sources = [None if v is None else v.producer() for v in conv.inputs[:2]]
    if squeeze is None or axis is None or len(sources) != 2:
        return False
    if any(_axis(node, "Unsqueeze") != axis for node in sources):
        return False
    x, weight = (None if node is None else node.inputs[0] for node in sources)
    maker = None if weight is None else weight.producer()
    if not is_op(maker, "DequantizeLinear"):
        return False
    found = _without_axis(conv, axis - 2)
    if found is None:
        return False
    become(squeeze, "Conv", [x, weight, given(conv, 2)], found)
    if squeeze.inputs[2] is None:
        squeeze.resize_inputs(2)
    squeeze.name, conv.name = conv.name, squeeze.name  # settings know a convolution by its name
    return True


def _axis(node: ir.Node | None, op_type: str) -> int | None:
    """The only axis, one of the two of an image, that a node adds or takes away."""
    if node is None or not is_op(node, op_type):
        return None
    axes = ints_of(given(node, 1))
    if axes is None or len(axes) != 1:
        return None
    axis = axes[0] + _RANK if axes[0] < 0 else axes[0]
    return axis if axis in (2, 3) else None


def _without_axis(conv: ir.Node, at: int) -> dict[str, object] | None:
    """The attributes of the same convolution without one of its two axes, of size 1."""
    found: dict[str, object] = {
        name: attribute(conv, name) for name in ("group", "auto_pad") if name in conv.attributes
    }
    pads = attribute(conv, "pads")
    if pads is not None:
        if len(pads) != 4 or pads[at] or pads[at + 2]:
            return None
        found["pads"] = [pads[1 - at], pads[3 - at]]
    for name in _LISTS:
        numbers = attribute(conv, name)
        if numbers is not None:
            if len(numbers) != 2 or (name == "kernel_shape" and numbers[at] != 1):
                return None
            found[name] = [numbers[1 - at]]
    return found
