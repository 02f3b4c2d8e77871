"""inspection/operators.py, and the page that scripts/operators.py makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.inspection.operators import family_of, rows, writes_in_place
from mindspore_lite.ops.table import OPS

ROOT = Path(__file__).parent.parent.parent


def test_the_committed_page_is_current() -> None:
    command = [sys.executable, "scripts/operators.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_primitive_has_one_row_with_a_remark() -> None:
    names = [row.primitive for row in rows()]
    assert sorted(names) == sorted([*OPS, *STRUCTURE])
    assert [row.primitive for row in rows() if not row.remark] == []


def test_rows_are_sorted_by_family_and_name() -> None:
    keys = [(row.family, row.primitive) for row in rows()]
    assert keys == sorted(keys)


def test_the_family_is_the_file_that_registers_not_the_one_that_has_the_helper() -> None:
    assert OPS["ReLU"].meaning.__module__.endswith("elementwise")  # a plain rename
    assert family_of("ReLU") == "activation"


@pytest.mark.parametrize(
    ("primitive", "family"),
    [("Conv2D", "conv"), ("Load", "structure"), ("Return", "control"), ("FancyOp", None)],
)
def test_every_kind_of_primitive_has_its_family(primitive: str, family: str | None) -> None:
    assert family_of(primitive) == family


@pytest.mark.parametrize(
    ("primitive", "writes"),
    [("InplaceAddExt", True), ("Add", False), ("InplaceFancy", True), ("AssignFancy", True)],
)
def test_writers_are_known_by_the_table_or_by_their_names(primitive: str, writes: bool) -> None:
    assert writes_in_place(primitive) is writes
