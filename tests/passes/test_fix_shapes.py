"""passes/fix_shapes.py: what callers fix, and what follows from it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, I64, assert_same, feeds_for, model, node

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes.fix_shapes import fix_shapes

IMAGE = ("image", F32, ("batch", 3, "h", "w"))
MASK = ("mask", F32, ("batch", 1, "h", "w"))


def pair() -> ir.Model:
    nodes = [node("Mul", ["image", "mask"], ["m"]), node("Relu", ["m"], ["y"])]
    made = model(nodes, [IMAGE, MASK], [("y", F32, ("batch", 3, "h", "w"))])
    return ir.from_proto(made)


def shapes(made: ir.Model) -> dict[str, list]:
    values = (*made.graph.inputs, *(v for n in made.graph for v in n.outputs))
    return {str(v.name): [getattr(d, "value", d) for d in v.shape or ()] for v in values}


def test_a_fixed_input_fixes_all_that_follows() -> None:
    made = pair()
    fix_shapes(made, {"image": [2, 3, 8, 9], "mask": [2, 1, 8, 9]})
    assert shapes(made) == {
        "image": [2, 3, 8, 9], "mask": [2, 1, 8, 9], "m": [2, 3, 8, 9], "y": [2, 3, 8, 9],
    }  # fmt: skip


def test_dims_of_the_same_name_are_fixed_with_it() -> None:
    made = pair()
    fix_shapes(made, {"image": [2, 3, 8, 9]})
    assert shapes(made)["mask"] == [2, 1, 8, 9]


def test_dims_that_nobody_fixed_stay_open() -> None:
    other = ("other", F32, ("n", 4))
    nodes = [node("Relu", ["image"], ["y"]), node("Relu", ["other"], ["z"])]
    made = ir.from_proto(model(nodes, [IMAGE, other], ["y", "z"]))
    fix_shapes(made, {"image": [1, 3, 4, 4]})
    assert shapes(made)["z"] == ["n", 4]


def test_shapes_of_before_are_forgotten() -> None:
    made = pair()
    for value in (v for n in made.graph for v in n.outputs):
        value.shape = ir.Shape([7, 3, 7, 7])
    fix_shapes(made, {"image": [2, 3, 8, 9]})
    assert shapes(made)["m"] == shapes(made)["y"] == [2, 3, 8, 9]


def test_an_input_of_any_rank_takes_any_shape() -> None:
    made = ir.from_proto(model([node("Relu", ["x"], ["y"])], [("x", F32, None)], ["y"]))
    fix_shapes(made, {"x": [2, 5]})
    assert shapes(made) == {"x": [2, 5], "y": [2, 5]}


def test_nothing_asked_for_changes_nothing() -> None:
    made = pair()
    before = shapes(made)
    fix_shapes(made, {})
    assert shapes(made) == before


def test_every_problem_is_listed_with_the_inputs_of_the_model() -> None:
    with pytest.raises(ShapeError) as caught:
        fix_shapes(pair(), {"img": [1], "image": [0, 4, 8, 8], "mask": [1, 1, 8]})
    text = str(caught.value)
    for words in (
        "'img' is no input",
        "'image' has sizes below 1 in [0, 4, 8, 8]",
        "'mask' has 4 dims, [1, 1, 8] has 3",
        "image: float32[batch,3,h,w], mask: float32[batch,1,h,w]",
    ):
        assert words in text


def test_a_size_that_the_model_fixed_is_replaced() -> None:
    made = pair()
    done = fix_shapes(made, {"image": [2, 5, 8, 8]})
    assert shapes(made)["y"] == [2, 5, 8, 8]
    assert done == {"sizes of inputs replaced": 1, "constants that followed them": 0}


def test_two_sizes_for_one_name_are_refused() -> None:
    with pytest.raises(ShapeError, match="it is the 'batch' that 'image' fixes to 2"):
        fix_shapes(pair(), {"image": [2, 3, 8, 8], "mask": [3, 1, 8, 8]})


def test_a_failure_leaves_the_model_as_it_was() -> None:
    made = pair()
    before = shapes(made)
    with pytest.raises(ShapeError):
        fix_shapes(made, {"image": [2, 3, 8, 8], "mask": [3, 1, 8, 8]})
    assert shapes(made) == before


def test_sizes_that_a_layer_cannot_take_are_refused() -> None:
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    made = model(nodes, [("x", F32, ("n", 3))], ["y"], s=np.array([2, 6]))
    with pytest.raises(ShapeError, match=r"cannot make \[2, 6\] of \[5, 3\]"):
        fix_shapes(ir.from_proto(made), {"x": [5, 3]})


def test_operators_of_other_domains_are_no_hindrance() -> None:
    nodes = [node("Gelu", ["x"], ["a"], domain="com.microsoft"), node("Relu", ["a"], ["y"])]
    made = model(nodes, [("x", F32, ("n", 3))], ["y"], domains={"com.microsoft": 1})
    fixed = ir.from_proto(made)
    fix_shapes(fixed, {"x": [5, 3]})
    assert_same(fixed, made, feeds_for(ir.to_proto(fixed)))


def test_a_model_with_fixed_shapes_computes_the_same() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    made = model(
        nodes, [("x", F32, ("n", 3, 4))], [("y", F32, None), ("s", I64, None)],
        zero=np.array([0]), rest=np.array([-1]),
    )  # fmt: skip
    fixed = ir.from_proto(made)
    fix_shapes(fixed, {"x": [5, 3, 4]})
    assert shapes(fixed)["y"] == [5, 12]
    assert_same(fixed, made, feeds_for(ir.to_proto(fixed)))
