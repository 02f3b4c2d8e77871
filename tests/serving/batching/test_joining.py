"""batcher.py: requests become one, outputs are given back in parts, and models are judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import SessionInfo, Stop
from mindspore_lite.errors import EngineError, InputError
from mindspore_lite.serving.batching import joining

# --- rows and keys --------------------------------------------------------------------------------


def array(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_requests_that_differ_only_in_rows_have_one_key() -> None:
    rows, key = joining.rows_and_key([array(2, 3), array(2, 5, 6)])
    more, same = joining.rows_and_key([array(7, 3), array(7, 5, 6)])
    assert (rows, more) == (2, 7)
    assert key == same
    assert key is not None
    assert joining.rows_and_key([array(2, 4), array(2, 5, 6)])[1] != key


@pytest.mark.parametrize("inputs", [[array(2, 3), array(3, 3)], [array()], [array(2), array()], []])
def test_requests_whose_inputs_disagree_on_the_rows_are_computed_alone(
    inputs: list[np.ndarray],
) -> None:
    assert joining.rows_and_key(inputs) == (1, None)


# --- joining and parting --------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_what_is_joined_can_be_parted_again(counts: list[int]) -> None:
    requests = [
        [np.full((n, 2), i, np.float32), np.full((n,), -i, np.int64)] for i, n in enumerate(counts)
    ]
    parts = joining.parted(joining.joined(requests), counts)
    for part, request in zip(parts, requests, strict=True):
        for got, want in zip(part, request, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
            assert got.base is None, "memory of its own"
            assert got.flags.c_contiguous


@given(st.integers(1, 20), st.integers(1, 7))
def test_pieces_are_small_enough_and_make_the_whole(rows: int, most: int) -> None:
    inputs = [np.arange(2 * rows).reshape(rows, 2), np.arange(rows)]
    parts = list(joining.pieces(inputs, most))
    assert all(len(array) <= most for part in parts for array in part)
    for got, want in zip(joining.put_together(parts, rows), inputs, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("output", [array(3, 2), array(), array(0)])
def test_outputs_of_the_wrong_rows_are_refused(output: np.ndarray) -> None:
    with pytest.raises(EngineError, match=r"output 0 has shape .* for 4 rows: it does not carry"):
        joining.parted([output], [2, 2])
    with pytest.raises(EngineError, match=r"output 0 has shape .* for 8 rows"):
        joining.put_together([[np.atleast_1d(output)], [np.atleast_1d(output)]], 8)


# --- models ---------------------------------------------------------------------------------------


class Judged:
    """A session of one function."""

    def __init__(
        self,
        compute: Any,
        inputs: Sequence[tuple[int, ...]] = ((-1, 4),),
        outputs: Sequence[tuple[int, ...]] = ((-1, 4),),
        dtype: Any = np.float32,
    ) -> None:
        self.compute = compute
        kind = np.dtype(dtype)
        self.info = SessionInfo(
            tuple(TensorInfo(f"x{i}", kind, s) for i, s in enumerate(inputs)),
            tuple(TensorInfo(f"y{i}", kind, s) for i, s in enumerate(outputs)),
            mapped=True,
        )

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        found = self.compute(*inputs)
        return found if isinstance(found, list) else [found]

    def skeleton(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def one_size(x: np.ndarray) -> np.ndarray:
    if x.shape[1] != 32:
        raise InputError("only 32")
    return x


GOOD = {
    "rows of their own": Judged(lambda x: x * 2),
    "a softmax within rows": Judged(lambda x: softmax(x, 1)),
    "infinities and no numbers": Judged(lambda x: np.where(x > 0.5, np.inf, np.float32("nan"))),
    "another size within": Judged(one_size, ((-1, -1),)),
    "two inputs and outputs": Judged(
        lambda a, b: [a + b, a.sum(1)], ((-1, 4), (-1, 4)), ((-1, 4), (-1,))
    ),
    "whole numbers": Judged(lambda x: x + 1, dtype=np.int32),
    "truth values": Judged(np.logical_not, dtype=bool),
    "bfloat16": Judged(lambda x: x, dtype=ml_dtypes.bfloat16),
    "complex": Judged(lambda x: x * 1j, dtype=np.complex64),
    "nothing but zeros": Judged(lambda x: x * 0),
    "rounding": Judged(lambda x: x * np.float32(1 + 1e-6 * len(x))),
}


@pytest.mark.parametrize("session", GOOD.values(), ids=GOOD)
def test_models_of_independent_rows_are_accepted(session: Judged) -> None:
    joining.check_model(session)


BAD = {
    "a fixed batch": (Judged(None, ((2, 4),)), r"input 'x0' has shape \[2, 4\], wanted an open"),
    "no axes": (Judged(None, ((),)), r"input 'x0' has shape \[\], wanted an open batch"),
    "any rank": (Judged(None, ((-2,),)), r"input 'x0' has shape \[-2\]"),
    "an output without it": (Judged(None, outputs=((4,),)), r"output 'y0' has shape \[4\]"),
    "one result for all": (
        Judged(lambda x: x.sum(keepdims=True)),
        r"output 'y0' has shape \[1, 1\] for 2 rows",
    ),
    "twice the rows": (Judged(lambda x: np.repeat(x, 2, 0)), "for 2 rows"),
    "no axes at all": (Judged(lambda x: x.sum()), r"output 'y0' has shape \[\] for 2 rows"),
    "a softmax over rows": (Judged(lambda x: softmax(x, 0)), "depends on the other rows"),
    "the mean taken off": (Judged(lambda x: x - x.mean(0)), "depends on the other rows"),
    "rows sorted": (Judged(lambda x: x[::-1]), "depends on the other rows"),
    "whole numbers off by one": (
        Judged(lambda x: x + len(x), dtype=np.int32),
        "depends on the other rows",
    ),
    "infinite only together": (
        Judged(lambda x: x if len(x) < 2 else x + np.float32("inf")),
        "depends on the other rows",
    ),
    "other sizes within": (
        Judged(lambda x: x if len(x) < 2 else x[:, :2]),
        "depends on the other rows",
    ),
}


@pytest.mark.parametrize("buckets", [(8,), (3, 5), (1, 64)])
def test_a_model_is_tried_with_the_rows_that_it_is_prepared_for(buckets: tuple[int, ...]) -> None:
    sizes = set()

    def compute(x: np.ndarray) -> np.ndarray:
        sizes.add(len(x))
        return x * 2

    joining.check_model(Judged(compute), buckets)
    assert sizes <= set(buckets)
    for name in ("a softmax over rows", "the mean taken off", "rows sorted", "twice the rows"):
        with pytest.raises(EngineError, match="not possible with this model"):
            joining.check_model(BAD[name][0], buckets)


@pytest.mark.parametrize(("session", "words"), BAD.values(), ids=BAD)
def test_models_that_cannot_be_batched_are_refused_with_the_reason(
    session: Judged, words: str
) -> None:
    with pytest.raises(EngineError, match=words) as caught:
        joining.check_model(session)
    assert "batching (max_batch_rows) is not possible with this model: " in str(caught.value)
    assert "leave max_batch_rows 0" in str(caught.value)


def test_a_model_that_no_made_up_input_fits_is_refused() -> None:
    def never(x: np.ndarray) -> np.ndarray:
        raise InputError("not this one")

    with pytest.raises(EngineError, match=r"no made-up input could be run \(not this one\)"):
        joining.check_model(Judged(never, ((-1, -1),)))
