"""passes/fold_branches.py: questions whose answer is known."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import (
    BOOL,
    F32,
    I64,
    assert_same,
    body,
    feeds_for,
    model,
    node,
    ops,
    results,
)

from mindspore_lite.passes.fold_branches import fold_branches
from mindspore_lite.passes.optimise import optimise

X = ("x", F32, (2, 3))
K = np.full(3, 2, np.float32)


def choice(condition: str = "c") -> list:
    yes = body([node("Mul", ["x", "k"], ["t"])], [], [("t", F32, None)], k=K)
    no = body([node("Add", ["x", "k"], ["t"])], [], [("t", F32, None)], k=K * 2)
    return [
        node("If", [condition], ["a"], then_branch=yes, else_branch=no),
        node("Neg", ["a"], ["y"]),
    ]


@pytest.mark.parametrize("answer", [True, False])
def test_the_branch_that_is_taken_remains(answer: bool) -> None:
    old = model(choice(), [X], ["y"], c=np.array(answer), k_=K)
    new = ir.from_proto(old)
    assert fold_branches(new) == 1
    assert ops(new) == ["Mul" if answer else "Add", "Identity", "Neg"]
    assert_same(new, old, feeds_for(old))
    optimise(new, "general")
    assert ops(new) == ["Mul" if answer else "Add", "Neg"]
    assert list(new.graph.initializers) == ["k"]
    assert_same(new, old, feeds_for(old))


def test_an_open_question_stays() -> None:
    old = model(choice(), [X, ("c", BOOL, ())], ["y"])
    new = ir.from_proto(old)
    assert fold_branches(new) == 0
    assert ops(new) == ["If", "Neg"]


@pytest.mark.parametrize("answer", [True, False])
def test_results_that_leave_the_model_keep_their_names(answer: bool) -> None:
    first = [node("Neg", ["x"], ["t"]), node("Abs", ["x"], ["w"])]
    yes = body(first, [], [("t", F32, None), ("w", F32, None)])
    no = body([node("Relu", ["x"], ["u"]), node("Exp", ["u"], ["v"])], [],
              [("u", F32, None), ("v", F32, None)])  # fmt: skip
    old = model([node("If", ["c"], ["a", "b"], then_branch=yes, else_branch=no)], [X], ["a", "b"],
                c=np.array([answer]))  # fmt: skip
    for made in (ir.from_proto(old), ir.from_proto(old)):
        fold_branches(made)
        assert_same(made, old, feeds_for(old))
        optimise(made, "general")
        assert_same(made, old, feeds_for(old))


def test_names_that_two_branches_share_are_told_apart() -> None:
    nodes = [*choice(), *[n for n in choice() if n.op_type == "If"]]
    nodes[2].output[0], nodes[2].name = "b", "second"
    old = model([*nodes, node("Sub", ["y", "b"], ["z"])], [X], ["z"], c=np.array(True))
    new = ir.from_proto(old)
    assert fold_branches(new) == 2
    x = feeds_for(old)["x"]  # the original is refused: two weights called k
    np.testing.assert_allclose(results(new, {"x": x})["z"], -4 * x, rtol=1e-6)


def test_a_question_inside_of_a_branch_is_answered() -> None:
    inner = choice("c")
    yes = body(inner, [], [("y", F32, None)])
    no = body([node("Identity", ["x"], ["e"])], [], [("e", F32, None)])
    outer = [node("If", ["go"], ["z"], then_branch=yes, else_branch=no)]
    for answer in (True, False):
        old = model(outer, [X, ("go", BOOL, ())], ["z"], c=np.array(answer))
        new = ir.from_proto(old)
        optimise(new, "general")
        assert "If" not in [n.op_type for n in new.graph[0].attributes["then_branch"].as_graph()]
        for go in (True, False):
            assert_same(new, old, feeds_for(old) | {"go": np.array(go)})
        old = model(outer, [X], ["z"], c=np.array(answer), go=np.array(True))
        new = ir.from_proto(old)
        optimise(new, "general")
        assert "If" not in ops(new)
        assert_same(new, old, feeds_for(old))


def test_a_question_about_a_shape_that_is_known_disappears() -> None:
    """As exporters write squeeze(1): only if that dim is 1."""
    yes = body([node("Flatten", ["x"], ["t"])], [], [("t", F32, None)])
    no = body([node("Identity", ["x"], ["e"])], [], [("e", F32, None)])
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["d"]),
        node("Equal", ["d", "one"], ["c"]),
        node("If", ["c"], ["y"], then_branch=yes, else_branch=no),
    ]
    for middle, op in ((1, "Flatten"), (3, "Identity")):
        old = model(
            nodes, [("x", F32, ("n", middle, 4))], ["y", ("d", I64, None)], one=np.array([1])
        )
        new = ir.from_proto(old)
        optimise(new, "general")
        assert op in ops(new)
        assert "If" not in ops(new)
        assert_same(new, old, feeds_for(old))
