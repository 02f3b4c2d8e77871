"""inspection/mindir_sketch.py: what is drawn, and what only appears among operands."""

from __future__ import annotations

import numpy as np
from support.mindir_builder import Net, tensor_type

from mindspore_lite.inspection.facts import Problem
from mindspore_lite.inspection.mindir_sketch import sketches
from mindspore_lite.inspection.sketch import MAX_OPERANDS, Box, Operand
from mindspore_lite.mindir import records as r


def drawn(model: r.Model, *problems: Problem) -> list[Box]:
    (found,) = sketches(model, problems)
    return list(found.boxes)


def test_loads_weights_and_constants_are_operands_of_their_reader() -> None:
    net = Net()
    x, monad = net.input("x", (2, 3)), net.monad()
    weight = net.call("Load", net.weight("w", np.ones((3, 4), np.float32)), monad)
    net.call("UpdateState", monad, weight)
    made = net.call(
        "MatMul", x, weight, net.constant(False), net.constant(True), type=tensor_type((2, 4))
    )
    box = drawn(net.model(made))[1]
    assert box.operands == (
        Operand("box", "float32 [2, 3]", "net:x", "a"),
        Operand("weight", "float32 [3, 4]", "w", "b"),
        Operand("constant", "False", "", "transpose_a"),
        Operand("constant", "True", "", "transpose_b"),
    )
    assert (box.op, box.family, box.result) == ("MatMul", "matmul", "float32 [2, 4]")
    assert [b.op for b in drawn(net.model(made))] == ["x", "MatMul", "output"]


def test_a_tuple_is_its_elements() -> None:
    net = Net()
    x, y = net.input("x", (2,)), net.input("y", (2,))
    pair = net.tuple(x, y)
    joined = net.call("Concat", pair, net.constant(0))
    second = net.call("TupleGetItem", pair, net.constant(1))
    boxes = drawn(net.model(net.tuple(joined, second)))
    assert [(o.name, o.argument) for o in boxes[2].operands[:2]] == [
        ("net:x", boxes[2].operands[0].argument),
        ("net:y", boxes[2].operands[0].argument),
    ]
    assert [b.op for b in boxes] == ["x", "y", "Concat", "output 0", "output 1"]
    assert boxes[-1].operands[0].name == "net:y"


def test_an_element_of_a_result_leads_to_its_operator_with_its_own_type() -> None:
    net = Net()
    norm = net.call("BatchNorm", net.input("x", (2, 3)))
    first = net.call("TupleGetItem", norm, net.constant(0), type=tensor_type((2, 3)))
    box = drawn(net.model(net.call("ReLU", first)))[2]
    assert box.operands == (Operand("box", "float32 [2, 3]", norm, "x"),)


def test_tuples_that_double_stay_bounded() -> None:
    net = Net()
    made = net.input("x", (2,))
    for _ in range(40):
        made = net.tuple(made, made)
    boxes = drawn(net.model(net.call("AddN", made)))
    assert len(boxes[1].operands) == MAX_OPERANDS


def test_a_graph_that_is_called_is_named_and_drawn_on_its_own() -> None:
    inner = Net("inner")
    body = inner.graph(inner.call("ReLU", inner.input("x", (2,))))
    net = Net()
    x = net.input("x", (2,))
    partial = net.call("Partial", "inner", x)
    made = net.call(r.ValueRef(partial))
    direct = net.call(r.GraphRef("inner"), made)
    main, other = sketches(net.model(direct, functions=[body]), ())
    assert [b.op for b in main.boxes] == ["x", "Partial", "call", "call", "output"]
    assert main.boxes[1].operands[0] == Operand("graph", "", "inner", "")
    assert main.boxes[2].operands == (Operand("box", "", partial, "calls"),)
    assert main.boxes[3].operands[0] == Operand("graph", "", "inner", "calls")
    assert (other.name, [b.op for b in other.boxes]) == ("inner", ["x", "ReLU", "output"])


def test_problems_mark_just_their_nodes() -> None:
    net = Net()
    made = net.input("x", (2,))
    for number in range(3):
        made = net.call("FancyOp", made, scope=f"Default/{number}", heads=4, input_names=["x"])
    boxes = drawn(net.model(made), Problem("FancyOp: too fancy", ("Default/1",)))
    assert [b.problem for b in boxes] == ["", "", "FancyOp: too fancy", "", ""]
    assert boxes[1].family == "unknown"
    assert boxes[1].attributes == (("heads", "4"),)


def test_large_constants_are_told_in_a_few_words() -> None:
    net = Net()
    x = net.input("x", (2,))
    values = (np.zeros((100, 100), np.float32), np.arange(3), tuple(range(10**5)), "x" * 10**5)
    made = net.call("FancyOp", x, *[net.constant(value) for value in values])
    texts = [o.text for o in drawn(net.model(made))[1].operands[1:]]
    assert texts[:2] == ["float32 [100, 100]", "int64 [3] = [0, 1, 2]"]
    assert all(len(text) <= 400 for text in texts)
