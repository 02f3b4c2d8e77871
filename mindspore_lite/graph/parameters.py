"""Finds the training framework's parameter behind each weight of a graph, and how the weight lies.

Exporters turn the matrix of a Linear round and give it a number for a name (`onnx::MatMul_217`,
`val_1451`). What is left of the parameter is the module of the node that uses it: PyTorch's older
exporter puts it into the node's name, the newer one into the node's metadata. A MindIR file of ours
keeps what was found in its notes (graph/notes.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

_SCOPES = "pkg.torch.onnx.name_scopes"  # of a node: the modules around it, then its own name
_FX_NODE = "pkg.torch.onnx.fx_node"  # of a node: the call that it was made of
_RULE = "pkg.onnxscript.rewriter.rule_name"  # of a node: what the exporter made it by
_CLASSES = "pkg.torch.onnx.class_hierarchy"
_MAX_TEXT = 10_000  # characters of one metadata entry that are looked at
# a weight is often turned or converted on its way to the node that uses it
MOVES = frozenset({"Transpose", "Cast", "Reshape", "Identity"})
PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose"})
_CONVS = frozenset({"Conv", "ConvTranspose"})
_MAX_MOVES = 16  # between a weight and its product; more say nothing about layout
_OWN = re.compile(r"[^\W\d]\w*(\.\w+)*\.[^\W\d]\w*", re.ASCII)  # `encoder.layers.3.fc1.weight`
_FX_WEIGHT = re.compile(r"linear\.default\]\(args = \(%\w+, %p_(\w+)", re.ASCII)


@dataclass(frozen=True)
class Parameter:
    """What a weight was in the training framework."""

    name: str = ""  # "" where nothing tells
    transposed: bool | None = None  # whether the weight lies turned round; None: not known


UNKNOWN = Parameter()


def parameters_of(model: ir.Model) -> dict[str, Parameter]:
    """The parameters of all weights of the main graph, by the names of the weights.

    A name that is only a guess, that of the module, is dropped where another weight has it as well.
    """
    noted = noted_parameters(model)
    found: dict[str, Parameter] = {}
    guessed = set()
    for name, value in model.graph.initializers.items():
        known = noted.get(name) or _merged(value) or _named(name)
        found[name], is_guess = (known, False) if known else _used(value)
        if is_guess:
            guessed.add(name)
    count = Counter(one.name for one in found.values())
    for name in guessed:
        if count[found[name].name] > 1:
            found[name] = replace(found[name], name="")
    return found


def is_own(name: str) -> bool:
    """Whether a weight's name is one that a parameter has."""
    return _OWN.fullmatch(name) is not None


def is_merged(value: ir.Value, parameter: Parameter) -> bool:
    """Whether an exporter has merged a weight with others, so that it is no parameter any more.

    A BatchNorm after a Conv goes into its weight and bias. The older exporter gives them new names
    then, and only then; the newer one says so at the node.
    """
    if parameter.name:
        return False
    convs = (is_op(node, _CONVS) and place > 0 for node, place in value.uses())
    return is_own(value.name or "") or any(convs)


KEY = "mslite.parameter"  # of a weight's metadata, where a file's notes have said it
_LAYOUTS = {"transposed": True, "same": False, "unknown": None}


def note_parameter(value: ir.Value, parameter: Parameter) -> None:
    """Keep with a weight what it was in the training framework."""
    value.metadata_props[KEY] = f"{layout_text(parameter.transposed)} {parameter.name}"


def note_parameters(model: ir.Model) -> None:
    """Keep with each weight what the metadata of nodes says, before that is dropped."""
    for name, parameter in parameters_of(model).items():
        if is_worth_noting(name, parameter):
            note_parameter(model.graph.initializers[name], parameter)


def is_worth_noting(name: str, parameter: Parameter) -> bool:
    """Whether more is known of a weight than its name says."""
    return parameter.name != name if is_own(name) else bool(parameter.name)


def noted_parameters(model: ir.Model) -> dict[str, Parameter]:
    """What was kept so; the metadata of a file, which anybody can write, is checked."""
    found = {}
    for name, value in model.graph.initializers.items():
        layout, _, parameter = value.metadata_props.get(KEY, "").partition(" ")
        if layout in _LAYOUTS:
            found[name] = Parameter(parameter[:_MAX_TEXT], _LAYOUTS[layout])
    return found


def layout_text(transposed: bool | None) -> str:
    """How a weight lies relative to its parameter, in one word."""
    return next(text for text, value in _LAYOUTS.items() if value is transposed)


# --- modules -------------------------------------------------------------------------------------


