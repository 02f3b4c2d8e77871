"""graph/parameters.py: which parameter each weight was, and how it lies, in all ways of export."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, model, node

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.parameters import Parameter, module_of, parameters_of, scope_of
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.passes.infer_shapes import infer_shapes


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def used(op: str, name: str = "/enc/fc/Op", *moves: str, **attributes: Any) -> Parameter:
    """What a weight is that goes through some nodes to an operator."""
    steps, weight = [], "onnx::W_1"
    for at, move in enumerate(moves):
        inputs = [weight, "shape"] if move == "Reshape" else [weight]
        steps.append(node(move, inputs, [f"m{at}"]))
        weight = f"m{at}"
    made = model(
        [*steps, node(op, ["x", weight], ["y"], name=name, **attributes)],
        [("x", F32, [4, 4])],
        ["y"],
        **{"onnx::W_1": ones(4, 4), "shape": np.array([4, 4])},
    )
    return parameters_of(ir.serde.deserialize_model(made))["onnx::W_1"]


@pytest.mark.parametrize(
    ("found", "transposed"),
    [
        (used("MatMul"), True),
        (used("MatMul", "/enc/fc/Op", "Transpose"), False),
        (used("MatMul", "/enc/fc/Op", "Transpose", "Identity", "Transpose"), True),
        (used("MatMul", "/enc/fc/Op", "Reshape"), None),
        (used("Gemm", transB=1), False),
        (used("Gemm"), True),
        (used("Gemm", "/enc/fc/Op", "Transpose", transB=1), True),
    ],
)
def test_the_nodes_around_a_weight_tell_how_it_lies(
    found: Parameter, transposed: bool | None
) -> None:
    assert found == Parameter("enc.fc.weight", transposed)


def test_a_conv_weight_that_lost_its_name_is_no_parameter_any_more() -> None:
    assert used("Conv") == Parameter("", False)


def test_a_guess_that_fits_two_weights_is_none() -> None:
    made = model(
        [
            node("MatMul", ["x", "onnx::MatMul_1"], ["a"], name="/m/MatMul"),
            node("MatMul", ["a", "onnx::MatMul_2"], ["y"], name="/m/MatMul_1"),
        ],
        [("x", F32, [4, 4])],
        ["y"],
        **{"onnx::MatMul_1": ones(4, 4), "onnx::MatMul_2": ones(4, 4)},
    )
    found = parameters_of(ir.serde.deserialize_model(made))
    assert set(found.values()) == {Parameter("", True)}


def test_a_weight_merged_with_a_batch_norm_keeps_its_name_alone() -> None:
    made = model(
        [node("Conv", ["x", "c.weight", "c.bias"], ["y"], name="node_Conv_8")],
        [("x", F32, [1, 2, 4, 4])],
        ["y"],
        **{"c.weight": ones(3, 2, 1, 1), "c.bias": ones(3)},
    )
    assert parameters_of(ir.serde.deserialize_model(made))["c.weight"].name == "c.weight"
    entry = made.graph.node[0].metadata_props.add()
    entry.key, entry.value = "pkg.onnxscript.rewriter.rule_name", "FuseBatchNormIntoConv"
    loaded = ir.serde.deserialize_model(made)
    assert set(parameters_of(loaded).values()) == {Parameter()}
    infer_shapes(loaded)
    again = from_mindir(to_mindir(loaded).model)
    assert parameters_of(again)["c.weight"] == Parameter()


def test_without_a_module_or_a_product_nothing_is_known() -> None:
    assert used("MatMul", "MatMul_3") == Parameter()
    assert used("Add") == Parameter()


def test_uses_that_disagree_leave_the_layout_open() -> None:
    steps = [
        node("MatMul", ["x", "w"], ["h"], name="/a/MatMul"),
        node("Gemm", ["h", "w"], ["y"], name="/b/Gemm", transB=1),
    ]
    made = model(steps, [("x", F32, [4, 4])], ["y"], w=ones(4, 4))
    found = parameters_of(ir.serde.deserialize_model(made))["w"]
    assert (found.name in ("a.weight", "b.weight"), found.transposed) == (True, None)


def test_metadata_that_makes_no_sense_says_nothing() -> None:
    made = ir.serde.deserialize_model(
        model([node("MatMul", ["x", "w"], ["y"])], [("x", F32, [4, 4])], ["y"], w=ones(4, 4))
    )
    (step,) = made.graph
    for text in ("", "[", "[]", "['']", "['', '']", "[" * 50_000, "', '" * 50_000):
        step.metadata_props["pkg.torch.onnx.name_scopes"] = text
        step.metadata_props["pkg.torch.onnx.fx_node"] = text
        assert isinstance(scope_of(step), str)
        assert parameters_of(made)["w"].transposed is not False
    made.graph.initializers["w"].metadata_props["mslite.parameter"] = "sideways fc.weight"
    assert parameters_of(made)["w"].name != "fc.weight"


def test_modules_that_repeat_their_row_are_written_once() -> None:
    assert module_of("/net/net.0/fc") == "net.0.fc"
    assert module_of("/input_blocks.1/input_blocks.1.1/proj") == "input_blocks.1.1.proj"


# --- networks of PyTorch --------------------------------------------------------------------------

torch = pytest.importorskip("torch", exc_type=ImportError)


class Attention(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.to_q = torch.nn.Linear(8, 8, bias=False)
        self.to_out = torch.nn.ModuleList([torch.nn.Linear(8, 8)])
        self.wide = torch.nn.Linear(8, 16)
        self.turned = torch.nn.Parameter(torch.randn(16, 4))

    def forward(self, x: Any) -> Any:
        return self.wide(self.to_out[0](self.to_q(x))) @ self.turned


class Network(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 2, 3, padding=1)
        self.blocks = torch.nn.Sequential(Attention())
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.conv(x)).mean(dim=(1, 2)))


class Wrapper(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Any) -> Any:
        return self.net(x)


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(0)
    return Network().eval()


@pytest.fixture(scope="module", params=["legacy", "wrapped", "dynamo", "unoptimised"])
def exported(request: pytest.FixtureRequest, network: Any, tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    given = Wrapper(network) if request.param == "wrapped" else network
    dynamo = request.param in ("dynamo", "unoptimised")
    more = {"external_data": False, "optimize": request.param == "dynamo"} if dynamo else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            given, (torch.randn(1, 2, 8, 8),), path, dynamo=dynamo, verbose=False, **more
        )
    return Path(path)


def check(made: ir.Model, network: Any) -> None:
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    found = {}
    for name, parameter in parameters_of(made).items():
        key = parameter.name.removeprefix("net.")
        if key not in state:
            continue
        held = made.graph.initializers[name].const_value
        assert held is not None
        wanted = state[key].T if parameter.transposed else state[key]
        np.testing.assert_array_equal(held.numpy(), wanted, err_msg=key)
        found[key] = parameter.transposed
    assert found.keys() == state.keys()
    assert None not in found.values()


def test_every_parameter_of_an_export_is_found_as_it_lies(exported: Path, network: Any) -> None:
    check(source_of(ModelInput("ONNX", exported)).translate(), network)


def test_a_mindir_file_keeps_what_was_found(exported: Path, network: Any) -> None:
    made = source_of(ModelInput("ONNX", exported)).translate()
    infer_shapes(made)
    check(from_mindir(to_mindir(made).model), network)
