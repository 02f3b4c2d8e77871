"""weights/resolve.py: which weights of a graph the names of a list mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from support.mindir_builder import Net
from support.models import DIGITS
from support.onnx_graphs import BOOL, F32, body, model, node

from mindspore_lite.errors import EngineError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.parameters import Parameter
from mindspore_lite.mindir.read import read_file
from mindspore_lite.weights.resolve import Found, resolve


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def loaded(proto: onnx.ModelProto) -> ir.Model:
    return ir.serde.deserialize_model(proto)


def exported() -> ir.Model:
    """Layers as PyTorch's older exporter names them: products lose the names of their weights."""
    return loaded(
        model(
            [
                node("MatMul", ["x", "onnx::MatMul_1"], ["a"], name="/enc/layers.3/fc1/MatMul"),
                node("Add", ["a", "enc.layers.3.fc1.bias"], ["b"], name="/enc/layers.3/fc1/Add"),
                node("MatMul", ["b", "onnx::MatMul_2"], ["c"], name="/mlp/mlp.0/MatMul"),
                node("Transpose", ["tied"], ["t"], name="/head/Transpose"),
                node("MatMul", ["c", "t"], ["d"], name="/head/MatMul"),
                node("Mul", ["d", "scale"], ["e"], name="/head/Mul"),
                node("Gemm", ["e", "q.weight", "q.bias"], ["y"], name="/attn/Gemm", transB=1),
                node("MatMul", ["e", "k.weight"], ["z"], name="/attn/MatMul"),
                node("LSTM", ["s", "W", "R"], ["h"], name="/rnn/LSTM", hidden_size=4),
            ],
            [("x", F32, [2, 4]), ("s", F32, [1, 1, 4])],
            ["y", "z", "h"],
            **{
                "onnx::MatMul_1": ones(4, 4),
                "enc.layers.3.fc1.bias": ones(4),
                "onnx::MatMul_2": ones(4, 4),
                "tied": ones(4, 4),
                "scale": ones(1, 4),
                "q.weight": ones(4, 4),
                "q.bias": ones(1, 4),
                "k.weight": ones(4, 4),
                "W": ones(1, 16, 4),
                "R": ones(1, 16, 4),
                "nobody's": ones(4, 4),
            },
        )
    )


def means(made: ir.Model, name: str, node: str = "") -> str:
    (found,) = resolve(made, [(name, node)])
    return found.name


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("q.weight", "q.weight"),
        ("enc.layers.3.fc1.bias", "enc.layers.3.fc1.bias"),  # by its own name, of any rank
        ("/enc/layers.3/fc1/MatMul", "onnx::MatMul_1"),
        ("a", "onnx::MatMul_1"),  # a tensor that a product makes
        ("/enc/layers.3/fc1", "onnx::MatMul_1"),
        ("enc.layers.3.fc1.weight", "onnx::MatMul_1"),
        ("base_model.model.enc.layers.3.fc1.lora_A.weight", "onnx::MatMul_1"),
        ("/mlp/mlp.0", "onnx::MatMul_2"),
        ("mlp.0.weight", "onnx::MatMul_2"),
        ("/head", "tied"),  # the product's, through its transposition, not the factor's
        ("/head/MatMul", "tied"),
        ("/head/Transpose", "tied"),
        ("/head/Mul", "scale"),
        ("/attn/Gemm", "q.weight"),  # its bias has two dims as well
    ],
)
def test_a_name_means_a_weight(name: str, weight: str) -> None:
    assert means(exported(), name) == weight


@pytest.mark.parametrize(
    ("node", "weight"),
    [("/head/MatMul", "tied"), ("/mlp/mlp.0", "onnx::MatMul_2"), ("k.weight", "k.weight")],
)
def test_a_second_column_decides(node: str, weight: str) -> None:
    (found,) = resolve(exported(), [("q.weight", node)])
    assert found.name == weight
    assert found.aliases[0] == "q.weight"


def test_a_weight_of_that_very_name_comes_before_a_node() -> None:
    made = exported()
    made.graph.initializers["k.weight"].name = "/head/MatMul"
    assert means(made, "/head/MatMul") == "/head/MatMul"


def test_callers_may_use_the_names_of_list_node_and_scope() -> None:
    entries = [("fc1", "/enc/layers.3/fc1"), ("k.weight", ""), ("tied", "")]
    assert resolve(exported(), entries) == [
        Found(
            "onnx::MatMul_1",
            ("fc1", "/enc/layers.3/fc1", "/enc/layers.3/fc1/MatMul"),
            Parameter("enc.layers.3.fc1.weight", True),
        ),
        # the scope stands for another weight as well
        Found("k.weight", ("/attn/MatMul",), Parameter("k.weight", False)),
        Found(
            "tied", ("/head/Transpose", "/head", "/head/MatMul"), Parameter("head.weight", False)
        ),
    ]


