"""What ONNX Runtime passes of the node tests inside the onnx package, passes through MindIR too.

tests/data/onnx_conformance.txt names them with their operators, in brackets those that no primitive
of MindSpore computes. The list may only grow; scripts/fixtures/onnx_conformance.py writes it anew.
At the end of a run pytest prints the counts (tests/conftest.py).
"""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from support.onnx_nodes import DirectFailure, listed, node_tests, run_directly, run_through_mindir

AGAIN = "run `python scripts/fixtures/onnx_conformance.py` and commit the list"
RELEASE, LISTED = listed()
IS_THE_LISTS_RELEASE = onnx.__version__ == RELEASE  # others have other tests by the same names

Record = Callable[[str, object], None]


@pytest.mark.parametrize("name", LISTED)
def test_a_node_test_passes_through_mindir(name: str, record_property: Record) -> None:
    test = node_tests().get(name)
    if test is None and not IS_THE_LISTS_RELEASE:
        pytest.skip(f"onnx {onnx.__version__} has no such test")
    assert test is not None, f"onnx has no test {name}; {AGAIN}"
    try:
        run_directly(test)
    except DirectFailure as exc:
        if IS_THE_LISTS_RELEASE:
            raise
        pytest.skip(f"onnx {onnx.__version__} has another test by this name: {exc}")
    record_property("onnx_node_test", LISTED[name])
    how = run_through_mindir(test)
    if IS_THE_LISTS_RELEASE:
        assert how == LISTED[name], f"it is written in another way now; if a better one, {AGAIN}"


def test_no_other_node_test_passes_directly(record_property: Record) -> None:
    passing, failing = [], []
    for name, test in node_tests().items():
        if name in LISTED:
            continue
        try:
            run_directly(test)
        except DirectFailure:
            continue
        try:
            run_through_mindir(test)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is told
            failing.append(f"{name}: {exc}")
            record_property("onnx_node_test", name)
        passing.append(name)
    assert failing == []
    if IS_THE_LISTS_RELEASE:
        assert passing == [], f"they pass and are not in the list; {AGAIN}"


def test_most_operators_are_written_as_primitives() -> None:
    forms = {form for line in LISTED.values() for form in line.split()[1:]}
    operators = {form.removeprefix("Custom(").removesuffix(")") for form in forms}
    assert len(operators & forms) >= 0.6 * len(operators)
