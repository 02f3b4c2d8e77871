"""bfloat16.py: a MindIR model in bfloat16 becomes a graph in float32 with a border."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import onnx_ir as ir
from support.mindir_builder import Net, tensor_type
from support.running import op_types, run_graph

from mindspore_lite.core import dtypes
from mindspore_lite.graph.bfloat16 import KEY, has_bfloat16, without_bfloat16
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r

BF16 = np.dtype(ml_dtypes.bfloat16)


def border(made: ir.Model) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(made.metadata_props[KEY])
    return found


def test_weights_inputs_results_and_constants_become_float32() -> None:
    net = Net()
    x = net.input("x", (2,), BF16)
    scaled = net.call(
        "Mul", x, net.weight("w", np.array([0.5, 2], BF16)), type=tensor_type((2,), BF16)
    )
    added = net.call("Add", scaled, net.constant(np.array(1, BF16)), type=tensor_type((2,), BF16),
                     scope="Default/sum")  # fmt: skip
    made = from_mindir(net.model(added))
    assert border(made) == {"inputs": {"x": "bfloat16"}, "outputs": {"Default/sum": "bfloat16"}}
    assert {v.dtype for v in made.graph.initializers.values()} == {ir.DataType.FLOAT}
    (y,) = run_graph(made, np.array([2, 4], np.float32))
    assert y.tolist() == [2, 9]


def test_outputs_are_told_apart_in_tuples_even_without_types() -> None:
    net = Net()
    x, z = net.input("x", (2,), BF16), net.input("z", (2,))
    first = net.call("Neg", x, type=tensor_type((2,), BF16))
    pair = net.tuple(net.call("Neg", z, type=tensor_type((2,))), first)
    last = net.call("TupleGetItem", pair, net.constant(-1))
    made = from_mindir(net.model(net.tuple(net.call("TupleGetItem", pair, net.constant(0)), last)))
    names = [str(v.name) for v in made.graph.outputs]
    assert border(made)["outputs"] == {names[1]: "bfloat16"}


def test_a_cast_to_bfloat16_rounds() -> None:
    net = Net()
    x = net.input("x", (1,))
    narrow = net.call("Cast", x, net.constant(45), type=tensor_type((1,), BF16))
    wide = net.call("Cast", narrow, net.constant(43), type=tensor_type((1,)))
    made = from_mindir(net.model(wide))
    assert border(made) == {"inputs": {}, "outputs": {}}
    (y,) = run_graph(made, np.array([1.001], np.float32))
    assert y.tolist() == [1.0]


def test_a_constant_is_rounded_at_once() -> None:
    net = Net()
    narrow = net.call("Cast", net.constant(np.array([1.001], np.float32)), net.constant(45),
                      type=tensor_type((1,), BF16))  # fmt: skip
    made = from_mindir(net.model(net.call("Add", net.input("x", (1,), BF16), narrow)))
    assert op_types(made) == ["Add"]
    assert run_graph(made, np.zeros(1, np.float32))[0].tolist() == [1.0]


def test_dtype_arguments_of_old_files_are_understood() -> None:
    net = Net()
    x, narrow = net.input("x", (1,), np.int32), net.constant(dtypes.BY_NAME["bfloat16"])
    made = from_mindir(net.model(net.call("Cast", x, narrow, type=tensor_type((1,), BF16))))
    assert border(made)["outputs"] == {str(made.graph.outputs[0].name): "bfloat16"}
    assert run_graph(made, np.array([257], np.int32))[0].tolist() == [256.0]


def test_attributes_and_called_graphs_are_converted_too() -> None:
    inner = Net("inner")
    a = inner.input("a", (1,), BF16)
    function = inner.graph(
        inner.call("Neg", a, type=tensor_type((1,), BF16), value=np.ones(1, BF16))
    )
    net = Net()
    called = net.call(r.GraphRef("inner"), net.input("x", (1,), np.int32))
    model = net.model(called, functions=[function])
    assert has_bfloat16(model)
    plain = without_bfloat16(model)
    assert not has_bfloat16(plain)
    (node,) = plain.functions["inner"].nodes
    assert node.target.attributes["value"].dtype.name == "float32"  # type: ignore[union-attr]


def test_models_without_it_get_no_border() -> None:
    net = Net()
    model = net.model(net.call("Neg", net.input("x", (1,))))
    assert not has_bfloat16(model)
    assert KEY not in from_mindir(model).metadata_props