def test_entries_that_mean_one_weight_are_one() -> None:
    entries = [("enc.layers.3.fc1.weight", ""), ("q.weight", ""), ("up", "/enc/layers.3/fc1")]
    first, second = resolve(exported(), entries)
    assert (first.name, second.name) == ("onnx::MatMul_1", "q.weight")
    assert {"enc.layers.3.fc1.weight", "up"} < set(first.aliases)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("/attn", ""), "'/attn': could be any of 'k.weight', 'q.weight'"),
        (("/rnn/LSTM", ""), "could be any of 'R', 'W'"),
        (("q.weigth", ""), "no weight, node or tensor 'q.weigth', but 'q.weight'"),
        (("q", "/atn/Gemm"), "'q,/atn/Gemm': the model has no .* '/atn/Gemm', but '/attn/Gemm'"),
        (("nothing", ""), "no weight, node or tensor 'nothing'"),
        (("x", ""), "no weight, node or tensor 'x'"),
        (("", ""), "no weight, node or tensor ''"),
        (("/enc/layers.3/fc1/Add", ""), "stands for no weight of two dims or more"),
        (("nobody's", ""), "the graph does not use this weight"),
    ],
)
def test_what_is_unclear_is_refused(entry: tuple[str, str], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        resolve(exported(), [entry])


def test_all_problems_are_told_at_once_and_how_to_list_names() -> None:
    entries = [("q.weight", ""), *((f"wrong{i}", "") for i in range(12))]
    with pytest.raises(EngineError) as caught:
        resolve(exported(), entries)
    text = str(caught.value)
    assert text.startswith("12 of 13 names of weights that may change do not fit the model: ")
    assert all(f"'wrong{i}'" in text for i in range(10))
    assert "; and 2 more. `mslite inspect MODEL --weights" in text


def test_a_name_of_two_weights_is_refused() -> None:
    with pytest.raises(EngineError, match=r"'w' is a name of two .* 'q.weight' and 'k.weight'"):
        resolve(exported(), [("w", "/attn/Gemm"), ("w", "/attn/MatMul")])
    with pytest.raises(EngineError, match=r"'k\.weight' is a name of two"):
        resolve(exported(), [("k.weight", "/attn/Gemm"), ("k.weight", "")])


def gathered(tensor: Any) -> ir.Model:
    """A model with a table of some type."""
    proto = model([node("Gather", ["table", "i"], ["y"])], [("i", TensorProto.INT64, [2])], ["y"])
    proto.graph.initializer.append(tensor)
    return loaded(proto)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.INT4, TensorProto.STRING])
def test_a_type_without_a_numpy_counterpart_is_refused(kind: int) -> None:
    values = [b"a", b"b"] if kind == TensorProto.STRING else [0, 1]
    made = gathered(helper.make_tensor("table", kind, [1, 2], values))
    with pytest.raises(EngineError, match=r"'table' is of type (FLOAT8|INT4|STRING)"):
        resolve(made, [("table", "")])


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.BOOL])
def test_every_other_type_may_change(kind: int) -> None:
    assert means(gathered(helper.make_tensor("table", kind, [1, 2], [0, 1])), "table") == "table"


def test_a_weight_in_a_constant_node_becomes_an_initializer() -> None:
    constant = helper.make_node(
        "Constant", [], ["w"], value=helper.make_tensor("", F32, [2, 2], range(4))
    )
    proto = model([constant, node("MatMul", ["x", "w"], ["y"])], [("x", F32, [1, 2])], ["y"])
    made = loaded(proto)
    assert means(made, "MatMul_y") == "w"
    assert made.graph.initializers["w"].const_value.numpy().tolist() == [[0, 1], [2, 3]]


def test_a_weight_inside_a_branch_is_refused() -> None:
    inside = body([node("MatMul", ["x", "w"], ["r"])], [], [("r", F32, None)], w=ones(2, 2))
    outside = body([node("MatMul", ["x", "v"], ["s"])], [], [("s", F32, None)])
    choice = node("If", ["c"], ["y"], then_branch=inside, else_branch=outside)
    made = loaded(
        model([choice], [("c", BOOL, []), ("x", F32, [1, 2])], ["y"], v=ones(2, 2))
    )  # fmt: skip
    for name in ("w", "MatMul_r"):
        with pytest.raises(EngineError, match="lies inside a branch or a loop"):
            resolve(made, [(name, "")])
    assert means(made, "MatMul_s") == "v"  # used inside, kept outside


