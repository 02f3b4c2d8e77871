"""What predict() gives back, by a Model and by a runner: the promises are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import (
    REFUSED_OUTPUTS,
    arrays,
    built,
    built_runner,
    dense_net,
    dense_values,
    written,
)

import mindspore_lite as mslite

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Dense = mslite.Model | mslite.ModelParallelRunner


@pytest.fixture(params=["model", "runner, quick lane", "runner, one worker"])
def dense(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Dense]:
    path = written(tmp_path / "dense.mindir", dense_net())
    if request.param == "model":
        made: Dense = built(path)
    else:
        made = built_runner(path, **({"workers_num": 1} if "worker" in request.param else {}))
    with made:
        yield made


def test_outputs_carry_name_shape_type_and_data(dense: Dense) -> None:
    (output,) = dense.predict([X])
    (meta,) = dense.get_outputs()
    assert (output.name, output.shape, output.dtype) == (meta.name, meta.shape, meta.dtype)


def test_outputs_of_an_earlier_run_stay_as_they_are(dense: Dense) -> None:
    (first,) = arrays(dense.predict([X]))
    kept = first.copy()
    for scale in range(2, 6):
        dense.predict([X * np.float32(scale)])
    np.testing.assert_array_equal(first, kept)


def test_outputs_that_callers_bring_are_filled(dense: Dense) -> None:
    memory = np.zeros((2, 4), np.float32)
    mine = mslite.Tensor(memory)
    (returned,) = dense.predict([X], [mine])
    assert returned is mine
    np.testing.assert_array_equal(memory, dense_values(X))
    dense.predict([X * 2], outputs=(mine,))
    np.testing.assert_array_equal(memory, dense_values(X * 2))


@pytest.mark.parametrize(("outputs", "kind", "words"), REFUSED_OUTPUTS)
def test_outputs_that_do_not_fit_are_refused(
    dense: Dense, outputs: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        dense.predict([X], outputs)
