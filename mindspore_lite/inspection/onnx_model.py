"""Facts about an ONNX file, and its graphs as sketches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx_ir as ir

from mindspore_lite.core.dtypes import no_strings
from mindspore_lite.graph.source import ModelSource
from mindspore_lite.inspection import facts
from mindspore_lite.inspection.memory import estimate
from mindspore_lite.inspection.skeleton import dtype_name, skeleton_of
from mindspore_lite.inspection.sketch import (
    MAX_OPERANDS,
    Box,
    Operand,
    Sketch,
    shape_text,
    value_text,
)

_ENGINE_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")  # ONNX Runtime has kernels for
_FAMILIES = (  # the first word that an operator's name holds decides
    ("Conv", "conv"), ("Pool", "conv"), ("MatMul", "matmul"), ("Gemm", "matmul"),
    ("Einsum", "matmul"), ("Attention", "matmul"), ("Norm", "norm"), ("Reduce", "reduce"),
    ("Arg", "reduce"), ("TopK", "reduce"), ("Cum", "reduce"), ("lu", "activation"),
    ("Relu", "activation"), ("Sigmoid", "activation"), ("Softmax", "activation"),
    ("Tanh", "activation"), ("Swish", "activation"), ("Gather", "index"), ("Scatter", "index"),
    ("Slice", "index"), ("OneHot", "index"), ("NonZero", "index"), ("Resize", "resize"),
    ("Upsample", "resize"), ("Reshape", "shape"), ("Shape", "shape"), ("Transpose", "shape"),
    ("queeze", "shape"), ("Concat", "shape"), ("Split", "shape"), ("Flatten", "shape"),
    ("Expand", "shape"), ("Tile", "shape"), ("Pad", "shape"), ("If", "control"),
    ("Loop", "control"), ("Scan", "control"), ("Identity", "structure"),
)  # fmt: skip


def examine(path: Path, source: ModelSource) -> tuple[facts.Facts, list[Sketch]]:
    """Everything that is known without running the model, and its graphs as sketches."""
    model = source.translate()
    graphs = list(_graphs(model.graph, "main", ""))
    problems = _problems(model, graphs)
    refused = {problem.reason.partition(":")[0] for problem in problems}
    drawn = [_sketch(graph, role, name, refused) for graph, role, name in graphs]
    opsets = ", ".join(f"{name or 'ai.onnx'} {v}" for name, v in model.opset_imports.items())
    counted = Counter(node.op_type for graph, _, _ in graphs for node in graph)
    inputs = tuple(_port(v) for v in model.graph.inputs if v.name not in model.graph.initializers)
    weights = [
        (dtype_name(int(tensor.dtype)), tensor.size, tensor.nbytes)
        for graph, _, _ in graphs
        for value in graph.initializers.values()
        if (tensor := value.const_value) is not None
    ]
    skeleton = skeleton_of(model)  # from here on the weights are gone
    known = facts.Facts(
        file=str(path),
        size_bytes=path.stat().st_size,
        format="ONNX",
        producer=model.producer_name or "",
        producer_version=model.producer_version or "",
        ir_version=str(model.ir_version),
        mind_ir_version=None,
        encoding=f"opset {opsets}",
        user_info=dict(model.metadata_props),
        inputs=inputs,
        outputs=skeleton.outputs(),
        weights=facts.weights_of(weights),
        external_files=facts.external_files(source.files[1:]),
        operators=tuple(
            facts.Operator(name, count, family_of(name), name not in refused)
            for name, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
        ),
        in_place={},
        kept=(),
        graphs=tuple(
            facts.Graph(name, role, len(graph), (name.rpartition(":")[0],) if number else ())
            for number, (graph, role, name) in enumerate(graphs)
        ),
        problems=problems,
        memory=estimate(skeleton),
    )
    return known, drawn


def family_of(op: str) -> str:
    """A family for an ONNX operator, by its name: only colours depend on it."""
    return next((family for word, family in _FAMILIES if word in op), "elementwise")


def _port(value: ir.Value) -> facts.Port:
    return facts.Port(str(value.name), dtype_name(int(value.dtype or 0)), _dims(value))


def _dims(value: ir.Value) -> tuple[int, ...] | None:
    if value.shape is None:
        return None
    return tuple(d if isinstance(d, int) else -1 for d in value.shape)


def _graphs(graph: ir.Graph, role: str, place: str) -> Iterator[tuple[ir.Graph, str, str]]:
    """(graph, role, name) of this graph and of all inside its nodes."""
    yield graph, role, place or graph.name or "main"
    for node in graph:
        for key, inner in _inner(node):
            yield from _graphs(inner, key.replace("_", " "), f"{_name(node)}:{key}")


def _inner(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    for key, attribute in node.attributes.items():
        value = getattr(attribute, "value", None)
        for item in value if isinstance(value, tuple | list) else [value]:
            if isinstance(item, ir.Graph):
                yield key, item


def _name(node: ir.Node) -> str:
    return node.name or str(node.outputs[0].name)


def _problems(
    model: ir.Model, graphs: list[tuple[ir.Graph, str, str]]
) -> tuple[facts.Problem, ...]:
    """Operators that neither ONNX nor the file defines; the engine has the last word on others."""
    own = {(function.domain, function.name) for function in model.functions.values()}
    found: dict[str, list[str]] = {}
    for kind, ends in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        for value in ends:
            if value.dtype == ir.DataType.STRING:
                found[no_strings(kind, str(value.name))] = [str(value.name)]
    for graph, _, _ in graphs:
        for node in graph:
            if node.domain in _ENGINE_DOMAINS and (node.domain or onnx.defs.has(node.op_type)):
                continue
            if (node.domain, node.op_type) not in own:
                reason = f"{node.op_type}: no operator of {node.domain or 'ONNX'} that is known"
                found.setdefault(reason, []).append(_name(node))
    return tuple(facts.Problem(reason, tuple(places)) for reason, places in found.items())


def _sketch(graph: ir.Graph, role: str, name: str, refused: set[str]) -> Sketch:
    boxes = [
        Box(str(v.name), str(v.name), "input", "input", _type(v))
        for v in graph.inputs
        if v.name not in graph.initializers
    ]
    boxes += [_box(node, graph, refused) for node in graph if node.op_type != "Constant"]
    for number, value in enumerate(graph.outputs):
        operands = (_operand(value, graph),)
        boxes.append(
            Box(f"output:{number}", str(value.name), "output", "output", _type(value), operands)
        )
    return Sketch(name, role, tuple(boxes))


def _box(node: ir.Node, graph: ir.Graph, refused: set[str]) -> Box:
    operands = [_operand(v, graph) for v in node.inputs if v is not None]
    operands += [
        Operand("graph", "", f"{_name(node)}:{key}", key.replace("_", " "))
        for key, _ in _inner(node)
    ]
    attributes = [
        (key, value_text(attribute.value))
        for key, attribute in sorted(node.attributes.items())
        if isinstance(attribute, ir.Attr) and not isinstance(attribute.value, ir.Graph)
    ]
    return Box(
        str(node.outputs[0].name),
        node.op_type,
        family_of(node.op_type),
        _name(node),
        ", ".join(_type(v) for v in node.outputs[:8]),
        tuple(operands[:MAX_OPERANDS]),
        tuple(attributes),
        f"{node.op_type}: not known" if node.op_type in refused else "",
    )


def _operand(value: ir.Value, graph: ir.Graph) -> Operand:
    name, node = str(value.name), value.producer()
    if value.const_value is not None:
        return Operand("weight", _type(value), name)
    if node is None:
        return Operand("box" if value in graph.inputs else "outer", _type(value), name)
    if node.graph is not graph:
        return Operand("outer", _type(value), name)
    if node.op_type == "Constant":
        texts = [value_text(a.value) for a in node.attributes.values() if isinstance(a, ir.Attr)]
        return Operand("constant", ", ".join(texts))
    return Operand("box", _type(value), str(node.outputs[0].name))


def _type(value: ir.Value) -> str:
    return shape_text(dtype_name(int(value.dtype or 0)), _dims(value))
