"""Every row of cases_*.py, in every form that a file may have, against NumPy."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.op_case import Case
from support.running import assert_close, run

from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS

FILES = sorted(Path(__file__).parent.glob("cases_*.py"))
CASES: list[Case] = [
    case for file in FILES for case in importlib.import_module(f"ops.{file.stem}").CASES
]


def names() -> Iterator[str]:
    seen: Counter[str] = Counter()
    for case in CASES:
        seen[case.primitive] += 1
        yield f"{case.primitive}-{seen[case.primitive]}"


@pytest.mark.filterwarnings("ignore:computed with less precision")  # float64 where there is none
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
