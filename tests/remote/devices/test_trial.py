"""trial.py: models whose rows can be computed apart, and those whose cannot, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineError, InputError, StoppedError
from mindspore_lite.remote.devices import trial

Shape = tuple[int, ...]
ROWS = [(-1, 4)]


def difference(
    compute: Callable[..., Any], inputs: Sequence[Shape] = ROWS, outputs: Sequence[Shape] = ROWS
) -> str:
    """What the trial says of a model that is one function, cut in the likeliest way that runs."""

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = compute(*arrays)
        return [np.asarray(a) for a in (found if isinstance(found, list) else [found])]

    kind = np.dtype(np.float32)
    taken = [TensorInfo(f"x{i}", kind, shape) for i, shape in enumerate(inputs)]
    given = [TensorInfo(f"y{i}", kind, shape) for i, shape in enumerate(outputs)]
    refusal = None
    for cuts in trial.usual_cuts(taken):
        try:
            return trial.difference(taken, given, cuts, run)
        except EngineError as exc:
            refusal = exc
    if refusal is not None:
        raise refusal
    return ""


def one_step(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """A model that takes one timestep for all rows, though it declares any number."""
    if len(step) != 1:
        raise InputError("one step only")
    return x + step


GOOD = {
    "rows of their own": (lambda x: x * 2, ROWS, ROWS),
    "several values for a row": (lambda x: x.repeat(3, 0), ROWS, ROWS),
    "a table beside the rows": (lambda x: [x, np.eye(3)], ROWS, [(-1, 4), (3, 3)]),
    "a table whose values are no numbers": (lambda x: [x, np.nan], ROWS, [(-1, 4), ()]),
    "an input for all rows": (lambda x, t: x + t, [(-1, 4), (1,)], ROWS),
    "a scalar for all rows": (lambda x, t: x + t, [(-1, 4), ()], ROWS),
    "a step for each row": (lambda x, t: x + t[:, None], [(-1, 4), (-1,)], ROWS),
    "a step for all rows": (one_step, [(-1, 4), (-1,)], ROWS),
    "open dims within": (lambda x: x.sum(1), [(-1, -1)], [(-1,)]),
    "an input of any rank": (lambda x, t: x + t.sum(), [(-1, 4), (-2,)], ROWS),
}


@pytest.mark.parametrize(("compute", "inputs", "outputs"), GOOD.values(), ids=GOOD)
def test_models_of_independent_rows_may_be_split(
    compute: Callable[..., Any], inputs: list[Shape], outputs: list[Shape]
) -> None:
    assert difference(compute, inputs, outputs) == ""


BAD = {
    "the mean taken off": (lambda x: x - x.mean(0), ROWS, "'y0' of a row depends on the other"),
    "rows in another order": (lambda x: x[::-1], ROWS, "'y0' of a row depends on the other"),
    "how many there are": (lambda x: np.float32(len(x)), [()], "'y0' of a row depends on"),
    "a mean of all rows": (lambda x: x.mean(), [()], "'y0' cannot be joined"),
    "a sum that keeps its axis": (
        lambda x: x.sum(0, keepdims=True),
        ROWS,
        "'y0' has shape [1, 4] for two rows and [2, 4] when they are computed apart",
    ),
    "a list of positions": (lambda x: np.arange(16), [(-1,)], "'y0' cannot be joined"),
    "as many as are found": (lambda x: np.flatnonzero(x > 0.5), [(-1,)], "'y0' "),
}


@pytest.mark.parametrize(("compute", "outputs", "words"), BAD.values(), ids=BAD)
def test_models_that_cannot_be_split_are_told_with_the_reason(
    compute: Callable[..., Any], outputs: list[Shape], words: str
) -> None:
    assert words in difference(compute, outputs=outputs)


def test_inputs_that_do_not_carry_rows_stay_the_same() -> None:
    seen: list[np.ndarray] = []

    def compute(x: np.ndarray, table: np.ndarray) -> np.ndarray:
        seen.append(table)
        return x + table.sum()

    assert difference(compute, [(-1, 4), (3, 5)]) == ""
    assert [table.shape for table in seen] == [(3, 5)] * 3
    for table in seen[1:]:
        np.testing.assert_array_equal(table, seen[0])


def test_a_model_without_an_open_batch_is_not_tried() -> None:
    def never(*_: np.ndarray) -> np.ndarray:
        raise AssertionError("it was run")

    assert difference(never, [(2, 4), (), (-2,)]) == ""


@pytest.mark.parametrize("inputs", [[(-1, -1)], [(-1,)], [(-1, 4), (-1,)]], ids=str)
def test_a_model_that_no_made_up_input_fits_is_not_judged(inputs: list[Shape]) -> None:
    def never(*_: np.ndarray) -> np.ndarray:
        raise InputError("not this one")

    with pytest.raises(EngineError, match=r"no made-up input could be run \(not this one\)"):
        difference(never, inputs)


def test_a_run_that_was_ended_is_not_tried_again() -> None:
    runs = 0

    def stopped(_: np.ndarray) -> np.ndarray:
        nonlocal runs
        runs += 1
        raise StoppedError("closed meanwhile")

    with pytest.raises(StoppedError):
        difference(stopped, [(-1, -1)])
    assert runs == 1
