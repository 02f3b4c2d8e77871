"""Damaged files: looking into one ends in facts and a page, or in an error of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import DATA

from mindspore_lite.errors import ModelFileError
from mindspore_lite.inspection.examine import examine
from mindspore_lite.inspection.page import page

NAMES = ("io_nested_tuple", "inplace_chain", "mint_reduce", "call_lazy_inline_tuple", "gru")
FUZZ = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_changed_bytes_end_in_facts_or_our_error(
    tmp_path: Path, name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray((DATA / "nets" / f"{name}.mindir").read_bytes())
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    path = tmp_path / "damaged.mindir"
    path.write_bytes(data)
    try:
        found = examine(path)
    except ModelFileError:
        return
    assert page(found.facts, found.sketches()).endswith("</html>\n")
