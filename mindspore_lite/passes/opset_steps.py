"""How nodes change from one opset to the next: one function per step, all in STEPS.

A step that is not here keeps its form: the operator took more types, or new inputs and attributes
whose absence means what it meant before. tests/passes/test_opset_steps.py holds that against the
schemas of the onnx package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    after,
    array_of,
    attribute,
    before,
    constant,
    dims_of,
    given,
    ints,
    set_attribute,
    set_input,
    take_attribute,
)
from mindspore_lite.passes.element_types import Types


class Refused(Exception):
    """The new opset cannot say what the node does; the text says what that is."""


StepFn = Callable[[ir.Node, Types], None]
STEPS: dict[tuple[str, int], StepFn] = {}  # operator and the opset that changed it
BY_RANK = ("Softmax", "LogSoftmax", "Hardmax")  # their steps are plainer where the rank is known
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def step(version: int, *op_types: str) -> Callable[[StepFn], StepFn]:
    """Register what a version did to operators."""

    def add(fn: StepFn) -> StepFn:
        STEPS.update({(op_type, version): fn for op_type in op_types})
        return fn

    return add


@step(18, *(f"Reduce{name}" for name in _REDUCTIONS))
@step(13, "Squeeze", "Unsqueeze", "ReduceSum")
def axes_become_an_input(node: ir.Node, types: Types) -> None:
    """axes=[...] -> second input."""
    if (axes := take_attribute(node, "axes")) is not None:
        set_input(node, 1, ints(node, axes, "axes"))


@step(13, "Split")
def split_becomes_an_input(node: ir.Node, types: Types) -> None:
    """split=[...] -> second input."""
    if (sizes := take_attribute(node, "split")) is not None:
        set_input(node, 1, ints(node, sizes, "split"))


@step(18, "Split")
def equal_parts_are_counted(node: ir.Node, types: Types) -> None:
    """Without sizes, the number of parts has to be said."""
    if given(node, 1) is None:
        set_attribute(node, "num_outputs", len(node.outputs))


@step(10, "Slice")
def bounds_become_inputs(node: ir.Node, types: Types) -> None:
    """starts, ends and axes -> inputs."""
    for at, name in enumerate(("starts", "ends", "axes"), 1):
        if (numbers := take_attribute(node, name)) is not None:
            set_input(node, at, ints(node, numbers, name))


@step(10, "TopK")
def k_becomes_an_input(node: ir.Node, types: Types) -> None:
    """k=3 -> second input."""
    set_input(node, 1, ints(node, [take_attribute(node, "k")], "k"))


@step(11, "Clip")
def limits_become_inputs(node: ir.Node, types: Types) -> None:
    """min and max -> inputs of the operand's type."""
    for at, name in enumerate(("min", "max"), 1):
        if (number := take_attribute(node, name)) is not None:
            set_input(node, at, _number_like(node, number, name, types))


@step(11, "Pad")
def pads_become_an_input(node: ir.Node, types: Types) -> None:
    """pads and value -> inputs."""
    set_input(node, 1, ints(node, take_attribute(node, "pads"), "pads"))
    if number := take_attribute(node, "value"):
        set_input(node, 2, _number_like(node, number, "value", types))


@step(10, "Dropout")
def the_mask_becomes_boolean(node: ir.Node, types: Types) -> None:
    """The mask was of the operand's type."""
    if _is_used(node, 1):
        raise Refused("its mask is used, which means training")


@step(12, "Dropout")
def ratio_becomes_an_input(node: ir.Node, types: Types) -> None:
    """ratio=0.5 -> second input, which counts in training alone."""
    if (ratio := take_attribute(node, "ratio")) is not None:
        set_input(node, 1, constant(node, np.asarray(ratio, np.float32), "ratio"))


