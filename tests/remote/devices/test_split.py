"""split.py: what carries the batch, how it is cut, and how outputs are joined or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import EngineError, InputError
from mindspore_lite.remote.devices import split
from mindspore_lite.remote.devices.split import SplitPlan

Shape = tuple[int, ...]


def infos(*shapes: Shape, letter: str = "x", dtype: Any = np.float32) -> list[TensorInfo]:
    kind = np.dtype(dtype)
    return [TensorInfo(f"{letter}{at}", kind, shape) for at, shape in enumerate(shapes)]


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)


def planned(
    declared: Sequence[Shape], shapes: Sequence[Shape], devices: int, scatter: Any = None
) -> SplitPlan:
    return split.plan(infos(*declared), [array(*shape) for shape in shapes], devices, scatter)


def shapes_of(plan: SplitPlan) -> list[list[Shape]]:
    """Of each part."""
    return [[a.shape for a in part] for part in plan.parts]


UNET = ((-1, 4, 8, 8), (-1,), (-1, 7, 16))


# --- cutting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "devices", "expected"),
    [
        (2, 2, (1, 1)),
        (5, 2, (3, 2)),
        (7, 3, (3, 2, 2)),
        (3, 8, (1, 1, 1)),
        (1, 4, ()),
        (0, 4, ()),
        (6, 1, ()),
    ],
)
def test_an_open_batch_is_cut_evenly_with_larger_parts_first(
    rows: int, devices: int, expected: tuple[int, ...]
) -> None:
    plan = planned([(-1, 3)], [(rows, 3)], devices)
    assert (plan.rows, plan.fixed) == (expected, False)
    assert shapes_of(plan) == [[(n, 3)] for n in expected or (rows,)]


def test_a_timestep_for_all_rows_is_sent_whole() -> None:
    plan = planned(UNET, [(5, 4, 8, 8), (1,), (5, 7, 16)], 2)
    assert plan.rows == (3, 2)
    assert shapes_of(plan) == [[(n, 4, 8, 8), (1,), (n, 7, 16)] for n in (3, 2)]


def test_a_timestep_for_each_row_is_cut_with_them() -> None:
    plan = planned(UNET, [(4, 4, 8, 8), (4,), (4, 7, 16)], 2)
    assert shapes_of(plan) == [[(2, 4, 8, 8), (2,), (2, 7, 16)]] * 2


@pytest.mark.parametrize("other", [(), (1,), (6,), (4, 4)], ids=str)
def test_scalars_and_inputs_of_a_fixed_size_are_sent_whole_beside_an_open_batch(
    other: Shape,
) -> None:
    plan = planned([(-1, 3), other], [(4, 3), other], 2)
    assert shapes_of(plan) == [[(2, 3), other]] * 2


def test_an_input_of_any_rank_is_sent_whole_unless_told_otherwise() -> None:
    declared, given_ = [(-1, 3), ANY_RANK], [(4, 3), (4, 5)]
    assert shapes_of(planned(declared, given_, 2)) == [[(2, 3), (4, 5)]] * 2
    assert shapes_of(planned(declared, given_, 2, {"x1": True})) == [[(2, 3), (2, 5)]] * 2
    assert planned([ANY_RANK], [(4,)], 2).rows == ()


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_a_fixed_batch_makes_parts_of_its_own_size_whatever_the_devices(devices: int) -> None:
    plan = planned([(2, 3), (2,)], [(6, 3), (6,)], devices)
    assert (plan.rows, plan.fixed) == ((2, 2, 2), True)
    assert shapes_of(plan) == [[(2, 3), (2,)]] * 3


def test_the_models_own_batch_is_not_split() -> None:
    plan = planned([(2, 3), ()], [(2, 3), ()], 2)
    assert (plan.rows, shapes_of(plan)) == ((), [[(2, 3), ()]])


def test_beside_a_fixed_batch_an_input_in_its_declared_shape_is_sent_whole() -> None:
    plan = planned([(1, 4, 8, 8), (1,), (1, 7, 16)], [(2, 4, 8, 8), (1,), (2, 7, 16)], 2)
    assert shapes_of(plan) == [[(1, 4, 8, 8), (1,), (1, 7, 16)]] * 2


def test_open_dims_behind_a_fixed_batch_may_have_any_size() -> None:
    assert shapes_of(planned([(1, -1)], [(2, 9)], 2)) == [[(1, 9)]] * 2


def test_a_fixed_and_an_open_input_are_cut_alike() -> None:
    plan = planned([(2, 3), (-1,), (-1, 5)], [(4, 3), (4,), (1, 5)], 2)
    assert (plan.rows, plan.fixed) == ((2, 2), True)
    assert shapes_of(plan) == [[(2, 3), (2,), (1, 5)]] * 2


def test_fixed_batches_of_different_sizes_are_cut_into_as_many_parts() -> None:
    plan = planned([(1, 3), (2, 5)], [(3, 3), (6, 5)], 2)
    assert plan.rows == (1, 1, 1)
    assert shapes_of(plan) == [[(1, 3), (2, 5)]] * 3


def test_parts_are_views_in_order() -> None:
    whole = array(5, 3)
    plan = split.plan(infos((-1, 3)), [whole], 3)
    for (part,) in plan.parts:
        assert np.shares_memory(part, whole)
        assert part.flags.c_contiguous
    np.testing.assert_array_equal(np.concatenate([p for (p,) in plan.parts]), whole)


def test_a_model_without_inputs_is_run_once() -> None:
    assert split.plan([], [], 4) == SplitPlan([[]], ())


# --- scatter --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scatter", [{"x1": False}, [None, False], (True, False)], ids=str)
def test_scatter_sends_an_input_whole(scatter: Any) -> None:
    plan = planned([(-1, 3), (-1, 3)], [(4, 3), (4, 3)], 2, scatter)
    assert shapes_of(plan) == [[(2, 3), (4, 3)]] * 2


def test_scatter_settles_which_of_two_sizes_is_the_batch() -> None:
    plan = planned([(-1, 3), (-1, 3)], [(4, 3), (6, 3)], 2, {"x0": False})
    assert shapes_of(plan) == [[(4, 3), (3, 3)]] * 2


def test_scatter_may_send_everything_whole() -> None:
    assert planned([(-1, 3)], [(4, 3)], 2, [False]).rows == ()
    assert planned([(2, 3)], [(4, 3)], 2, [False]).rows == ()


def test_scatter_may_say_what_is_found_anyway() -> None:
    asked = planned([(2, 3), (-1,)], [(4, 3), (4,)], 2, [True, True])
    assert shapes_of(asked) == shapes_of(planned([(2, 3), (-1,)], [(4, 3), (4,)], 2))
    assert planned([(2, 3)], [(2, 3)], 2, [True]).rows == ()


@pytest.mark.parametrize(
    ("scatter", "kind", "words"),
    [
        ({"y": True}, ValueError, r"scatter names \['y'\], but the model's inputs are \['x0', 'x1"),
        ([True], ValueError, r"scatter has 1 elements, wanted one for each of the model's 2"),
        (True, TypeError, "scatter must be dict by input name, list or tuple, but got .*bool"),
        ("x0", TypeError, "scatter must be dict by input name"),
        ({"x0": 1}, TypeError, "scatter of input 'x0' must be bool or None, but got .*int"),
        ([None, "no"], TypeError, "scatter of input 'x1' must be bool or None"),
        ({"x1": True}, InputError, r"scatter is True for input 'x1', but its shape is \[\], which"),
    ],
    ids=str,
)
def test_a_scatter_that_does_not_fit_is_refused(
    scatter: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        planned([(-1, 3), ()], [(4, 3), ()], 2, scatter)


# --- batches that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "shapes", "scatter", "words"),
    [
        ([(-1, 3), (-1, 3)], [(4, 3), (6, 3)], None, "'x0' has 4, 'x1' has 6; give all"),
        ([(-1, 3), (-1, 3)], [(4, 3), (0, 3)], None, "'x0' has 4, 'x1' has 0"),
        ([(-1, 3), (-1,)], [(4, 3), (1,)], [None, True], "'x0' has 4, 'x1' has 1"),
        ([(-1, 3), (-1,)], [(1, 3), (4,)], [True, None], "'x0' has 1, 'x1' has 4"),
        (
            [(1, 3), (2, 5)],
            [(4, 3), (4, 5)],
            None,
            r"'x0' has 4 \(4 times the model's 1\), 'x1' has 4 \(2 times the model's 2\)",
        ),
        ([(1, 3), (1, 5)], [(4, 3), (1, 5)], [None, True], r"'x1' has 1 \(1 times"),
        ([(2, 3), (-1, 5)], [(4, 3), (3, 5)], None, r"'x0' has 4 \(2 times .*, 'x1' has 3"),
    ],
)
def test_inputs_that_disagree_on_the_rows_are_named(
    declared: list[Shape], shapes: list[Shape], scatter: Any, words: str
) -> None:
    with pytest.raises(InputError, match=f"do not agree on the rows of the batch: .*{words}"):
        planned(declared, shapes, 2, scatter)


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ((2, 3), (3, 3)),  # no multiple
        ((2, 3), (1, 3)),
        ((2, 3), (0, 3)),
        ((0, 3), (2, 3)),
        ((2, 3), (4, 5)),  # another size behind the batch
    ],
)
def test_rows_that_make_no_batches_of_the_models_size_are_refused(
    declared: Shape, shape: Shape
) -> None:
    with pytest.raises(InputError, match=r"input 'x0' has shape .*, the model wants .*a multiple"):
        planned([declared], [shape], 2)
    assert planned([declared], [shape], 2, {"x0": False}).rows == (), "the model judges it then"


# --- joining --------------------------------------------------------------------------------------


def join(
    declared: Shape, *parts: np.ndarray, rows: Sequence[int], fixed: bool = False
) -> np.ndarray:
    outputs = infos(declared, letter="y", dtype=parts[0].dtype)
    (found,) = split.joined(outputs, [[part] for part in parts], rows, fixed=fixed)
    return found


NAN = np.array([[0.5, np.nan]], np.float32)


@pytest.mark.parametrize("times", [1, 3])
def test_an_output_that_follows_the_rows_is_put_together(times: int) -> None:
    whole = array(5 * times, 2)
    found = join((-1, 2), whole[: 3 * times], whole[3 * times :], rows=(3, 2))
    np.testing.assert_array_equal(found, whole)
    assert found.base is None


@pytest.mark.parametrize("declared", [ANY_RANK, (-1, -1)])
def test_an_output_of_any_shape_may_carry_the_batch(declared: Shape) -> None:
    assert join(declared, array(1, 2), array(1, 2), rows=(1, 1)).shape == (2, 2)


def test_equal_rows_stay_as_many_as_they_are() -> None:
    assert join((-1, 2), array(2, 2), array(2, 2), rows=(2, 2)).shape == (4, 2)
    assert join((1, 2), array(1, 2), array(1, 2), rows=(1, 1), fixed=True).shape == (2, 2)


@pytest.mark.parametrize("declared", [(4, 2), (-1, 2)], ids=str)
def test_an_output_of_a_fixed_batch_may_be_a_multiple_of_it(declared: Shape) -> None:
    found = join(declared, array(4, 2), array(4, 2) + 1, rows=(2, 2), fixed=True)
    np.testing.assert_array_equal(found, np.concatenate([array(4, 2), array(4, 2) + 1]))


@pytest.mark.parametrize(
    ("declared", "value", "fixed"),
    [
        ((), np.float32(3), False),
        ((), np.float32("nan"), True),
        ((2, 2), NAN.repeat(2, 0), False),  # open batch, fixed output: a table, not rows
        ((3,), array(3), True),  # 3 is no multiple of 2
        ((-1,), array(3), False),
        ((-1, 6), array(0, 6), False),
        ((2, 0), array(2, 0), False),
        ((3,), array(3, dtype=ml_dtypes.bfloat16), False),
        ((3,), array(3, dtype=bool), False),
    ],
)
def test_an_output_without_the_batch_is_returned_once(
    declared: Shape, value: np.ndarray, fixed: bool
) -> None:
    first, second = np.array(value), np.array(value)
    assert join(declared, first, second, rows=(2, 2), fixed=fixed) is first


@pytest.mark.parametrize(
    ("declared", "first", "second", "fixed"),
    [
        ((), np.float32(1), np.float32(2), False),
        ((), np.float32(0), np.float32(-0.0), False),
        ((2, 2), array(2, 2), array(2, 2) + 1, False),
        ((3,), array(3), array(3) + 1, True),
        ((-1, 6), array(3, 6), array(5, 6), False),  # as many as were found
        ((-1, 6), array(2, 6), array(4, 6), False),
        ((-1, 6), array(2, 6), array(0, 6), False),
        ((-1, -1), array(2, 6), array(2, 5), False),  # another size behind the batch
        ((-1, 2), array(2, 2), array(2, 2, dtype=np.float64), False),
        (ANY_RANK, array(2, 2), array(4), False),
    ],
)
def test_an_output_that_differs_without_the_batch_is_refused(
    declared: Shape, first: np.ndarray, second: np.ndarray, fixed: bool
) -> None:
    with pytest.raises(
        EngineError, match=r"output 'y0' cannot be .* for parts of 2 rows"
    ) as caught:
        join(declared, np.asarray(first), np.asarray(second), rows=(2, 2), fixed=fixed)
    for words in ("yet differs between parts", "predict_parts()", "scatter="):
        assert words in str(caught.value)


@pytest.mark.parametrize("fixed", [True, False])
def test_a_table_that_might_be_rows_is_refused(fixed: bool) -> None:
    """Positions 0, 1, 2, 3 of two parts: one list for all rows, or two positions for each row."""
    with pytest.raises(EngineError, match="may be one for all rows as well as some for each"):
        join((4,) if fixed else (-1,), array(4), array(4), rows=(2, 2), fixed=fixed)


def test_a_refusal_of_many_parts_shows_a_few_shapes() -> None:
    parts = [array(n) for n in range(1, 9)]
    with pytest.raises(
        EngineError, match=r"\[1\], \[2\], \[3\], \[4\], \.\.\. for parts of 3 or 2"
    ):
        join((-1,), *parts, rows=(3, 3, 2, 2, 2, 2, 2, 2))


def test_what_was_not_split_is_returned_as_it_is() -> None:
    outputs = infos((-1, 2), (3,), letter="y")
    part = [array(4, 2), array(3)]
    found = split.joined(outputs, [part], (), fixed=False)
    assert [id(a) for a in found] == [id(a) for a in part]


# --- there and back -------------------------------------------------------------------------------

DTYPES = st.sampled_from([np.float32, np.int64, np.bool_, ml_dtypes.bfloat16, np.float16])
REST = st.lists(st.integers(0, 3), max_size=2).map(tuple)


def model(arrays: Sequence[np.ndarray], carried: int) -> list[np.ndarray]:
    """Each row for itself, the numbers of the rows twice, and what all rows share."""
    return [
        *[np.logical_not(a) if a.dtype == bool else a + a for a in arrays[:carried]],
        np.repeat(arrays[0], 2),
        *arrays[carried:],
    ]


@given(data=st.data(), devices=st.integers(1, 5), dtype=DTYPES, fixed=st.booleans())
def test_parts_of_any_request_give_what_it_gives_whole(
    data: st.DataObject, devices: int, dtype: Any, fixed: bool
) -> None:
    batch = data.draw(st.integers(1, 3)) if fixed else -1
    rows = batch * data.draw(st.integers(1, 4)) if fixed else data.draw(st.integers(0, 9))
    carried = [(), *data.draw(st.lists(REST, max_size=3))]  # the first one numbers the rows
    # of a fixed batch an output of the batch's size always counts as rows, so none is shared then
    shared = [] if fixed else data.draw(st.lists(REST, max_size=2))

    rng = np.random.default_rng(0)
    arrays = [array(rows, dtype=np.int64)]
    arrays += [rng.integers(0, 99, (rows, *rest)).astype(dtype) for rest in carried[1:]]
    arrays += [rng.integers(0, 99, rest).astype(dtype) for rest in shared]
    inputs = infos(*[(batch, *rest) for rest in carried], *shared)
    twice = 2 * batch if fixed else -1
    outputs = infos(*[i.shape for i in inputs[: len(carried)]], (twice,), *shared, letter="y")

    plan = split.plan(inputs, arrays, devices)
    parts = [model(part, len(carried)) for part in plan.parts]
    found = split.joined(outputs, parts, plan.rows, fixed=plan.fixed)
    for got, want in zip(found, model(arrays, len(carried)), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert got.tobytes() == want.tobytes()


@given(rows=st.integers(0, 40), devices=st.integers(1, 12))
def test_rows_are_spread_as_evenly_as_can_be(rows: int, devices: int) -> None:
    plan = planned([(-1,)], [(rows,)], devices)
    sizes = plan.rows or (rows,)
    assert sum(sizes) == rows
    assert len(sizes) == max(1, min(rows, devices))
    assert max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes, reverse=True)
