"""What arithmetic, reductions, sorting, losses and random numbers refuse."""

from __future__ import annotations

import pytest
from support.op_case import K, S
from support.refusal import Row, assert_refused, named

ROWS: list[Row] = [
    ("DivMod", [(2,), (2,), K(3)], {}, "rounding_mode 3 is not supported"),
    ("SmoothL1Loss", [(2,), (2,)], {"reduction": "median"}, "reduction 'median' is not supported"),
    ("BitwiseOrScalar", [(2,), K(1)], {}, "BitwiseOrScalar of float32 is not supported"),
    ("Histogram", [(9,)], {"bins": 2**30}, "1073741824 bins, at most"),
    ("UniformReal", [K((2**20, 2**20))], {}, "1099511627776 random numbers, at most"),
    ("RandpermExt", [K(2**40), K(0), K(0), K(35)], {}, "1099511627776 random numbers, at most"),
    ("Mvlgamma", [(3,)], {"p": 2**20}, "1048576 dimensions, at most"),
    ("Kthvalue", [(5,), S(2)], {}, "k must be one constant number"),
    ("CumProd", [(2, 3), K(2)], {}, "axis 2 does not exist in a tensor of 2 dims"),
    ("NanToNum", [(2,)], {"nan": "none"}, "replacement must be one constant number"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_an_option_that_is_not_implemented_is_refused_in_words(row: Row) -> None:
    assert_refused(row)