@step(9, "BatchNormalization")
def statistics_are_per_channel(node: ir.Node, types: Types) -> None:
    """spatial=0 had statistics for every element of a sample: written out."""
    if take_attribute(node, "spatial", 1):
        return
    x, scale, bias, mean, variance = node.inputs
    if len(node.outputs) > 1:
        raise Refused("spatial=0 with the outputs of training")
    epsilon = _number_like(node, take_attribute(node, "epsilon", 1e-5), "epsilon", types)
    deviation = before(node, "Sqrt", [before(node, "Add", [variance, epsilon])])
    normal = before(node, "Div", [before(node, "Sub", [x, mean]), deviation])
    _become(node, "Add", [before(node, "Mul", [normal, scale]), bias])


@step(14, "BatchNormalization")
def training_has_an_attribute(node: ir.Node, types: Types) -> None:
    """More than one output meant training; unused ones are left over from it."""
    if any(_is_used(node, at) for at in range(1, len(node.outputs))):
        raise Refused("its statistics are used, which means training")
    node.resize_outputs(1)


@step(9, "Upsample")
def scales_become_an_input(node: ir.Node, types: Types) -> None:
    """scales=[...] -> second input."""
    scales = np.asarray(take_attribute(node, "scales"), np.float32)
    set_input(node, 1, constant(node, scales, "scales"))


@step(10, "Upsample")
def upsample_becomes_resize(node: ir.Node, types: Types) -> None:
    """Resize-10 is Upsample-9 under another name."""
    node.op_type = "Resize"


@step(11, "Resize")
def coordinates_have_to_be_named(node: ir.Node, types: Types) -> None:
    """Resize-10 knew one way to map coordinates, which later has a name."""
    x, scales = node.inputs
    set_attribute(node, "coordinate_transformation_mode", "asymmetric")
    if attribute(node, "mode", "nearest") == "nearest":
        # it picked floor(x) when it enlarged and ceil(x) when it reduced, as ONNX Runtime has it
        factors = array_of(scales)
        enlarges = factors is None or bool((factors > 1).any())
        reduces = factors is None or bool((factors < 1).any())
        if enlarges and reduces:  # or it may do either: axis by axis, so that two nodes are one
            how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            one = constant(node, np.ones(1, np.float32), "one")
            x = before(node, "Resize", [x, None, before(node, "Max", [scales, one])], how)
            scales = before(node, "Min", [scales, one])
        set_attribute(node, "nearest_mode", "ceil" if reduces else "floor")
    _set_inputs(node, (x, None, scales))


