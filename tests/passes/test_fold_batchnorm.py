"""passes/fold_batchnorm.py: normalisations in the weights of layers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import BOOL, F32, assert_same, body, feeds_for, model, node, ops

from mindspore_lite.passes.fold_batchnorm import fold_batchnorm
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead

RANDOM = np.random.default_rng(11)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def statistics(channels: int) -> dict[str, np.ndarray]:
    found = {name: f32(channels) for name in ("scale", "shift", "mean")}
    return found | {"var": np.abs(f32(channels)) + np.float32(0.1)}


NORM = ["scale", "shift", "mean", "var"]


def layer(
    op: str, x: tuple, w: np.ndarray, channels: int, b: np.ndarray | None = None, **attributes
):
    more = {} if b is None else {"b": b}
    nodes = [
        node(op, ["x", "w", *more], ["a"], **attributes),
        node("BatchNormalization", ["a", *NORM], ["y"], epsilon=0.01),
    ]
    return model(nodes, [("x", F32, x)], ["y"], w=w, **more, **statistics(channels))


def folded(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    fold_batchnorm(made)
    remove_dead(made)
    return made


IMAGE = (2, 4, 7, 7)
FOLDED = {
    "Conv": layer("Conv", IMAGE, f32(6, 4, 3, 3), 6),
    "Conv with bias": layer("Conv", IMAGE, f32(6, 4, 3, 3), 6, f32(6), strides=[2, 2]),
    "Conv of groups": layer("Conv", IMAGE, f32(6, 2, 3, 3), 6, group=2),
    "Conv 1-D": layer("Conv", ("n", 4, "w"), f32(6, 4, 3), 6, f32(6)),
    "Conv of any size": layer("Conv", ("n", "c", "h", "w"), f32(6, 4, 1, 1), 6),
    "Conv 3-D": layer("Conv", (1, 2, 4, 4, 4), f32(3, 2, 2, 2, 2), 3),
    "ConvTranspose": layer("ConvTranspose", IMAGE, f32(4, 6, 3, 3), 6, strides=[2, 2]),
    "ConvTranspose with bias": layer("ConvTranspose", IMAGE, f32(4, 6, 3, 3), 6, f32(6)),
    "ConvTranspose of groups": layer("ConvTranspose", IMAGE, f32(4, 3, 2, 2), 6, f32(6), group=2),
    "Gemm": layer("Gemm", (3, 4), f32(4, 5), 5),
    "Gemm with bias": layer("Gemm", ("n", 4), f32(5, 4), 5, f32(5), transB=1, alpha=0.5, beta=2.0),
    "Gemm with one bias": layer("Gemm", (3, 4), f32(4, 5), 5, f32()),
    "Gemm with a row": layer("Gemm", (3, 4), f32(4, 5), 5, f32(1, 5), beta=0.5),
}
STAYS = {
    "Gemm with a column": layer("Gemm", (5, 4), f32(4, 5), 5, f32(5, 1)),
    "Gemm with a matrix": layer("Gemm", (3, 4), f32(4, 5), 5, f32(3, 5)),
    "MatMul of more axes": layer("MatMul", (2, 5, 4), f32(4, 5), 5),
    "Relu before": model(
        [node("Relu", ["x"], ["a"]), node("BatchNormalization", ["a", *NORM], ["y"])],
        [("x", F32, IMAGE)], ["y"], **statistics(4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_a_normalisation_goes_into_the_layer(name: str) -> None:
    old = FOLDED[name]
    new = folded(old)
    assert "BatchNormalization" not in ops(new)
    assert len(new.graph) == 1
    assert "w" in new.graph.initializers
    assert ("b" in new.graph.initializers) == ("b" in [w.name for w in old.graph.initializer])
    assert_same(new, old, feeds_for(old, open_dim=4))


def test_without_a_bias_the_layer_takes_that_of_the_normalisation() -> None:
    assert sorted(folded(FOLDED["Conv"]).graph.initializers) == ["shift", "w"]


def test_a_matrix_product_keeps_an_addition() -> None:
    old = layer("MatMul", (3, 4), f32(4, 5), 5)
    new = folded(old)
    assert ops(new) == ["MatMul", "Add"]
    assert sorted(new.graph.initializers) == ["shift", "w"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("name", STAYS)
def test_what_does_not_fit_stays(name: str) -> None:
    new = folded(STAYS[name])
    assert "BatchNormalization" in ops(new)
    assert_same(new, STAYS[name], feeds_for(STAYS[name]))


def test_a_layer_with_other_users_stays() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("BatchNormalization", ["a", *NORM], ["y"]),
        node("Neg", ["a"], ["z"]),
    ]
    weights = {"w": f32(6, 4, 3, 3), **statistics(6)}
    for outputs in (["y", "z"], ["y", "a"]):
        old = model(nodes, [("x", F32, IMAGE)], outputs, **weights)
        new = folded(old)
        assert "BatchNormalization" in ops(new)
        assert_same(new, old, feeds_for(old))


def test_weights_that_two_layers_share_stay() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("BatchNormalization", ["a", *NORM], ["y"]),
        node("Conv", ["x", "w"], ["z"]),
    ]
    old = model(nodes, [("x", F32, IMAGE)], ["y", "z"], w=f32(6, 4, 3, 3), **statistics(6))
    assert "BatchNormalization" in ops(folded(old))


def test_statistics_that_two_normalisations_share_are_no_hindrance() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("BatchNormalization", ["a", *NORM], ["y"]),
        node("Conv", ["x", "v"], ["b"]),
        node("BatchNormalization", ["b", *NORM], ["z"]),
    ]
    weights = {"w": f32(6, 4, 3, 3), "v": f32(6, 4, 3, 3), **statistics(6)}
    old = model(nodes, [("x", F32, IMAGE)], ["y", "z"], **weights)
    new = folded(old)
    assert "BatchNormalization" not in ops(new)
    assert_same(new, old, feeds_for(old))


def test_half_precision_stays() -> None:
    half = {name: array.astype(np.float16) for name, array in statistics(6).items()}
    nodes = [
        node("Cast", ["x"], ["h"], to=10),
        node("Conv", ["h", "w"], ["a"]),
        node("BatchNormalization", ["a", *NORM], ["y"]),
    ]
    old = model(
        nodes, [("x", F32, IMAGE)], [("y", 10, None)], w=f32(6, 4, 3, 3).astype(np.float16), **half
    )
    assert "BatchNormalization" in ops(folded(old))


def test_statistics_without_sense_stay() -> None:
    weights = {"w": f32(6, 4, 3, 3)} | statistics(6) | {"var": np.full(6, -1, np.float32)}
    nodes = [node("Conv", ["x", "w"], ["a"]), node("BatchNormalization", ["a", *NORM], ["y"])]
    old = model(nodes, [("x", F32, IMAGE)], ["y"], **weights)
    assert "BatchNormalization" in ops(folded(old))


@pytest.mark.parametrize("sizes", [(5, 5, 5, 5), (6, 6, 1, 6), (1, 1, 1, 1)])
def test_statistics_of_other_channels_are_left_to_the_engine(sizes: tuple[int, ...]) -> None:
    weights = {"w": f32(6, 4, 3, 3)} | {n: f32(k) for n, k in zip(NORM, sizes, strict=True)}
    nodes = [node("Conv", ["x", "w"], ["a"]), node("BatchNormalization", ["a", *NORM], ["y"])]
    assert "BatchNormalization" in ops(folded(model(nodes, [("x", F32, IMAGE)], ["y"], **weights)))


def test_statistics_that_come_from_outside_stay() -> None:
    weights = {"w": f32(6, 4, 3, 3)} | statistics(6)
    del weights["mean"]
    nodes = [node("Conv", ["x", "w"], ["a"]), node("BatchNormalization", ["a", *NORM], ["y"])]
    old = model(nodes, [("x", F32, IMAGE), ("mean", F32, (6,))], ["y"], **weights)
    assert "BatchNormalization" in ops(folded(old))


def test_weights_in_constant_nodes_are_folded_too() -> None:
    old = layer("Conv", IMAGE, f32(6, 4, 3, 3), 6)
    made = ir.from_proto(old)
    for name, value in list(made.graph.initializers.items()):
        constant = ir.node("Constant", [], {"value": value.const_value})
        constant.outputs[0].name = f"{name}_c"
        last = made.graph[-1]
        made.graph.insert_before(last if name in NORM else made.graph[0], constant)
        ir.convenience.replace_all_uses_with(value, constant.outputs[0])
        del made.graph.initializers[name]
    infer_shapes(made)
    assert fold_batchnorm(made) == 1
    assert_same(made, old, feeds_for(old))


def test_layers_in_branches_are_folded() -> None:
    yes = body(
        [node("Conv", ["x", "w"], ["a"]), node("BatchNormalization", ["a", *NORM], ["t"])],
        [], [("t", F32, None)],
    )  # fmt: skip
    no = body([node("Conv", ["x", "v"], ["e"])], [], [("e", F32, None)])
    old = model(
        [node("If", ["go"], ["y"], then_branch=yes, else_branch=no)],
        [("x", F32, IMAGE), ("go", BOOL, ())], ["y"],
        w=f32(6, 4, 3, 3), v=f32(6, 4, 3, 3), **statistics(6),
    )  # fmt: skip
    new = folded(old)
    assert len(new.graph[0].attributes["then_branch"].as_graph()) == 1
    for go in (True, False):
        assert_same(new, old, feeds_for(old) | {"go": np.array(go)})
