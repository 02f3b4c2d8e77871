"""serving/update.py: the argument of update_weights, and the arrays that it becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import written
from support.settings import spec_of
from support.updates import SIDE, changeable, filled, named, telling_net

import mindspore_lite as mslite
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.errors import EngineError, InputError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import update
from mindspore_lite.serving.build import Built, build

TENSOR = named("a", filled(1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net())


@pytest.fixture
def built(path: Path) -> Built:
    return build(ModelInput("MINDIR", path), spec_of(None, None, "a", "b"))


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (TENSOR, "weights must be list"),
        ({"a": TENSOR}, "weights must be list"),
        (None, "weights must be list"),
        ([TENSOR], "weight must be list"),
        ([[TENSOR], None], "weight must be list"),
        ([[filled(1)]], "weights element must be Tensor"),
        ([[TENSOR, "b"]], "weights element must be Tensor"),
    ],
)
def test_what_is_no_list_of_lists_of_tensors_is_refused(weights: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        update.checked(weights)


def test_the_type_is_checked_before_anything_else() -> None:
    """As in the original, where an unbuilt model complains of the argument."""
    for unbuilt in (mslite.Model(), mslite.ModelParallelRunner()):
        with pytest.raises(TypeError, match="weights must be list"):
            unbuilt.update_weights("none")  # type: ignore[arg-type]


def test_tuples_serve_as_lists() -> None:
    assert update.checked(((TENSOR,),)) == [[TENSOR]]


def test_names_become_those_of_the_file_and_arrays_lie_where_kernels_want_them(
    built: Built,
) -> None:
    room = np.zeros(SIDE * SIDE + 1, np.float32)[1:]  # 4 bytes past what malloc gave
    given = room.reshape(SIDE, SIDE)
    found = update.replacements(built, [[named("Default/a-Dense", given)]])
    assert list(found) == ["a"]
    (array,) = found.values()
    assert array.ctypes.data % ALIGNMENT == 0
    assert not np.shares_memory(array, given)


def test_weights_that_are_not_given_stay_as_they_are_now(built: Built) -> None:
    before = replace(built, replaced={"b": filled(5)})
    found = update.replacements(before, [[TENSOR]])
    np.testing.assert_array_equal(found["a"], filled(1))
    np.testing.assert_array_equal(found["b"], filled(5))


def test_no_lists_restore_all_weights_of_the_file(built: Built) -> None:
    before = replace(built, replaced={"b": filled(5)})
    assert update.replacements(before, []) == {}


def test_a_tensor_without_data_is_refused(built: Built) -> None:
    empty = mslite.Tensor(shape=[SIDE, SIDE], dtype=mslite.DataType.FLOAT32)
    empty.name = "a"
    with pytest.raises(InputError, match=r"weight 'a' holds no data; fill it by set_data_from"):
        update.replacements(built, [[empty]])


@pytest.mark.parametrize("groups", [[], [[TENSOR]]])
def test_a_model_none_of_whose_weights_may_change_says_how_to_let_them(
    path: Path, groups: list[list[mslite.Tensor]]
) -> None:
    model = changeable(path)
    with pytest.raises(EngineError) as caught:
        model.update_weights(groups)
    assert str(caught.value) == (
        "update weight failed! Error is no weight of this model may change; name those that may in "
        "a text file, one on a line, and build with 'variable_weights_file' of section "
        "[ascend_context] set to it"
    )
