"""Pass: converts a model of ONNX opset 7 to 20 to opset 21, with its functions inlined.

An older model is understood where its operators are those of opset 7 already.

onnx's own converter was measured and is not used: it changes the numbers of Resize-10 and Hardmax,
refuses sparse constants, and passes the whole model through protobuf. onnxscript's begins at 18.
Between 7 and 21 few operators changed their form at all, see opset_steps.py.
"""

from __future__ import annotations

from collections import defaultdict

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes

from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.passes.edit import graph_nodes, name_all
from mindspore_lite.passes.element_types import Types, element_types, signature
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.inline import inline_functions
from mindspore_lite.passes.opset_steps import BY_RANK, STEPS, Refused

OLDEST, TARGET = 7, 21
IR_VERSION = 10  # the first that knows opset 21


def upgraded(model: ir.Model) -> ir.Model:
    """Bring the default domain to opset 21, in place; newer models and other domains stay.

    Weights that are listed as inputs too, as the first versions of ONNX had it, are weights alone
    from here on.

    Raises:
        ModelFileError: The model names no opset, one that is not known yet, or functions that
            cannot be inlined.
        UnsupportedOpError: Nodes that the new opset cannot express; all of them are named.
    """
    version = _version(model)
    _inline(model, version)
    name_all(model)  # shape inference confuses what has one name in two bodies
    passes.RemoveInitializersFromInputsPass()(model)
    if version < TARGET:
        _check_known(model, version)
        _climb(model, version)
        model.ir_version = max(model.ir_version, IR_VERSION)
    name_all(model)
    return model


def _version(model: ir.Model) -> int:
    """The opset of the default domain, whose long name is put away."""
    long = model.opset_imports.pop("ai.onnx", None)
    version = model.opset_imports.get("", long)
    if version is None:
        if any(node.domain == "" for node in graph_nodes(model)):
            raise ModelFileError("the model does not say which opset of ONNX its operators are of")
        version = TARGET
    newest = onnx.defs.onnx_opset_version()
    if version > newest:
        raise ModelFileError(
            f"the model is of ONNX opset {version}, the installed onnx package knows {newest}; "
            "install a newer one"
        )
    model.opset_imports[""] = version
    return version


def _inline(model: ir.Model, version: int) -> None:
    """Put the bodies of functions where they are called; their nodes remember their opset."""
    if model.functions:
        inline_functions(model, DEFAULT.max_nodes)
    for node in graph_nodes(model):
        own = node.version or version
        if own != version and max(own, version) > TARGET:
            raise ModelFileError(
                f"{node.op_type} in a function is of ONNX opset {own}, the model of {version}; "
                f"such a mixture is understood up to opset {TARGET}"
            )


def _check_known(model: ir.Model, version: int) -> None:
    problems: dict[str, list[str]] = defaultdict(list)
    for node in graph_nodes(model):
        own = node.version or version
        if node.domain == "" and (amiss := _amiss(node.op_type, own)):
            problems[amiss].append(_place(node))
    _refuse(problems)


def _amiss(op_type: str, version: int) -> str:
    """Why an operator cannot be understood; "" if it can."""
    known = signature("", op_type, version)
    if known is None:
        return f"{op_type} is no operator of ONNX opset {version}"
    oldest = signature("", op_type, max(version, OLDEST))
    if oldest is None or oldest.since != known.since:
        return f"{op_type} of ONNX opset {version} had another form than in {OLDEST} and later"
    return ""


def _place(node: ir.Node) -> str:
    return str(node.name or node.outputs[0].name)


def _climb(model: ir.Model, version: int) -> None:
    types = element_types(model)
    problems: dict[str, list[str]] = defaultdict(list)
    nodes = [node for node in graph_nodes(model) if node.domain == ""]
    by_rank = [node for node in nodes if node.op_type in BY_RANK]
    for node in nodes:
        if node.op_type not in BY_RANK:
            _upgrade(node, version, types, problems)
    model.opset_imports[""] = TARGET
    if by_rank:
        name_all(model)
        infer_shapes(model)  # which finds more among the new operators than among the old
        for node in by_rank:
            _upgrade(node, version, types, problems)
    _refuse(problems)


def _upgrade(node: ir.Node, version: int, types: Types, problems: dict[str, list[str]]) -> None:
    for reached in range((node.version or version) + 1, TARGET + 1):
        step = STEPS.get((node.op_type, reached))
        if step is None:
            continue
        try:
            step(node, types)
        except Refused as exc:
            problems[f"{node.op_type}: {exc}"].append(_place(node))
    node.version = None


def _refuse(problems: dict[str, list[str]]) -> None:
    if problems:
        lines = [f"{what} ({', '.join(where)})" for what, where in problems.items()]
        raise UnsupportedOpError(
            f"the model cannot be brought to ONNX opset {TARGET}: " + "; ".join(lines), problems
        )
