"""graph/structure.py and graph/sequences.py: primitives that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph import functions, sequences  # noqa: F401 - fill the table
from mindspore_lite.graph.control import FUNCTIONS, Raised
from mindspore_lite.graph.storage import Slot
from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.mindir.records import GraphRef, Monad
from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS
from mindspore_lite.ops.tape import Tape


def call(name: str, inputs: Sequence[Slot]) -> Slot:
    tape = Tape()
    tape.primitive = name
    return STRUCTURE[name](tape, inputs)


HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "name", ["Load", "Depend", "identity", "Identity", "StopGradient", "Contiguous", "Detach"]
)
def test_an_alias_is_the_very_slot(name: str) -> None:
    source = Slot("x")
    assert call(name, [source, Slot(Monad.MEMORY)]) is source


@pytest.mark.parametrize("name", ["TensorMove", "Copy", "Clone", "CopyToDevice"])
def test_a_snapshot_is_another_slot_of_the_same_value(name: str) -> None:
    source = Slot("x")
    copy = call(name, [source])
    source.write("y")
    assert copy.read() == "x"


def test_update_state_is_a_monad() -> None:
    assert call("UpdateState", [Slot(Monad.MEMORY), Slot("x")]).read() is Monad.MEMORY


@pytest.mark.parametrize(
    "name", ["MakeTuple", "make_tuple", "MakeTupleV2", "MakeList", "make_list"]
)
def test_a_made_tuple_holds_the_slots(name: str) -> None:
    slots = [Slot(1), Slot(2)]
    assert call(name, slots).items() == tuple(slots)
    assert call(name, []).items() == ()


@pytest.mark.parametrize("name", ["TupleGetItem", "tuple_getitem", "list_getitem",
                                  "RealTupleGetItem"])  # fmt: skip
@pytest.mark.parametrize(("index", "wanted"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_an_element_is_the_slot_of_the_tuple(name: str, index: int, wanted: int) -> None:
    slots = (Slot(1), Slot(2), Slot(3))
    assert call(name, [Slot(slots), Slot(index)]) is slots[wanted]


def test_an_index_may_be_a_constant_tensor() -> None:
    constant = ir.Value(name="i", const_value=ir.Tensor(np.asarray(1)))
    slots = (Slot(1), Slot(2))
    assert call("TupleGetItem", [Slot(slots), Slot(constant)]) is slots[1]


@pytest.mark.parametrize("index", [2, -3, 10**12])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(UnsupportedOpError, match=f"element {index} of a tuple of 2"):
        call("TupleGetItem", [Slot((Slot(1), Slot(2))), Slot(index)])


def test_an_index_computed_at_run_time_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="element None of a tuple of 1"):
        call("TupleGetItem", [Slot((Slot(1),)), Slot(ir.Value(name="i"))])


def test_an_element_of_no_tuple_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="a tuple was expected"):
        call("TupleGetItem", [Slot(1), Slot(0)])


@pytest.mark.parametrize("name", ["Print", "TensorDump", "Assert", "ScalarSummary", "ImageSummary",
                                  "HistogramSummary", "TensorSummary"])  # fmt: skip
def test_what_talks_to_the_outside_is_dropped(name: str) -> None:
    assert call(name, [Slot("text"), Slot(1), Slot(Monad.IO)]).read() is None


def numbers(*values: object) -> Slot:
    return Slot(tuple(Slot(v) for v in values))


def runtime(name: str = "n") -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))


@pytest.mark.parametrize(
    ("name", "inputs", "wanted"),
    [
        ("sequence_len", [numbers(1, 2, 3)], 3),
        ("SequenceAdd", [numbers(1), numbers(2, 3)], (1, 2, 3)),
        ("SequenceMul", [numbers(1, 2), Slot(2)], (1, 2, 1, 2)),
        ("SequenceMul", [numbers(1, 2), Slot(0)], ()),
        ("SequenceSlice", [numbers(1, 2, 3, 4), Slot(1), Slot(4), Slot(2)], (2, 4)),
        ("SequenceSlice", [numbers(1, 2, 3), Slot(-1), Slot(-4), Slot(-1)], (3, 2, 1)),
        ("tuple_setitem", [numbers(1, 2), Slot(-1), Slot(9)], (1, 9)),
        ("list_setitem", [numbers(1, 2), Slot(0), Slot(9)], (9, 2)),
        ("tuple_reversed", [numbers(1, 2)], (2, 1)),
        ("ListAppend", [numbers(1), Slot(2)], (1, 2)),
        ("InSequence", [Slot(2), numbers(1, 2)], True),
        ("InSequence", [Slot(5), numbers(1, 2)], False),
        ("InSequence", [Slot(5), numbers()], False),
        ("tuple_equal", [numbers(1, 2), numbers(1, 2)], True),
        ("list_equal", [numbers(1, 2), numbers(1, 3)], False),
        ("SequenceEqual", [numbers(1, 2), numbers(1)], False),
        ("is_", [Slot(None), Slot(None)], True),
        ("is_", [numbers(1), Slot(None)], False),
        ("is_", [Slot(True), Slot(True)], True),
        ("is_not", [Slot(1), Slot(None)], True),
        ("is_not", [Slot(None), Slot(None)], False),
    ],
)
def test_sequences_are_computed_while_translating(
    name: str, inputs: list[Slot], wanted: object
) -> None:
    assert call(name, inputs).read() == wanted


def test_whether_a_number_is_in_a_sequence_may_be_known_at_run_time_only() -> None:
    found = call("InSequence", [Slot(3), numbers(runtime(), 1, runtime("m"))]).read()
    assert isinstance(found, ir.Value)
    differ = call("tuple_equal", [numbers(runtime()), numbers(2)]).read()
    assert isinstance(differ, ir.Value)


def test_a_dim_is_never_negative() -> None:
    """Exports with open dims ask `-2 in x.shape`, and hold a branch for that case."""
    tape = Tape()
    tape.primitive = "Shape"
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", 3]))
    dims = OPS["Shape"].meaning(tape, x)
    assert call("InSequence", [Slot(-2), numbers(*dims)]).read() is False


@pytest.mark.parametrize(
    ("name", "inputs", "words"),
    [
        ("SequenceSlice", [numbers(1, 2), Slot(0), Slot(2), Slot(0)], "step 0"),
        ("SequenceSlice", [numbers(1, 2), Slot(runtime()), Slot(2), Slot(1)], "only the run"),
        ("SequenceMul", [numbers(1, 2), Slot(10**9)], "at most"),
        ("tuple_setitem", [numbers(1, 2), Slot(2), Slot(9)], "element 2 of a tuple of 2"),
        ("is_", [Slot(1), Slot(1)], "other values than None"),
        ("Partial", [Slot(1), Slot(1)], "no function"),
        ("switch_layer", [Slot(5), Slot((Slot(GraphRef("g")),))], "function 5 of 1"),
    ],
)
def test_what_cannot_be_computed_is_refused(name: str, inputs: list[Slot], words: str) -> None:
    with pytest.raises(UnsupportedOpError, match=words):
        call(name, inputs)


def test_every_structural_primitive_is_named_in_a_test_of_structure() -> None:
    texts = "".join(p.read_text(encoding="utf-8") for p in HERE.glob("test_structure*.py"))
    assert [name for name in STRUCTURE if f'"{name}"' not in texts] == []


def test_a_raise_ends_the_branch_and_its_words_are_nobodys() -> None:
    assert call("JoinedStr", [Slot("got "), Slot(1)]).read() == "text"
    with pytest.raises(Raised):
        call("raise", [Slot("ValueError"), Slot("text")])


def test_no_primitive_is_both_structure_and_operator() -> None:
    assert STRUCTURE.keys() & OPS.keys() == set()


@pytest.mark.parametrize("name", ["Partial", "PartialFusion", "Switch", "switch_layer"])
def test_functions_are_made_by_structure(name: str) -> None:
    """What calling them does is in test_control.py."""
    one = Slot(GraphRef("one"))
    inputs = {
        "Partial": [one, Slot(1)],
        "PartialFusion": [one, Slot(1)],
        "Switch": [Slot(True), one, one],
        "switch_layer": [Slot(0), Slot((one, one))],
    }
    assert isinstance(call(name, inputs[name]).read(), FUNCTIONS)
