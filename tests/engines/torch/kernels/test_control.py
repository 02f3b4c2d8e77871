"""kernels/control.py: bodies put in place where their steps are known, else run at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper
from support.onnx_graphs import BOOL, F32, I64, body, model, node
from support.torch_nodes import CPU, as_arrays, run_lowered

from mindspore_lite.engines.torch.kernels import control
from mindspore_lite.engines.torch.kernels.lower import Lowered, lower

X = ("x", F32, (2,))
ANY = ("y", F32, None)


def lowered(proto: Any, shapes: Any = None) -> Lowered:
    return lower(ir.from_proto(proto), shapes, CPU)


def both(proto: Any, given: Sequence[np.ndarray]) -> tuple[Lowered, list[Any]]:
    """The static graph, and what it gives, which is what the dynamic one gives too."""
    static = lowered(proto, [one.shape for one in given])
    found = [as_arrays(one) for one in run_lowered(static, given)]
    again = [as_arrays(one) for one in run_lowered(lowered(proto), given)]
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)
    return static, found


def doubling(known_end: bool = True) -> Any:
    """A body: v -> v + v, and v itself as scan output; it ends by the condition that it is given.

    `w`, of the outer graph, is added to the scan output.
    """
    condition = node("Identity", ["c"], ["c_out"])
    if not known_end:
        nodes = [
            node("ReduceSum", ["v"], ["s"], keepdims=0),
            node("Less", ["s", "limit"], ["c_out"]),
        ]
    else:
        nodes = [condition]
    nodes += [node("Add", ["v", "v"], ["v_out"]), node("Add", ["v", "w"], ["scan"])]
    return body(
        nodes,
        [("i", I64, ()), ("c", BOOL, ()), ("v", F32, (2,))],
        [("c_out", BOOL, ()), ("v_out", F32, (2,)), ("scan", F32, (2,))],
    )


def loop(trips: int, **more: Any) -> Any:
    made = node("Loop", ["m", "", "x"], ["y", "z"], body=doubling(**more))
    weights = {"m": np.array(trips), "w": np.float32(10), "limit": np.float32(20)}
    return model([made], [X], [ANY, ("z", F32, None)], **weights)


def test_a_loop_of_known_length_is_put_in_place() -> None:
    static, (y, z) = both(loop(3), [np.array([1, 2], np.float32)])
    assert static.dynamic == []
    assert static.bodies == {}
    assert y.tolist() == [8, 16]
    assert z.tolist() == [[11, 12], [12, 14], [14, 18]]


def test_a_loop_without_steps_gives_what_it_was_given() -> None:
    static, (y, z) = both(loop(0), [np.array([1, 2], np.float32)])
    assert static.dynamic == []
    assert y.tolist() == [1, 2]
    assert z.shape == (0, 2)


def test_a_long_loop_is_run_at_run_time() -> None:
    static, (y, z) = both(loop(control.MOST_STEPS + 1), [np.zeros(2, np.float32)])
    assert "many steps" in static.dynamic[0]
    assert list(static.bodies) == ["body0"]
    assert y.tolist() == [0, 0]
    assert z.shape == (control.MOST_STEPS + 1, 2)


def test_a_loop_that_data_ends_is_run_at_run_time_and_leaves_nothing_of_the_trial() -> None:
    static, (y, z) = both(loop(9, known_end=False), [np.array([1, 2], np.float32)])
    (reason,) = static.dynamic
    assert reason.startswith("Loop 'Loop_y'")
    assert y.tolist() == [16, 32]
    assert len(z) == 4
    calls = [n for n in static.module.graph.nodes if n.op == "call_function"]
    assert [n.target.__name__ for n in calls] == ["run_loop", "getitem", "getitem"]


def test_too_many_nodes_are_not_put_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MOST_NODES", 3)
    static, (y, _) = both(loop(3), [np.array([1, 2], np.float32)])
    assert static.dynamic
    assert y.tolist() == [8, 16]


def test_a_while_loop_with_a_counter_is_put_in_place() -> None:
    """while i < 3: v = concat(v, v), whose shape changes."""
    inner = body(
        [
            node("Add", ["n", "one"], ["n_out"]),
            node("Less", ["n_out", "three"], ["c_out"]),
            node("Concat", ["v", "v"], ["v_out"], axis=0),
        ],
        [("i", I64, ()), ("c", BOOL, ()), ("n", I64, ()), ("v", F32, None)],
        [("c_out", BOOL, ()), ("n_out", I64, ()), ("v_out", F32, None)],
    )
    made = node("Loop", ["", "yes", "zero", "x"], ["n", "y"], body=inner)
    weights = {"yes": np.array(True), "zero": np.array(0), "one": np.array(1), "three": np.array(3)}
    static, (n, y) = both(
        model([made], [X], [("n", I64, ()), ANY], **weights), [np.array([1, 2], np.float32)]
    )
    assert static.dynamic == []
    assert (n.item(), y.shape) == (3, (16,))


def nested(trips: Any) -> Any:
    """A loop in a loop whose body uses values of both outer graphs."""
    innermost = body(
        [
            node("Add", ["u", "v"], ["sum"]),
            node("Add", ["sum", "x"], ["u_out"]),
            node("Identity", ["d"], ["d_out"]),
        ],
        [("j", I64, ()), ("d", BOOL, ()), ("u", F32, (2,))],
        [("d_out", BOOL, ()), ("u_out", F32, (2,))],
    )
    outer = body(
        [
            node("Loop", ["two", "", "v"], ["v_out"], body=innermost),
            node("Identity", ["c"], ["c_out"]),
        ],
        [("i", I64, ()), ("c", BOOL, ()), ("v", F32, (2,))],
        [("c_out", BOOL, ()), ("v_out", F32, (2,))],
    )
    made = node("Loop", ["m", "", "x"], ["y"], body=outer)
    inputs = [X, ("m", I64, ())] if trips is None else [X]
    weights = {"two": np.array(2)} | ({} if trips is None else {"m": np.array(trips)})
    return model([made], inputs, [ANY], **weights)


def test_bodies_in_bodies_see_the_values_of_all_outer_graphs() -> None:
    x = np.array([1, 2], np.float32)
    static, (y,) = both(nested(2), [x])
    assert static.dynamic == []
    assert y.tolist() == [17, 34]  # v -> 3 v + 2 x, twice
    dynamic, (z,) = both(nested(None), [x, np.array(2)])
    assert "data" in dynamic.dynamic[0]
    assert z.tolist() == y.tolist()


def branches(known: bool | None) -> Any:
    then = body([node("Add", ["x", "w"], ["a"])], [], [("a", F32, None)])
    other = body([node("Concat", ["x", "x"], ["b"], axis=0)], [], [("b", F32, None)])
    made = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    inputs = [X, ("c", BOOL, ())] if known is None else [X]
    weights = {"w": np.float32(1)} | ({} if known is None else {"c": np.array(known)})
    return model([made], inputs, [ANY], **weights)


@pytest.mark.parametrize("taken", [True, False])
def test_a_known_branch_is_put_in_place_and_another_is_chosen_at_run_time(taken: bool) -> None:
    x = np.array([1, 2], np.float32)
    static, (y,) = both(branches(taken), [x])
    assert static.dynamic == []
    assert y.tolist() == ([2, 3] if taken else [1, 2, 1, 2])
    found, (z,) = both(branches(None), [x, np.array(taken)])
    assert found.dynamic == ["If 'If_y' depends on data"]
    assert z.tolist() == y.tolist()


def test_a_weight_may_be_called_like_a_body() -> None:
    then = body([node("Identity", ["a"], ["t"])], [], [("t", F32, None)])
    other = body([node("Identity", ["x"], ["e"])], [], [("e", F32, None)])
    nodes = [
        node("MatMul", ["x", "body0"], ["a"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    x = np.ones((1, 3), np.float32)
    proto = model(nodes, [("x", F32, (1, 3)), ("c", BOOL, ())], ["y"], body0=np.full((3, 3), x[0]))
    both(proto, [x, np.array(True)])


def running_sums(length: int, **attributes: Any) -> tuple[Any, np.ndarray]:
    inner = body(
        [node("Add", ["s", "part"], ["s_out"]), node("Identity", ["s_out"], ["scan"])],
        [("s", F32, (2,)), ("part", F32, (2,))],
        [("s_out", F32, (2,)), ("scan", F32, (2,))],
    )
    made = node("Scan", ["x", "rows"], ["y", "z"], body=inner, num_scan_inputs=1, **attributes)
    rows = np.arange(length * 2, dtype=np.float32).reshape(length, 2)
    proto = model([made], [X, ("rows", F32, ("n", 2))], [ANY, ("z", F32, None)])
    return proto, rows


@pytest.mark.parametrize("length", [0, 3, control.MOST_STEPS + 1])
def test_a_scan_is_put_in_place_if_it_is_short(length: int) -> None:
    proto, rows = running_sums(length)
    static, (y, z) = both(proto, [np.zeros(2, np.float32), rows])
    assert bool(static.dynamic) == (length > control.MOST_STEPS)
    np.testing.assert_array_equal(y, rows.sum(0))
    np.testing.assert_array_equal(z, rows.cumsum(0))


def test_a_scan_goes_backwards_and_along_other_axes() -> None:
    backwards = {"scan_input_directions": [1], "scan_output_directions": [1]}
    proto, rows = running_sums(3, scan_output_axes=[1], **backwards)
    _, (_, z) = both(proto, [np.zeros(2, np.float32), rows])
    np.testing.assert_array_equal(z, rows[::-1].cumsum(0)[::-1].T)


def test_a_sequence_is_mapped_item_by_item() -> None:
    inner = body([node("Add", ["one", "w"], ["sum"])], [("one", F32, None)], [("sum", F32, None)])
    nodes = [
        node("SequenceConstruct", ["x", "x", "x"], ["items"]),
        node("SequenceMap", ["items"], ["mapped"], body=inner),
        node("ConcatFromSequence", ["mapped"], ["y"], axis=0),
    ]
    proto = model(nodes, [X], [ANY], w=np.float32(1))
    static, (y,) = both(proto, [np.array([1, 2], np.float32)])
    assert static.dynamic == []
    assert y.tolist() == [2, 3] * 3


def test_a_body_for_a_sequence_of_any_length_is_run_at_run_time() -> None:
    items = helper.make_tensor_sequence_value_info("items", TensorProto.FLOAT, None)
    inner = body([node("Add", ["one", "x"], ["sum"])], [("one", F32, None)], [("sum", F32, None)])
    nodes = [
        node("SequenceMap", ["items"], ["mapped"], body=inner),
        node("ConcatFromSequence", ["mapped"], ["y"], axis=0),
    ]
    proto = model(nodes, [X], [ANY])
    proto.graph.input.append(items)
    found = lowered(proto)
    (y,) = run_lowered(found, [np.ones(2, np.float32), [np.zeros(2, np.float32)] * 2])
    assert "SequenceMap" in found.dynamic[-1]
    assert torch.equal(y, torch.ones(4))
