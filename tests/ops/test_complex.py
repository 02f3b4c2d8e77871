"""ops/complex.py: its tables beside the main one."""

from __future__ import annotations

from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.complex import COMPLEX, PARTWISE
from mindspore_lite.ops.table import OPS


def test_complex_meanings_belong_to_primitives_of_the_table() -> None:
    assert sorted(PARTWISE - OPS.keys()) == []
    assert sorted(COMPLEX.keys() - OPS.keys()) == []
    assert sorted(PARTWISE & COMPLEX.keys()) == []