def test_a_complex_weight_is_named_by_its_parts() -> None:
    net = Net()
    x = net.input("x", (2, 2), np.complex64)
    made = from_mindir(
        net.model(net.call("Add", x, net.weight("w", np.ones((2, 2), np.complex64))))
    )
    with pytest.raises(EngineError, match=r"it is complex; name its parts, 'w.real' and 'w.imag'"):
        resolve(made, [("w", "")])
    assert [found.name for found in resolve(made, [("w.real", ""), ("w.imag", "")])] == [
        "w.real",
        "w.imag",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "head.weight",
        "Default/head-Dense/MatMul-op0",  # whose bias has joined it
        "Default/head-Dense/BiasAdd-op0",
        "Default/head-Dense",
    ],
)
def test_weights_of_mindspore_are_found_by_parameter_and_operator(name: str) -> None:
    assert means(from_mindir(read_file(DIGITS)), name) == "head.weight"


def test_an_operator_that_became_several_nodes_is_found() -> None:
    """The translation calls the second one `name.1`, and so on."""
    nodes = [node("Relu", ["x"], ["a"], name="op"), node("MatMul", ["a", "w"], ["y"], name="op.1")]
    made = loaded(model(nodes, [("x", F32, [1, 2])], ["y"], w=ones(2, 2)))
    assert means(made, "op") == "w"


def test_a_parameter_that_was_merged_on_export_is_refused() -> None:
    proto = model(
        [
            node("Conv", ["x", "onnx::Conv_1", "b"], ["a"], name="/net/conv/Conv"),
            node("Conv", ["a", "top.weight", "b"], ["y"], name="node_Conv_2"),
        ],
        [("x", F32, [1, 2, 4, 4])],
        ["y"],
        **{"onnx::Conv_1": ones(2, 2, 1, 1), "top.weight": ones(2, 2, 1, 1), "b": ones(2)},
    )
    entry = proto.graph.node[1].metadata_props.add()
    entry.key, entry.value = "pkg.onnxscript.rewriter.rule_name", "FuseBatchNormIntoConv"
    for name, user in (("net.conv.weight", "/net/conv/Conv"), ("top.weight", "node_Conv_2")):
        with pytest.raises(EngineError, match=f"merged this parameter .* or name '{user}'"):
            resolve(loaded(proto), [(name, "")])
    names = ("onnx::Conv_1", "/net/conv", "node_Conv_2")
    found = [one.name for name in names for one in resolve(loaded(proto), [(name, "")])]
    assert found == ["onnx::Conv_1", "onnx::Conv_1", "top.weight"]


def tied() -> ir.Model:
    """Embedding and head that share a parameter, as PyTorch's newer exporter writes them."""
    proto = model(
        [
            node("Gather", ["head.weight", "i"], ["a"]),
            node("MatMul", ["a", "val_0"], ["y"], name="node_linear"),
        ],
        [("i", TensorProto.INT64, [3])],
        ["y"],
        **{"head.weight": ones(7, 6), "val_0": ones(6, 7)},
    )
    for key, value in (
        ("name_scopes", "['', 'head', 'linear']"),
        ("fx_node", "call[target=torch.ops.aten.linear.default](args = (%e, %p_head_weight))"),
    ):
        entry = proto.graph.node[1].metadata_props.add()
        entry.key, entry.value = f"pkg.torch.onnx.{key}", value
    return loaded(proto)


def test_a_parameter_in_two_weights_must_be_listed_with_both() -> None:
    with pytest.raises(EngineError, match=r"'head\.weight' is shared .*list 'val_0' as well"):
        resolve(tied(), [("head.weight", "")])
    found = resolve(tied(), [("head.weight", ""), ("val_0", "")])
    assert [one.name for one in found] == ["head.weight", "val_0"]
    assert [one.name for one in resolve(tied(), [("val_0", "")])] == ["val_0"]


def test_a_parameter_with_a_name_of_its_own_kind_is_found() -> None:
    proto = model(
        [node("MatMul", ["x", "val_0"], ["y"], name="node_linear")],
        [("x", F32, [3, 4])],
        ["y"],
        val_0=ones(4, 12),
    )
    for key, value in (
        ("name_scopes", "['', 'attn', 'linear']"),
        ("fx_node", "call[target=torch.ops.aten.linear.default](args = (%x, %p_attn_in_proj))"),
    ):
        entry = proto.graph.node[0].metadata_props.add()
        entry.key, entry.value = f"pkg.torch.onnx.{key}", value
    (found,) = resolve(loaded(proto), [("attn.in_proj", "")])
    assert (found.name, found.parameter) == ("val_0", Parameter("attn.in_proj", True))
