"""Loads an ONNX file for conversion, and reports all its problems at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.passes.check_nodes import MAX_NAME, misuse, rules, sort_nodes, title
from mindspore_lite.passes.element_types import signature

_SHOWN = 30  # problems in one error


def load_onnx(path: Path, reads_later: bool = False) -> ir.Model:
    """The model, in whatever opset it has.

    Args:
        path: The file.
        reads_later: Leave big weights in the file, which must stay in place, until they are used.
    """
    model = source_of(ModelInput("ONNX", path, reads_later=reads_later)).translate()
    checked(model, repr(str(path)))
    return model


def checked(model: ir.Model, name: str) -> None:
    """Raise one error for everything that makes a model no valid ONNX; sort its nodes if needed."""
    imports = model.graph.opset_imports
    if "ai.onnx" in imports:  # the long name of the default domain
        imports.setdefault("", imports.pop("ai.onnx"))
    problems = [*_versions(model), *_operators(model), *_names(model)]
    if not problems:
        try:
            sort_nodes(model)
        except ModelFileError as exc:
            problems.append(str(exc))
    if problems:
        more = len(problems) - _SHOWN
        lines = problems[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])
        raise ModelFileError(f"{name} is no valid ONNX model: " + "; ".join(lines))


def _versions(model: ir.Model) -> Iterator[str]:
    if not 3 <= model.ir_version <= onnx.IR_VERSION:
        yield (
            f"it has IR version {model.ir_version}, wanted 3 to {onnx.IR_VERSION} "
            f"(what onnx {onnx.__version__} knows)"
        )
    newest = onnx.defs.onnx_opset_version()
    opset = model.graph.opset_imports.get("")
    if opset is not None and not 1 <= opset <= newest:  # passes/opset.py looks at the oldest ones
        yield f"it has opset {opset}, wanted 1 to {newest} (what onnx {onnx.__version__} knows)"


def _operators(model: ir.Model) -> Iterator[str]:
    """Nodes of domains that are not imported, or of operators that their opset does not have."""
    own = set(model.functions)
    scopes = [(model.graph.all_nodes(), model.graph.opset_imports)]
    scopes += [(f.all_nodes(), f.opset_imports) for f in model.functions.values()]
    for nodes, imports in scopes:
        for node in nodes:
            if node.op_identifier() in own:
                continue
            if problem := _unknown(node, imports):
                yield f"{title(node)}: {problem}"


def _unknown(node: ir.Node, imports: Mapping[str, int]) -> str:
    """What is wrong with a node by itself, "" for nothing."""
    if node.domain not in imports:
        return f"the model imports no opset of the domain {node.domain or 'ai.onnx'!r}"
    opset = imports[node.domain]
    # of other domains we know no operators; what is done with them is decided further down
    if node.domain == "" and 1 <= opset <= onnx.defs.onnx_opset_version():
        if signature("", node.op_type, opset) is None:
            return f"opset {opset} has no such operator"
        known = rules("", node.op_type, opset)
        return "" if known is None else misuse(node, known)
    return ""


def _names(model: ir.Model) -> Iterator[str]:
    """Values that nothing makes, and inputs of one name; onnx-ir refuses other values of one."""
    for graph in model.graphs():
        inputs = Counter(value.name for value in graph.inputs)
        for name, count in inputs.items():
            if count > 1:
                yield f"{count} inputs have the name {str(name)[:MAX_NAME]!r}"
        for node in graph:
            for value in node.inputs:
                if value is not None and _is_loose(value):
                    yield f"{title(node)} uses {_cut(value)!r}, which nothing makes"
        for value in graph.outputs:
            if _is_loose(value):
                yield f"the output {_cut(value)!r} is made by nothing"


def _cut(value: ir.Value) -> str:
    return str(value.name)[:MAX_NAME]


def _is_loose(value: ir.Value) -> bool:
    return not (value.producer() or value.is_graph_input() or value.is_initializer())
