"""conversion/from_onnx.py: a model that breaks the rules of ONNX is refused, with every reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.running import run_graph

from mindspore_lite.conversion.from_onnx import load_onnx
from mindspore_lite.errors import ModelFileError

NEWEST = onnx.defs.onnx_opset_version()
X = np.array([-1, 2, -3], np.float32)


def relu(source: str = "x", to: str = "y", **more: str) -> NodeProto:
    return helper.make_node("Relu", [source], [to], name=f"at {to}", **more)


def proto(*nodes: NodeProto, opset: int = 17, ir_version: int = 8) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy"]
    graph = helper.make_graph(nodes or [relu()], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def written(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "net.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def refusal(folder: Path, made: onnx.ModelProto) -> str:
    with pytest.raises(ModelFileError, match=r"net\.onnx' is no valid ONNX model") as caught:
        load_onnx(written(folder, made))
    return str(caught.value)


@pytest.mark.parametrize("opset", [6, 7, 13, 21, NEWEST])
def test_every_opset_loads(tmp_path: Path, opset: int) -> None:
    model = load_onnx(written(tmp_path, proto(opset=opset)))
    assert model.graph.opset_imports == {"": opset}


@pytest.mark.parametrize("opset", [0, NEWEST + 1])
def test_an_opset_that_does_not_exist_is_refused(tmp_path: Path, opset: int) -> None:
    assert f"it has opset {opset}, wanted 1 to {NEWEST}" in refusal(tmp_path, proto(opset=opset))


@pytest.mark.parametrize("version", [0, 2, onnx.IR_VERSION + 1])
def test_an_ir_version_that_onnx_does_not_know_is_refused(tmp_path: Path, version: int) -> None:
    text = refusal(tmp_path, proto(ir_version=version))
    assert f"it has IR version {version}, wanted 3 to {onnx.IR_VERSION}" in text


def test_the_long_name_of_the_default_domain_is_understood(tmp_path: Path) -> None:
    made = proto(relu(domain="ai.onnx"))
    made.opset_import[0].domain = "ai.onnx"
    model = load_onnx(written(tmp_path, made))
    assert model.graph.opset_imports == {"": 17}
    np.testing.assert_array_equal(run_graph(model, X)[0], np.maximum(X, 0))


def test_a_domain_without_an_opset_is_refused(tmp_path: Path) -> None:
    made = proto()
    del made.opset_import[:]
    text = refusal(tmp_path, made)
    assert "node 'at y' (Relu): the model imports no opset of the domain 'ai.onnx'" in text


def test_operators_of_other_domains_are_left_to_what_follows(tmp_path: Path) -> None:
    made = proto(helper.make_node("Anything", ["x"], ["y"], domain="mine"))
    assert "imports no opset of the domain 'mine'" in refusal(tmp_path, made)
    made.opset_import.add(domain="mine", version=3)
    assert [n.op_type for n in load_onnx(written(tmp_path, made)).graph] == ["Anything"]


def test_a_function_of_the_model_is_put_where_it_is_called(tmp_path: Path) -> None:
    made = proto(helper.make_node("Twice", ["x"], ["y"], domain="mine"))
    made.opset_import.add(domain="mine", version=1)
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    imports = [helper.make_opsetid("", 17)]
    made.functions.append(helper.make_function("mine", "Twice", ["a"], ["b"], body, imports))
    assert [n.op_type for n in load_onnx(written(tmp_path, made)).graph] == ["Add"]
    made.functions[0].node[0].op_type = "Addd"
    assert "(Addd): opset 17 has no such operator" in refusal(tmp_path, made)


def test_all_problems_are_said_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gelu", ["x"], ["a"], name="too new"),
        helper.make_node("Nonsense", ["a"], ["b"], name="made up"),
        helper.make_node("Add", ["b", "nowhere"], ["c"], name="loose"),
    ]
    text = refusal(tmp_path, proto(*nodes, ir_version=999))
    for part in (
        "IR version 999",
        "node 'too new' (Gelu): opset 17 has no such operator",
        "node 'made up' (Nonsense): opset 17 has no such operator",
        "node 'loose' (Add) uses 'nowhere', which nothing makes",
        "the output 'y' is made by nothing",
    ):
        assert part in text


def test_a_name_given_twice_is_refused(tmp_path: Path) -> None:
    made = proto()
    made.graph.input.append(made.graph.input[0])
    assert "2 inputs have the name 'x'" in refusal(tmp_path, made)
    with pytest.raises(ModelFileError, match=r"net\.onnx.*'x' is redeclared"):
        load_onnx(written(tmp_path, proto(relu("x", "x"), relu())))


def test_very_many_problems_are_cut_short(tmp_path: Path) -> None:
    nodes = [helper.make_node("Nonsense", ["x"], [f"v{i}"]) for i in range(100)]
    text = refusal(tmp_path, proto(*nodes, relu()))
    assert "and 70 more" in text
    assert len(text) < 5000


def in_branch(node: NodeProto) -> onnx.ModelProto:
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
    branch = helper.make_graph([node], "b", [], [out])
    made = proto(
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch, name="if")
    )
    made.graph.initializer.append(numpy_helper.from_array(np.array(True), "flag"))
    return made


def test_a_branch_may_use_values_from_outside(tmp_path: Path) -> None:
    assert len(load_onnx(written(tmp_path, in_branch(relu("x", "o")))).graph) == 1


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (lambda: relu("nowhere", "o"), "node 'at o' (Relu) uses 'nowhere'"),
        (lambda: helper.make_node("Nonsense", ["x"], ["o"]), "(Nonsense): opset 17 has no such"),
    ],
)
def test_branches_are_looked_at_as_well(
    tmp_path: Path, node: Callable[[], NodeProto], words: str
) -> None:
    assert words in refusal(tmp_path, in_branch(node()))


def test_nodes_in_the_wrong_order_are_sorted(tmp_path: Path) -> None:
    model = load_onnx(written(tmp_path, proto(relu("a", "y"), relu("x", "a"))))
    assert [node.name for node in model.graph] == ["at a", "at y"]
    np.testing.assert_array_equal(run_graph(model, X)[0], np.maximum(X, 0))


def test_nodes_in_a_circle_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, proto(relu("a", "y"), relu("y", "a")))
    with pytest.raises(ModelFileError, match="its nodes need each other in a circle"):
        load_onnx(path)


def test_external_data_is_read_in_place(tmp_path: Path) -> None:
    made = proto(helper.make_node("Add", ["x", "w"], ["y"]))
    made.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    path = tmp_path / "net.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = load_onnx(path)
    np.testing.assert_array_equal(run_graph(model, X)[0], X + 1)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelFileError, match=r"w\.bin.*is missing; put it beside the model"):
        load_onnx(path)


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in shared memory, if there is any: reading a hole there takes no page cache."""
    shared = Path("/dev/shm")
    parent = shared if os.access(shared, os.W_OK) else tmp_path
    with TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


def test_a_model_above_2_gb_loads(memory_folder: Path) -> None:
    size = 2**31 + 4096
    made = proto(helper.make_node("Gather", ["w", "i"], ["y"]))
    weight = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[size // 4])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    made.graph.initializer.append(numpy_helper.from_array(np.array([size // 4 - 1]), "i"))
    with open(memory_folder / "w.bin", "wb") as file:
        file.write(bytes(size // 60))  # fewer bytes would count as a hole that is no model
        file.seek(size - 4)  # the rest takes no room
        file.write(np.float32(7).tobytes())
    tensor = load_onnx(written(memory_folder, made)).graph.initializers["w"].const_value
    assert tensor is not None
    assert tensor.nbytes == size
    assert tensor.numpy()[-1] == 7


def test_a_number_that_shape_inference_dies_of_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-9)
    with pytest.raises(ModelFileError, match="'batch_dims' has -9, wanted 0 to 1000"):
        load_onnx(written(tmp_path, proto(node)))
