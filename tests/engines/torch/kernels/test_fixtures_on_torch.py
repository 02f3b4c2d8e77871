"""Files exported by MindSpore on torch, static and dynamic, against MindSpore's own outputs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.fixture_files import FILES
from support.torch_nodes import failures, run_file

FOLDERS = sorted({path.parent for path in FILES})
# Files that torch does not compute, and why; at most 3 % of them all.
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_give_what_mindspore_gave(folder: Path) -> None:
    found = {}
    for path in sorted(folder.glob("*.mindir")):
        problems = failures(partial(run_file, path))
        if path.stem in EXCEPTIONS:
            assert problems, f"{path.stem} is an exception no more"
        elif problems:
            found[path.stem] = problems
    assert found == {}


def test_few_files_are_exceptions() -> None:
    assert len(EXCEPTIONS) <= 0.03 * len(FILES)
    assert EXCEPTIONS.keys() <= {path.stem for path in FILES}
