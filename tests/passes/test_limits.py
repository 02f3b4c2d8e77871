"""passes/limits.py: what every engine begins with is within the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from support.mindir_builder import Net
from support.onnx_graphs import F32, assert_same, feeds_for, model, node, results

from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.mindir import records as r
from mindspore_lite.passes.limits import MAX_WINDOW_STEPS, within

IMAGE = ("x", F32, (1, 3, 8, 8))


def pooled(op: str = "LpPool", **attributes: Any) -> onnx.ModelProto:
    return model([node(op, ["x"], ["y"], **attributes)], [IMAGE], ["y"], 18)


def test_the_nodes_of_a_file_are_counted_on_the_way_in(tmp_path: Path) -> None:
    nodes = [node("Neg", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(50)]
    path = tmp_path / "row.onnx"
    onnx.save(model(nodes, [IMAGE], ["v50"]), path)
    assert (
        source_of(ModelInput("ONNX", path, budget=Budget(max_nodes=50))).translate().graph.outputs
    )
    with pytest.raises(
        ModelFileError, match=r"row.onnx' cannot be loaded as ONNX: .* than the 49 "
    ):
        source_of(ModelInput("ONNX", path, budget=Budget(max_nodes=49))).translate()


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3000, 3000], "pads": [2999] * 4},
        {"kernel_shape": [1 << 40, 1 << 40]},
        {"kernel_shape": [20, 20], "pads": [1 << 40, 0, 0, 0]},
    ],
)
@pytest.mark.parametrize("op", ["LpPool", "MaxPool", "AveragePool"])
def test_windows_that_take_hours_on_a_small_input_are_refused(
    op: str, attributes: dict[str, Any]
) -> None:
    words = rf"node '{op}_y' \({op}\) would take \d+ steps .* at most {MAX_WINDOW_STEPS} are"
    with pytest.raises(ModelFileError, match=words):
        within(ir.from_proto(pooled(op, **attributes)), DEFAULT)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [8, 8]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "dilations": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_usual_windows_pass(attributes: dict[str, Any]) -> None:
    proto = pooled("LpPool", **attributes)
    assert_same(within(ir.from_proto(proto), DEFAULT), proto, feeds_for(proto))


def test_attributes_of_windows_that_make_no_sense_are_left_to_the_engine() -> None:
    proto = pooled("MaxPool", kernel_shape=[3], pads=[1], strides=[0])
    assert within(ir.from_proto(proto), DEFAULT).graph[0].op_type == "MaxPool"


def test_nodes_are_brought_into_order() -> None:
    proto = model([node("Neg", ["t"], ["y"]), node("Abs", ["x"], ["t"])], [IMAGE], ["y"])
    assert [n.op_type for n in within(ir.from_proto(proto), DEFAULT).graph] == ["Abs", "Neg"]


def test_nodes_that_need_each_other_are_refused() -> None:
    proto = model([node("Neg", ["t"], ["y"]), node("Abs", ["y"], ["t"])], [IMAGE], ["y"])
    with pytest.raises(ModelFileError, match="need each other in a circle"):
        within(ir.from_proto(proto), DEFAULT)


def table(size: int, opset: int = 17) -> onnx.FunctionProto:
    """A function that adds a constant of so many numbers."""
    value = onnx.numpy_helper.from_array(np.ones((size, 1, 1), np.float32))
    nodes = [node("Constant", [], ["k"], value=value), node("Add", ["a", "k"], ["b"])]
    return helper.make_function("f", "table", ["a"], ["b"], nodes, [helper.make_opsetid("", opset)])


def test_constants_of_functions_are_counted_with_each_call() -> None:
    names = ["x", *(f"v{i}" for i in range(9)), "y"]
    nodes = [node("table", [names[i]], [names[i + 1]], domain="f") for i in range(10)]
    proto = model(nodes, [IMAGE], ["y"], 17, {"f": 1}, [table(3)])
    assert_same(within(ir.from_proto(proto), DEFAULT), proto, feeds_for(proto))
    with pytest.raises(ModelFileError, match=r"would take 120 bytes once inlined, .* the 119 that"):
        within(ir.from_proto(proto), Budget(max_fold_bytes=119))


def test_a_function_of_another_opset_computes_what_it_did_in_its_own() -> None:
    nodes = [node("Clip", ["a"], ["t"], min=-1.0), node("Softmax", ["t"], ["b"])]
    old = helper.make_function("f", "old", ["a"], ["b"], nodes, [helper.make_opsetid("", 10)])
    proto = model([node("old", ["x"], ["y"], domain="f")], [IMAGE], ["y"], 17, {"f": 1}, [old])
    plain = model(nodes, [("a", *IMAGE[1:])], ["b"], 10)
    made = within(ir.from_proto(proto), DEFAULT)
    x = feeds_for(proto)["x"]
    np.testing.assert_allclose(
        results(made, {"x": x})["y"], results(ir.from_proto(plain), {"a": x})["b"], rtol=1e-5
    )


def test_a_function_of_another_opset_whose_operators_are_the_same_leaves_the_model_as_it_is() -> (
    None
):
    proto = model(
        [node("table", ["x"], ["y"], domain="f")], [IMAGE], ["y"], 17, {"f": 1}, [table(3, 15)]
    )
    assert within(ir.from_proto(proto), DEFAULT).opset_imports[""] == 17


def test_graphs_of_mindir_that_multiply_are_refused_before_they_are_expanded() -> None:
    """2**60 nodes in the end; the walk alone would take years to the bound that is set here."""
    graphs = []
    for i in range(60):
        net = Net(f"g{i}")
        y = net.input("v", (2, 3))
        for _ in range(2):
            y = net.call(r.GraphRef(f"g{i - 1}"), y) if i else net.call("Neg", y)
        graphs.append(net.graph(y))
    main = Net()
    y = main.call(r.GraphRef("g59"), main.input("x", (2, 3)))
    with pytest.raises(ModelFileError, match=f"more than {1 << 50} nodes"):
        from_mindir(main.model(y, functions=graphs), budget=Budget(max_nodes=1 << 50))


def test_translating_mindir_watches_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 99.0])
    monkeypatch.setattr("mindspore_lite.graph.walk.CpuClock", _clocks(times.__next__))
    net = Net()
    y = net.input("x", (2, 3))
    for _ in range(600):
        y = net.call("Neg", y)
    with pytest.raises(ModelFileError, match="more than 60 s of CPU time"):
        from_mindir(net.model(y), budget=Budget(max_seconds=60))


def _clocks(clock: Any) -> Any:
    from mindspore_lite.core.budget import CpuClock

    return lambda budget: CpuClock(budget, clock)