@step(13, "Resize")
def absent_inputs_are_left_out(node: ir.Node, types: Types) -> None:
    """Empty tensors stood for absent inputs; one way to map coordinates was dropped."""
    for at in range(1, min(3, len(node.inputs))):
        empty = array_of(node.inputs[at])
        if empty is not None and empty.size == 0:
            node.replace_input_with(at, None)
    if attribute(node, "coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return
    if attribute(node, "nearest_mode") != "floor" or attribute(node, "mode") not in (
        None,
        "nearest",
    ):
        raise Refused("coordinate_transformation_mode tf_half_pixel_for_nn with other than floor")
    # floor((i + 0.5) / s) is round((i + 0.5) / s - 0.5) with halves going up
    set_attribute(node, "coordinate_transformation_mode", "half_pixel")
    set_attribute(node, "nearest_mode", "round_prefer_ceil")


@step(11, "Scatter")
def scatter_becomes_scatter_elements(node: ir.Node, types: Types) -> None:
    """The same operator under a better name."""
    node.op_type = "ScatterElements"


@step(13, *BY_RANK)
def axis_means_one_axis(node: ir.Node, types: Types) -> None:
    """axis=k meant all axes from k on together; where they are one in truth, it is that one."""
    x, axis = node.inputs[0], take_attribute(node, "axis", 1)
    dims = dims_of(x)
    if dims is not None:
        axis = axis + len(dims) if axis < 0 else axis
        long = [at for at in range(axis, len(dims)) if dims[at] != 1]
        if len(long) <= 1:
            set_attribute(node, "axis", long[0] if long else -1)
            return
    set_attribute(node, "axis", -1)
    if axis == -1:
        return
    shape = before(node, "Shape", [x])
    node.replace_input_with(0, before(node, "Flatten", [x], {"axis": axis}))
    after(node, "Reshape", [shape])


@step(16, "RoiAlign")
def half_pixels_are_the_default(node: ir.Node, types: Types) -> None:
    """Regions were not moved by half a pixel."""
    set_attribute(node, "coordinate_transformation_mode", "output_half_pixel")


@step(20, "GridSample")
def modes_are_renamed(node: ir.Node, types: Types) -> None:
    """bilinear -> linear, bicubic -> cubic."""
    mode = attribute(node, "mode", "bilinear")
    set_attribute(node, "mode", {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


@step(20, "DFT")
def axis_becomes_an_input(node: ir.Node, types: Types) -> None:
    """axis=1 -> third input."""
    set_input(node, 2, ints(node, take_attribute(node, "axis", 1), "axis"))


@step(21, "GroupNormalization")
def scales_are_per_channel(node: ir.Node, types: Types) -> None:
    """scale and bias had one element per group: each is repeated for the group's channels."""
    x, groups = node.inputs[0], attribute(node, "num_groups")
    channels = before(node, "Shape", [x], {"start": 1, "end": 2}, "channels")
    each = before(node, "Div", [channels, ints(node, [groups], "groups")], label="each")
    wide = before(node, "Concat", [ints(node, [groups], "rows"), each], {"axis": 0}, "wide")
    for at in (1, 2):
        column = before(node, "Reshape", [node.inputs[at], ints(node, [-1, 1], "column")])
        grown = before(node, "Expand", [column, wide])
        flat = before(node, "Reshape", [grown, ints(node, [-1], "flat")])
        node.replace_input_with(at, flat)


@step(9, "Scan")
def the_batch_becomes_an_outer_scan(node: ir.Node, types: Types) -> None:
    """Scan-8 ran over a batch of sequences: a Scan over the batch with a Scan over each in it."""
    if node.inputs[0] is not None:
        raise Refused("its sequences have lengths of their own")
    body: ir.Graph = take_attribute(node, "body")
    inner = {"body": body, "num_scan_inputs": attribute(node, "num_scan_inputs")}
    if (directions := take_attribute(node, "directions")) is not None:
        inner["scan_input_directions"] = directions
    name = node.outputs[0].name
    inputs = [ir.Value(name=f"{name}_in_{at}") for at in range(len(body.inputs))]
    outputs = [ir.Value(name=f"{name}_out_{at}") for at in range(len(body.outputs))]
    scan = ir.node("Scan", inputs, inner, outputs=outputs, name=f"{name}_inner")
    set_attribute(node, "body", ir.Graph(inputs, outputs, nodes=[scan], name=f"{name}_one"))
    set_attribute(node, "num_scan_inputs", len(inputs))
    _set_inputs(node, node.inputs[1:])


def _number_like(node: ir.Node, number: float, label: str, types: Types) -> ir.Value:
    """A scalar of the type of the node's first input."""
    x = node.inputs[0]
    dtype = types.get(x, ir.DataType.FLOAT) if x is not None else ir.DataType.FLOAT
    return constant(node, np.asarray(number).astype(dtype.numpy()), label)


def _is_used(node: ir.Node, at: int) -> bool:
    if at >= len(node.outputs):
        return False
    return bool(node.outputs[at].uses()) or node.outputs[at].is_graph_output()


def _become(node: ir.Node, op_type: str, inputs: Sequence[ir.Value | None]) -> None:
    """Another operator with the same outputs."""
    node.op_type = op_type
    node.attributes.clear()
    _set_inputs(node, inputs)


def _set_inputs(node: ir.Node, inputs: Sequence[ir.Value | None]) -> None:
    node.resize_inputs(len(inputs))
    for at, value in enumerate(inputs):
        node.replace_input_with(at, value)