def scope_of(node: ir.Node) -> str:
    """The module of a node as a path, `/encoder/layers.3/fc1`; "" where nothing tells."""
    if scope := (node.name or "").rpartition("/")[0]:
        return scope
    text = node.metadata_props.get(_SCOPES, "")[:_MAX_TEXT]
    scopes = [part.strip("'\"") for part in text.strip("[]").split(", ")]
    return as_path(scopes[-2].split(".")) if len(scopes) > 1 and scopes[-2] else ""


def as_path(parts: list[str]) -> str:
    """Parts of a module's name as a path; a number belongs to the part before."""
    path: list[str] = []
    for part in parts:
        if part.isdecimal() and path:
            path[-1] = f"{path[-1]}.{part}"
        else:
            path.append(part)
    return "/" + "/".join(path)


def collapsed(path: str) -> str:
    """A path without the modules whose names the next one repeats: `/net/net.0` is `/net.0`."""
    kept: list[str] = []
    for part in path.split("/"):
        if kept and kept[-1] and part.startswith(f"{kept[-1]}."):
            kept.pop()
        kept.append(part)
    return "/".join(kept)


def module_of(path: str) -> str:
    """A path as PyTorch names the module: `/enc/layers/layers.3/fc1` is `enc.layers.3.fc1`."""
    return collapsed(path).strip("/").replace("/", ".")


# --- weights -------------------------------------------------------------------------------------


def _named(name: str) -> Parameter | None:
    """A weight that still has its parameter's name is the parameter, as it is."""
    return Parameter(name, False) if is_own(name) else None


def _merged(value: ir.Value) -> Parameter | None:
    """A weight that the exporter merged with a BatchNorm has lost its parameter, not its name."""
    rules = (node.metadata_props.get(_RULE, "") for node, _ in value.uses())
    return UNKNOWN if any(rule.startswith("FuseBatchNorm") for rule in rules) else None


def _used(value: ir.Value) -> tuple[Parameter, bool]:
    """What the products that use a weight tell, and whether the name is a guess.

    The first name counts, layouts must agree.
    """
    found = list(dict.fromkeys(_uses(value)))
    if not found:
        return UNKNOWN, False
    layouts = {one.transposed for one, _ in found}
    (first, is_guess), *_ = found
    return Parameter(first.name, layouts.pop() if len(layouts) == 1 else None), is_guess


def _uses(weight: ir.Value) -> Iterator[tuple[Parameter, bool]]:
    waiting: list[tuple[ir.Value, bool | None, int]] = [(weight, False, 0)]
    while waiting:
        value, turned, moves = waiting.pop()
        for node, place in value.uses():
            if is_op(node, MOVES) and place == 0 and moves < _MAX_MOVES:
                waiting.append((node.outputs[0], _moved(node, turned), moves + 1))
            elif is_op(node, PRODUCTS) and place < 2:
                layout = _layout(node, place, turned)
                if is_op(node, _CONVS):  # it would have its own name, if it were the parameter
                    yield Parameter("", layout), False
                elif scope := scope_of(node):
                    name, is_guess = _parameter(node, scope)
                    yield Parameter(name, layout), is_guess


def _moved(node: ir.Node, turned: bool | None) -> bool | None:
    """Whether a weight is turned round after a node that moves it."""
    if node.op_type == "Reshape" or turned is None:
        return None
    if node.op_type != "Transpose":
        return turned
    order = node.attributes.get_ints("perm", [1, 0])
    return not turned if list(order) == [1, 0] else None


def _layout(node: ir.Node, place: int, turned: bool | None) -> bool | None:
    """Whether a weight lies turned round, if its parameter is (out, in) as a Linear's is."""
    if node.op_type in _CONVS:
        return False if turned is False else None
    if turned is None or place != 1 or not _is_linear(node):
        return None
    used_as_is = bool(node.attributes.get_int("transB", 0)) if node.op_type == "Gemm" else False
    return used_as_is == turned  # a product wants (in, out)


def _is_linear(node: ir.Node) -> bool:
    """Whether a product is that of a Linear; the older exporter does not say, and it mostly is."""
    call = node.metadata_props.get(_FX_NODE, "")[:_MAX_TEXT]
    classes = node.metadata_props.get(_CLASSES, "")[:_MAX_TEXT]
    return not call or "aten.linear." in call or "modules.linear.Linear'" in classes


def _parameter(node: ir.Node, scope: str) -> tuple[str, bool]:
    """The parameter's name: its module, and what the call says, which writes "_" for ".".

    Without a call it is a guess.
    """
    module = module_of(scope)
    called = _FX_WEIGHT.search(node.metadata_props.get(_FX_NODE, "")[:_MAX_TEXT])
    start = module.replace(".", "_") + "_"
    if called and called[1].startswith(start):
        return f"{module}.{called[1].removeprefix(start)}", False
    return f"{module}.weight", True


def is_op(node: ir.Node, kinds: frozenset[str]) -> bool:
    """Whether a node is one of ONNX's own operators of these names."""
    return node.domain == "" and node.op_type in kinds
