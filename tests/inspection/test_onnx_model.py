"""inspection/onnx_model.py: the same facts about ONNX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.errors import ModelFileError
from mindspore_lite.inspection.examine import examine
from mindspore_lite.inspection.facts import Graph, Operator, Port, Problem
from mindspore_lite.inspection.onnx_model import family_of


def info(name: str, dims: list[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def saved(
    path: Path, nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], **options: object
) -> Path:
    graph = helper.make_graph(
        nodes,
        "net",
        [info("x", ["n", 4])],
        [info("y", None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("my.ops", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="me")
    onnx.save(model, path, **options)
    return path


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="dense"),
        helper.make_node("Relu", ["a"], ["y"], name="act"),
    ]
    weights = {"w": np.ones((4, 400), np.float32)}
    options = {"save_as_external_data": True, "location": "w.data", "size_threshold": 0}
    return saved(tmp_path / "net.onnx", nodes, weights, **options)


def test_facts_of_an_onnx_file(dense: Path) -> None:
    facts = examine(dense).facts
    assert facts.can_run
    assert (facts.format, facts.producer, facts.mind_ir_version) == ("ONNX", "me", None)
    assert facts.encoding == "opset ai.onnx 21, my.ops 1"
    assert facts.inputs == (Port("x", "float32", (-1, 4)),)
    assert facts.outputs == (Port("y", "float32", (-1, 400)),)
    assert facts.weights.by_dtype["float32"].elements == 1600
    (file,) = facts.external_files
    assert (file.name, file.size_bytes) == (str(dense.parent / "w.data"), 6400)
    assert facts.operators == (
        Operator("MatMul", 1, "matmul", True),
        Operator("Relu", 1, "activation", True),
    )
    assert facts.memory is not None
    assert facts.memory.weights_bytes == 6400
    assert facts.memory.activations_bytes == 4 * (4 + 400 + 400)
    assert facts.memory.open_dims_as_one


def test_the_sketch_of_an_onnx_file(dense: Path) -> None:
    (sketch,) = examine(dense).sketches()
    assert [box.op for box in sketch.boxes] == ["x", "MatMul", "Relu", "y"]
    assert [(o.kind, o.name) for o in sketch.boxes[1].operands] == [("box", "x"), ("weight", "w")]


def test_an_operator_that_nobody_defines_is_a_problem(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Fancy", ["x"], ["a"], name="fancy", domain="my.ops"),
        helper.make_node("Reluu", ["a"], ["y"], name="typo"),
    ]
    found = examine(saved(tmp_path / "net.onnx", nodes, {}))
    assert found.facts.problems == (
        Problem("Fancy: no operator of my.ops that is known", ("fancy",)),
        Problem("Reluu: no operator of ONNX that is known", ("typo",)),
    )
    assert [bool(box.problem) for box in found.sketches()[0].boxes] == [False, True, True, False]


def test_a_damaged_file_is_an_error_of_ours(dense: Path) -> None:
    model = onnx.load(dense, load_external_data=False)
    del model.graph.node[0].output[:]
    onnx.save(model, dense)
    with pytest.raises(ModelFileError, match="makes no sense as ONNX"):
        examine(dense)


def test_types_that_contradict_the_file_are_left_as_they_are(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", [helper.make_node("Relu", ["x"], ["y"])], {})
    model = onnx.load(path)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT8, [7]))
    onnx.save(model, path)
    assert examine(path).facts.outputs == (Port("y", "int8", (7,)),)


def test_branches_are_graphs_of_their_own(tmp_path: Path) -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(op, ["x"], [name])], name, [], [info(name, ["n", 4])]
        )

    nodes = [
        helper.make_node("Constant", [], ["flag"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node(
            "If",
            ["flag"],
            ["y"],
            name="choice",
            then_branch=branch("t", "Relu"),
            else_branch=branch("e", "Neg"),
        ),
    ]
    found = examine(saved(tmp_path / "net.onnx", nodes, {}))
    graphs = sorted(found.facts.graphs[1:], key=lambda graph: graph.role)
    assert graphs == [
        Graph("choice:else_branch", "else branch", 1, ("choice",)),
        Graph("choice:then_branch", "then branch", 1, ("choice",)),
    ]
    main, *_ = found.sketches()
    assert [box.op for box in main.boxes] == ["x", "If", "y"]
    assert {o.kind for o in main.boxes[1].operands} == {"constant", "graph"}
    inner = next(s for s in found.sketches() if s.role == "then branch")
    assert inner.boxes[0].operands[0].kind == "outer"


@pytest.mark.parametrize(
    ("op", "family"),
    [("Conv", "conv"), ("Gemm", "matmul"), ("Selu", "activation"), ("LayerNormalization", "norm"),
     ("Add", "elementwise"), ("Unsqueeze", "shape"), ("If", "control")],
)  # fmt: skip
def test_families_are_told_by_names(op: str, family: str) -> None:
    assert family_of(op) == family
