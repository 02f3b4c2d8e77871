"""Every row of cases_*.py, in every form that a file may have, against NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from ops import (
    cases_activation,
    cases_conv,
    cases_elementwise,
    cases_index,
    cases_matmul,
    cases_norm,
    cases_reduce,
    cases_resize,
    cases_shape,
)
from support.op_case import Case
from support.running import assert_close, run

from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS

CASES: list[Case] = [
    *cases_activation.CASES,
    *cases_conv.CASES,
    *cases_elementwise.CASES,
    *cases_index.CASES,
    *cases_matmul.CASES,
    *cases_norm.CASES,
    *cases_reduce.CASES,
    *cases_resize.CASES,
    *cases_shape.CASES,
]


def names() -> Iterator[str]:
    seen: Counter[str] = Counter()
    for case in CASES:
        seen[case.primitive] += 1
        yield f"{case.primitive}-{seen[case.primitive]}"


@pytest.mark.parametrize("case", CASES, ids=names())
def test_a_row_computes_what_numpy_computes(case: Case) -> None:
    wanted = case.wanted()
    for name, form in case.forms():
        model, feeds = form.build()
        got = run(model, *feeds)
        assert len(got) == len(wanted), f"{name}: {len(got)} outputs, wanted {len(wanted)}"
        for g, w in zip(got, wanted, strict=True):
            assert_close(g, w, name, case.loose)


def test_every_primitive_of_the_table_has_a_row() -> None:
    assert sorted(OPS.keys() - {case.primitive for case in CASES}) == []


def test_every_row_is_of_a_primitive_of_the_table() -> None:
    assert sorted({case.primitive for case in CASES} - OPS.keys()) == []
