"""What an op must say of an option that it does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support.op_case import Case

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir

# primitive, inputs as in a Case, attributes, words of the refusal
Row = tuple[str, Sequence[Any], Mapping[str, Any], str]


def assert_refused(row: Row) -> None:
    """In every form that a file may have: the words, and where in the network."""
    primitive, inputs, attributes, words = row
    case = Case(primitive, inputs, lambda *_: np.zeros(1, np.float32), attributes=attributes)
    for _, form in case.forms():
        model, _ = form.build()
        with pytest.raises(UnsupportedOpError, match="Default/op") as caught:
            from_mindir(model)
        assert words in str(caught.value)


def named(row: Row) -> str:
    """The name of such a test."""
    return f"{row[0]}-{row[3]}"
