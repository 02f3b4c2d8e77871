"""Files exported by MindSpore on torch, static and dynamic, against MindSpore's own outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.archives import cases
from support.torch_nodes import failures, run_file

FAMILIES = sorted({case.partition("/")[0] for case in cases()})
# Files that torch does not compute, and why; at most 3 % of them all.
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("family", FAMILIES)
def test_files_give_what_mindspore_gave(family: str, case_path: Callable[[str], Path]) -> None:
    found = {}
    for path in (case_path(case) for case in cases() if case.startswith(f"{family}/")):
        problems = failures(partial(run_file, path))
        if path.stem in EXCEPTIONS:
            assert problems, f"{path.stem} is an exception no more"
        elif problems:
            found[path.stem] = problems
    assert found == {}


def test_few_files_are_exceptions() -> None:
    assert len(EXCEPTIONS) <= 0.03 * len(cases())
    assert EXCEPTIONS.keys() <= {case.partition("/")[2] for case in cases()}
