"""Every ONNX operator of the table: the same numbers before and after a way through MindIR."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from support.onnx_case import OnnxCase, check

from mindspore_lite.ops.to_mindir import families  # noqa: F401 - fills the table
from mindspore_lite.ops.to_mindir.table import BACKWARDS

_FILES = sorted(Path(__file__).parent.glob("cases_*.py"))


def _rows() -> list[OnnxCase]:
    found: list[OnnxCase] = []
    for file in _FILES:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.CASES
    return found


ROWS = _rows()


@pytest.mark.parametrize("case", ROWS, ids=[f"{i}-{row}" for i, row in enumerate(ROWS)])
def test_an_operator_computes_the_same_through_mindir(case: OnnxCase, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_every_operator_of_the_table_has_a_row() -> None:
    written = {case.op_type for case in ROWS if not case.custom}
    assert sorted(set(BACKWARDS) - written) == []
