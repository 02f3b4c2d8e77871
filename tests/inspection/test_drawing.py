"""inspection/drawing.py: which boxes stand together, and what a box shows."""

from __future__ import annotations

import pytest

from mindspore_lite.inspection.drawing import ROW, draw, short_label
from mindspore_lite.inspection.sketch import Box, Operand, Sketch


def box(name: str, op: str, family: str, *sources: str, weight: str = "") -> Box:
    operands = [Operand("box", "", source) for source in sources]
    if weight:
        operands.append(Operand("weight", f"float32 [{weight}]", f"{name}.weight"))
    return Box(name, op, family, f"Default/{name}-Cell/{op}-op0", "float32 [1]", tuple(operands))


def sketch(*boxes: Box) -> Sketch:
    return Sketch("net", "main", boxes)


CONV = (
    box("x", "x", "input"),
    box("a", "Conv2D", "conv", "x", weight="8, 3, 3, 3"),
    box("b", "BatchNorm", "norm", "a", weight="8"),
    box("c", "ReLU", "activation", "b"),
)


def test_a_convolution_stands_with_its_norm_and_activation() -> None:
    made = draw(sketch(*CONV, box("d", "Conv2D", "conv", "c")))
    assert [item["block"] for item in made["boxes"]] == [0, 1, 1, 1, 2]
    assert [edge["ends"] for edge in made["edges"]] == [(0, 1), (1, 2)]
    first, second = made["boxes"][1], made["boxes"][2]
    assert second["y"] - first["y"] == ROW
    assert [block["caption"] for block in made["blocks"]] == ["", "a", "d"]


def test_a_result_with_two_readers_ends_a_block() -> None:
    made = draw(sketch(*CONV[:3], box("c", "ReLU", "activation", "b"), box("d", "Neg", "x", "b")))
    assert [item["block"] for item in made["boxes"]] == [0, 1, 1, 2, 3]


def test_a_join_begins_a_block() -> None:
    made = draw(sketch(*CONV, box("d", "Add", "elementwise", "c", "x")))
    assert made["boxes"][-1]["block"] == 2


def test_a_row_shows_its_largest_weight_or_the_role_of_the_graph_it_takes() -> None:
    call = Box("p", "Partial", "control", "p", "", (Operand("graph", "", "g1"),))
    notes = [item["note"] for item in draw(sketch(*CONV, call), {"g1": "loop body"})["boxes"]]
    times = "\N{MULTIPLICATION SIGN}"
    assert notes == ["", times.join("8333"), "8", "", "loop body"]


def test_operands_name_boxes_by_number() -> None:
    made = draw(sketch(*CONV))
    assert made["boxes"][1]["operands"] == [
        {"kind": "box", "text": "", "argument": "", "box": 0},
        {"kind": "weight", "text": "float32 [8, 3, 3, 3]", "argument": "", "name": "a.weight"},
    ]


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        ("Default/layer1-SequentialCell/0-Block/conv1-Conv2d/Conv2D-op0", "layer1/0/conv1"),
        ("Default/Add-op0", ""),
        ("node", ""),
        ("odd/scope/Add-op0", "odd/scope"),
    ],
)
def test_a_label_is_cut_to_what_tells_places_apart(label: str, wanted: str) -> None:
    assert short_label(Box("n", "Add", "elementwise", label, "")) == wanted
