"""graph/structure.py: primitives that compute nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.storage import Slot
from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.mindir.records import Monad
from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "name", ["Load", "Depend", "identity", "Identity", "StopGradient", "Contiguous", "Detach"]
)
def test_an_alias_is_the_very_slot(name: str) -> None:
    source = Slot("x")
    assert STRUCTURE[name]([source, Slot(Monad.MEMORY)]) is source


@pytest.mark.parametrize("name", ["TensorMove", "Copy", "Clone", "CopyToDevice"])
def test_a_snapshot_is_another_slot_of_the_same_value(name: str) -> None:
    source = Slot("x")
    copy = STRUCTURE[name]([source])
    source.write("y")
    assert copy.read() == "x"


def test_update_state_is_a_monad() -> None:
    assert STRUCTURE["UpdateState"]([Slot(Monad.MEMORY), Slot("x")]).read() is Monad.MEMORY


@pytest.mark.parametrize("name", ["MakeTuple", "make_tuple", "MakeList", "make_list"])
def test_a_made_tuple_holds_the_slots(name: str) -> None:
    slots = [Slot(1), Slot(2)]
    assert STRUCTURE[name](slots).items() == tuple(slots)
    assert STRUCTURE[name]([]).items() == ()


@pytest.mark.parametrize("name", ["TupleGetItem", "tuple_getitem", "list_getitem",
                                  "RealTupleGetItem"])  # fmt: skip
@pytest.mark.parametrize(("index", "wanted"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_an_element_is_the_slot_of_the_tuple(name: str, index: int, wanted: int) -> None:
    slots = (Slot(1), Slot(2), Slot(3))
    assert STRUCTURE[name]([Slot(slots), Slot(index)]) is slots[wanted]


def test_an_index_may_be_a_constant_tensor() -> None:
    constant = ir.Value(name="i", const_value=ir.Tensor(np.asarray(1)))
    slots = (Slot(1), Slot(2))
    assert STRUCTURE["TupleGetItem"]([Slot(slots), Slot(constant)]) is slots[1]


@pytest.mark.parametrize("index", [2, -3, 10**12])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(UnsupportedOpError, match=f"element {index} of a tuple of 2"):
        STRUCTURE["TupleGetItem"]([Slot((Slot(1), Slot(2))), Slot(index)])


def test_an_index_computed_at_run_time_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="element None of a tuple of 1"):
        STRUCTURE["TupleGetItem"]([Slot((Slot(1),)), Slot(ir.Value(name="i"))])


def test_an_element_of_no_tuple_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="a tuple was expected"):
        STRUCTURE["TupleGetItem"]([Slot(1), Slot(0)])


def test_every_structural_primitive_is_named_in_a_test_of_structure() -> None:
    texts = "".join(p.read_text(encoding="utf-8") for p in HERE.glob("test_structure*.py"))
    assert [name for name in STRUCTURE if f'"{name}"' not in texts] == []


def test_no_primitive_is_both_structure_and_operator() -> None:
    assert STRUCTURE.keys() & OPS.keys() == set()
