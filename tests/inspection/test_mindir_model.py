"""inspection/mindir_model.py: facts about files that can run, and about files that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode, tensor_type
from support.models import DYN_BATCH, MIXED_TYPES, TWO_IN_TWO_OUT, dense_net, written
from support.running import DATA

from mindspore_lite.errors import ModelFileError
from mindspore_lite.inspection.examine import examine
from mindspore_lite.inspection.facts import Facts, Graph, Operator, Port, Problem
from mindspore_lite.mindir import records as r


@pytest.fixture
def facts_of(tmp_path: Path) -> Any:
    def look(net: Net, *outputs: str, functions: Sequence[r.Graph] = (), **more: Any) -> Facts:
        data = encode(net.model(*outputs, functions=functions, **more))
        return examine(written(tmp_path / "net.mindir", data)).facts

    return look


def test_a_plain_model_is_told_in_full(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", dense_net(rows=2))
    facts = examine(path).facts
    assert facts.can_run
    assert (facts.file, facts.size_bytes) == (str(path), path.stat().st_size)
    assert (facts.format, facts.producer, facts.producer_version) == (
        "MindIR",
        "MindSpore",
        "2.10.0",
    )
    assert (facts.ir_version, facts.mind_ir_version) == ("1.1", 3)
    assert facts.inputs == (Port("x", "float32", (2, 3)),)
    assert [(o.dtype, o.shape) for o in facts.outputs] == [("float32", (2, 4))]
    assert (facts.weights.tensors, facts.weights.elements, facts.weights.size_bytes) == (1, 12, 48)
    assert facts.operators == (
        Operator("Add", 1, "arithmetic", True),
        Operator("MatMulExt", 1, "matmul", True),
    )
    assert facts.graphs == (Graph("net", "main", 2, ()),)
    assert facts.memory is not None
    assert facts.memory.weights_bytes == 48 + 16  # the constant is held as well
    assert facts.memory.activations_bytes == 4 * (6 + 8 + 8)


def test_open_dims_are_minus_one_and_counted_as_one() -> None:
    facts = examine(DYN_BATCH).facts
    assert facts.inputs[0].shape == (-1, 3, 224, 224)
    assert facts.outputs[0].shape == (-1, 10)
    assert facts.memory is not None
    assert facts.memory.open_dims_as_one


def test_several_inputs_and_outputs_come_in_order() -> None:
    facts = examine(TWO_IN_TWO_OUT).facts
    assert len(facts.inputs) == len(facts.outputs) == 2
    assert len({port.dtype for port in examine(MIXED_TYPES).facts.inputs}) > 1


def test_weights_are_summed_by_type(facts_of: Any) -> None:
    net = Net()
    x = net.input("x", (4,))
    made = net.call("Add", x, net.weight("a", np.ones(4, np.float32)))
    half = net.call("Cast", net.weight("b", np.ones((2, 2), np.float16)), net.constant(43))
    net.weight("c", np.ones(3, np.float16))
    weights = facts_of(net, net.tuple(made, half)).weights
    assert {k: (a.tensors, a.elements, a.size_bytes) for k, a in weights.by_dtype.items()} == {
        "float16": (2, 7, 14),
        "float32": (1, 4, 16),
    }


def test_every_place_of_every_missing_operator_is_told_even_behind_others(facts_of: Any) -> None:
    net = Net()
    made = net.input("x", (2, 3))
    for number in range(8):
        made = net.call("FancyOp", made, scope=f"Default/fancy/{number}")
    made = net.call("OddOp", made, type=tensor_type((2, 3)), scope="Default/odd")
    facts = facts_of(net, made)
    assert not facts.can_run
    assert facts.problems == (
        Problem("FancyOp", tuple(f"Default/fancy/{n}" for n in range(8))),
        Problem("OddOp", ("Default/odd",)),
    )
    assert [(o.name, o.family, o.supported) for o in facts.operators] == [
        ("FancyOp", "", False),
        ("OddOp", "", False),
    ]
    assert facts.memory is None
    assert facts.outputs == (Port("Default/odd", "float32", (2, 3)),)


def test_an_option_that_is_refused_is_a_problem_of_its_operator(facts_of: Any) -> None:
    net = Net()
    x = net.input("x", (1, 1, 4, 4))
    made = net.call("L2Normalize", x, axis="odd", scope="Default/norm")
    facts = facts_of(net, made)
    (problem,) = facts.problems
    assert problem.reason.startswith("L2Normalize: ")
    assert problem.places == ("Default/norm",)
    assert not facts.operators[0].supported
    assert facts.operators[0].family == "norm"


def test_a_tuple_of_any_length_as_input_is_a_problem_without_a_place(facts_of: Any) -> None:
    net = Net()
    pair = net.input("pair", type=r.SequenceType((tensor_type((2,)),), dynamic_length=True))
    facts = facts_of(net, net.call("TupleGetItem", pair, net.constant(0)))
    (problem,) = facts.problems
    assert "is a tuple of any length" in problem.reason


def test_a_tuple_as_input_is_shown_by_its_elements(facts_of: Any) -> None:
    net = Net()
    pair = net.input("pair", type=r.SequenceType((tensor_type((2,)), tensor_type((3,)))))
    facts = facts_of(net, net.call("TupleGetItem", pair, net.constant(0)))
    assert [port.name for port in facts.inputs] == ["pair_0", "pair_1"]


def test_an_open_rank_is_told(facts_of: Any) -> None:
    net = Net()
    facts = facts_of(net, net.call("ReLU", net.input("x", None)))
    assert facts.inputs == (Port("x", "float32", None),)


def test_a_graph_that_makes_no_sense_is_a_problem_not_an_end(facts_of: Any) -> None:
    net = Net()
    net.input("x", (2,))
    later = "net:node:2"  # used by the first node, made by the second
    net.call("ReLU", later)
    facts = facts_of(net, net.call("ReLU", "net:x"))
    (problem,) = facts.problems
    assert "used before it is defined" in problem.reason


def test_in_place_operators_and_user_info_are_told(facts_of: Any) -> None:
    net = Net()
    x = net.call("ReLU", net.input("x", (2,)))
    made = net.call("InplaceAddExt", x, net.constant(np.ones(2, np.float32)), net.constant(1))
    facts = facts_of(net, made, user_info={"author": "me"})
    assert facts.in_place == {"InplaceAddExt": 1}
    assert facts.user_info == {"author": "me"}


def test_graphs_are_told_with_role_and_callers(facts_of: Any) -> None:
    inner = Net("7_✓_construct")
    body = inner.graph(inner.call("ReLU", inner.input("x", (2,))))
    net = Net()
    made = net.call(r.GraphRef("7_✓_construct"), net.input("x", (2,)), scope="Default/call")
    facts = facts_of(net, made, functions=[body])
    assert facts.graphs == (
        Graph("net", "main", 1, ()),
        Graph("7_✓_construct", "then branch", 1, ("Default/call",)),
    )
    assert [o.name for o in facts.operators] == ["ReLU", "call of a graph"]


@pytest.mark.parametrize(
    ("version", "more", "words"),
    [(3, {}, "argument form"), (1, {}, "1.7 to 2.2"), (3, {"fmk": 2}, "converter_lite")],
)
def test_the_encoding_is_told(
    tmp_path: Path, version: int, more: dict[str, Any], words: str
) -> None:
    net = Net()
    graph = net.graph(net.call("ReLU", net.input("x", (2,))))
    graph = r.Graph(graph.name, graph.inputs, graph.nodes, graph.outputs, attributes=more)
    data = encode(r.Model(graph, producer="MindSpore", mind_ir_version=version))
    assert words in examine(written(tmp_path / "net.mindir", data)).facts.encoding


def test_an_encrypted_file_is_said_to_be_one() -> None:
    with pytest.raises(ModelFileError, match=r"the file is encrypted \(AES-GCM\)"):
        examine(DATA / "nets/enc_gcm.mindir")


def test_bytes_that_are_no_model_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        examine(written(tmp_path / "net.mindir", b"nonsense"))


NETS = [path for path in sorted(DATA.glob("nets/*.mindir")) if not path.stem.startswith("enc_")]


@pytest.mark.parametrize("path", NETS, ids=lambda p: p.stem)
def test_every_network_of_the_fixtures_is_told_and_drawn(path: Path) -> None:
    found = examine(path)
    assert found.facts.can_run
    assert (found.facts.memory is None) == (path.stem == "dyn_rank")
    main, *others = found.sketches()
    assert main.boxes[-1].family == "output"
    assert len(others) == len(found.facts.graphs) - 1
