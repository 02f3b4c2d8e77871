"""The files of MindSpore 2.10 again, as older releases would have written them.

No file of those releases can be had here; their encodings are written by tests/support.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.archives import cases
from support.legacy_builder import encode_legacy
from support.mindir_builder import encode
from support.older_forms import attribute_form
from support.running import assert_close, fixture_arrays, run

from mindspore_lite.mindir.read import read, read_file
from mindspore_lite.mindir.records import Model

HOW = {"MindIR 1, MindSpore 1.7 to 2.2": encode, "MindSpore 1.6 and older": encode_legacy}
CASES = [
    f"{family}/{name}"
    for family, _, name in (case.partition("/") for case in cases())
    if family in ("ops", "nets", "models")
    # what is random or undefined cannot be compared; how a file is stored is another matter
    and not name.startswith(("act_RReLU", "mha_mask", "rand", "std_normal", "enc_", "split_"))
]


@pytest.mark.parametrize("release", HOW)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace("/", "-"))
def test_an_older_form_computes_the_same(
    case: str, release: str, case_path: Callable[[str], Path]
) -> None:
    path = case_path(case)
    write: Callable[[Model], bytes] = HOW[release]
    data = write(attribute_form(read_file(path)))
    inputs, wanted = fixture_arrays(path.with_suffix(".npz"))
    for got, want in zip(run(read(memoryview(data)), *inputs), wanted, strict=True):
        assert_close(got, want, path.stem)


def test_most_files_are_tried() -> None:
    assert len(CASES) > 250
