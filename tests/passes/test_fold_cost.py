"""passes/fold_cost.py: what it takes to compute a node, beyond its inputs and results."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import node

from mindspore_lite.passes.fold_cost import _COSTS, SIMPLE, Cost, Dims, cost_of

# operators without a bound: those with bodies, texts, and new ones that nobody has looked at
NOT_BOUNDED = {
    "CausalConvWithState", "If", "ImageDecoder", "LinearAttention", "Loop", "RegexFullMatch",
    "Scan", "SequenceMap", "StringConcat", "StringNormalizer", "StringSplit", "SwiGLU",
    "TfIdfVectorizer",
}  # fmt: skip
# never computed ahead of time
NOT_ASKED = {
    "Bernoulli", "Constant", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip


def cost(op: str, inputs: list[Dims | None], outputs: list[Dims], **attributes: Any) -> Cost | None:
    names = ["" if dims is None else f"i{at}" for at, dims in enumerate(inputs)]
    made = node(op, names, ["o"], **attributes)
    return cost_of(ir.from_proto(made), inputs, outputs)


def test_every_operator_is_in_one_list() -> None:
    known = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    assert SIMPLE.isdisjoint(_COSTS)
    assert known >= SIMPLE | _COSTS.keys()
    assert known - SIMPLE - _COSTS.keys() <= NOT_BOUNDED | NOT_ASKED


@pytest.mark.parametrize("op", sorted(NOT_BOUNDED))
def test_an_operator_that_is_in_no_list_has_no_known_cost(op: str) -> None:
    assert cost(op, [(1,)], [(1,)]) is None


def test_operators_of_other_domains_have_no_known_cost() -> None:
    assert cost("Abs", [(1,)], [(1,)]) == Cost()
    assert cost("Abs", [(1,)], [(1,)], domain="own") is None
    assert cost("DequantizeLinear", [(1,)], [(1,)], domain="com.microsoft") == Cost()


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes", "elements"),
    [
        ("Conv", [(1, 3, 9, 9), (4, 3, 5, 5)], [(1, 4, 5, 5)], {}, 3 * 25 * 25),
        ("ConvTranspose", [(1, 3, 9, 9), (3, 4, 5, 5)], [(1, 4, 13, 13)], {}, 4 * 25 * 81),
        ("QLinearConv", [(1, 3, 9), (), (), (4, 3, 5)], [(1, 4, 5)], {}, 3 * 5 * 5),
        ("LRN", [(1, 3, 2, 2)], [(1, 3, 2, 2)], {"size": 1001}, 2 * 1004 * 4),
        ("LSTM", [(50, 2, 3), (1, 16, 3), (1, 16, 4)], [(1, 2, 4)], {}, 2 * 100 * 16),
        ("Attention", [(1, 70, 8)] * 3, [(1, 70, 8)], {"q_num_heads": 2}, 2 * 2 * 70 * 70),
        ("Einsum", [(7, 8), (8, 9)], [(7, 9)], {"equation": "ij,jk->ik"}, 2 * (56 + 72 + 63)),
        # three sides of a cube before anything is summed
        ("Einsum", [(9,), (9,), (9,), (9, 9), (9, 9), (9, 9)], [()],
         {"equation": "i,j,k,ij,jk,ik->"}, 2 * (729 + 81 + 729)),
        ("Einsum", [(5, 6, 7), (5, 7, 8)], [(5, 6, 8)], {"equation": "...ij,...jk->...ik"},
         2 * 5 * (42 + 56 + 48)),
        ("RoiAlign", [(1, 1, 4, 4), (2, 4), (2,)], [(2, 1, 3, 3)], {"sampling_ratio": 10},
         4 * 900 * 2),
        ("Unique", [(30,)], [(30,)], {}, 20 * 30),
        ("MatMul", [(7, 8), (8, 9)], [(7, 9)], {}, 0),
    ],
)  # fmt: skip
def test_working_memory_is_bounded_by_what_is_unfolded(
    op: str, inputs: list[Dims | None], outputs: list[Dims], attributes: Any, elements: int
) -> None:
    found = cost(op, inputs, outputs, **attributes)
    assert found is not None
    assert found.scratch_bytes == 8 * elements


def test_steps_grow_with_multiplications() -> None:
    assert cost("MatMul", [(7, 8), (8, 9)], [(7, 9)]) == Cost(0, 7 * 9 * 8)
    assert cost("Det", [(2, 100, 100)], [(2,)]) == Cost(0, 2 * 100**3)
    assert cost("MaxPool", [(1, 1, 9, 9)], [(1, 1, 9, 9)], kernel_shape=[3, 3]) == Cost(0, 729)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Conv", [(1, 3)], {}),
        ("Conv", [(), ()], {}),
        ("Einsum", [(2, 2)], {"equation": "ijk->i"}),
        ("Einsum", [(2, 2)], {"equation": "ij,j->i"}),
        ("Einsum", [(2, 2)], {"equation": 7}),
        ("LRN", [(1, 1)], {}),
        ("MaxPool", [(1, 1, 3)], {"kernel_shape": "wide"}),
        ("RoiAlign", [(1, 1, 4, 4), (1, 4), (1,)], {}),  # numbers of the boxes decide
    ],
)
def test_nodes_that_make_no_sense_have_no_known_cost(
    op: str, inputs: list[Dims | None], attributes: Any
) -> None:
    assert cost(op, inputs, [], **attributes) is None
