"""graph/state.py: which parameters a network keeps from run to run, and how its graph says so."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.mindir_builder import Net

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.state import KEY, kept_in
from mindspore_lite.mindir import records as r

X = np.arange(3, dtype=np.float32)


def kept(model: r.Model) -> list[str]:
    found = kept_in(from_mindir(model, carries_state=True).metadata_props)
    return [one.name for one in found]


def ends(model: ir.Model) -> tuple[list[str], list[str]]:
    return [str(v.name) for v in model.graph.inputs], [str(v.name) for v in model.graph.outputs]


@pytest.mark.parametrize("writer", ["InplaceAddExt", "AssignAdd"])
def test_what_the_next_run_reads_gets_inputs_and_an_output(writer: str) -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call(writer, weight, x, u)
    made = from_mindir(net.model(net.call("Load", weight, u)), carries_state=True)
    (one,) = kept_in(made.metadata_props)
    inputs, outputs = ends(made)
    assert one.name == "w"
    assert inputs == ["x", one.first, one.before]
    assert outputs[1:] == [one.after]
    assert "w" in made.graph.initializers  # its first value, which an update can replace


def test_a_weight_assigned_before_it_is_read_is_not_kept() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call("Assign", weight, x, u)
    assert kept(net.model(net.call("Neg", net.call("Load", weight, u)))) == []


def test_a_weight_of_which_only_the_shape_is_read_is_not_kept() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call("InplaceCopy", weight, x, u)  # in the shape of w
    assert kept(net.model(net.call("Neg", net.call("Load", weight, u)))) == []


def test_a_parameter_that_only_another_one_reads_is_kept() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    hidden, shown, unseen = (net.weight(name, X) for name in ("hidden", "shown", "unseen"))
    before = net.call("Neg", net.call("Load", shown, u))
    net.call("AssignAdd", shown, net.call("Load", hidden, u), u)
    net.call("AssignAdd", hidden, x, u)
    net.call("AssignAdd", unseen, x, u)
    assert sorted(kept(net.model(before))) == ["hidden", "shown"]


def test_two_parameters_may_change_places() -> None:
    net = Net()
    net.input("x", (3,))
    u = net.monad()
    a, b = net.weight("a", X), net.weight("b", X + 1)
    old = net.call("TensorMove", net.call("Load", a, u))
    net.call("Assign", a, net.call("Load", b, u), u)
    net.call("Assign", b, old, u)
    made = from_mindir(net.model(net.call("Neg", net.call("Load", a, u))), carries_state=True)
    assert sorted(one.name for one in kept_in(made.metadata_props)) == ["a", "b"]


def test_a_number_that_an_operator_needs_at_the_build_cannot_be_kept() -> None:
    net = Net()
    x, u = net.input("x", (2, 3)), net.monad()
    axis = net.weight("axis", np.array([0], np.int64))
    total = net.call("ReduceSum", x, net.call("Load", axis, u), net.constant(False))
    net.call("Assign", axis, net.call("Add", net.call("Load", axis, u), net.constant(1)), u)
    with pytest.raises(UnsupportedOpError, match="axis must be constant"):
        from_mindir(net.model(total), carries_state=True)


def test_where_nothing_carries_it_the_network_is_refused() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call("AssignAdd", weight, x, u)
    with pytest.raises(UnsupportedOpError, match="changes its parameter 'w' and reads it"):
        from_mindir(net.model(net.call("Load", weight, u)))


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "7",
        '[{"name": "w"}]',
        '[{"bad": 1}]',
        "[1]",
        '[{"name": 1, "first": "f", "before": "b", "after": "a"}]',
    ],
)
def test_a_note_that_makes_no_sense_is_an_error(text: str) -> None:
    with pytest.raises(ModelFileError, match=r"mslite\.state"):
        kept_in({KEY: text})
