"""Node tests of the onnx package on torch, with the shapes of their data and with open ones.

tests/data/torch_conformance.txt names those that pass; the list may only grow, and
scripts/fixtures/torch_conformance.py writes it anew. tests/data/torch_exceptions.txt says of each
that ONNX Runtime passes and torch does not why that is so.
"""

from __future__ import annotations

from functools import partial

import onnx
import pytest
from support import onnx_nodes
from support.onnx_nodes import node_tests
from support.torch_nodes import exceptions, failures, listed, run_node_test

RELEASE, LISTED = listed()
IS_THE_LISTS_RELEASE = onnx.__version__ == RELEASE  # others have other tests by the same names
BATCHES = 24  # of tests: each as one test of this file would cost more than what it does


@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_is_listed_passes(batch: int) -> None:
    found = {}
    for name in LISTED[batch::BATCHES]:
        test = node_tests().get(name)
        if test is None:
            assert not IS_THE_LISTS_RELEASE, f"onnx has no test {name}"
            continue
        if problems := failures(partial(run_node_test, test)):
            found[name] = problems
    assert found == {}


def test_what_onnxruntime_passes_is_listed_or_excused() -> None:
    known = set(LISTED) | set(exceptions())
    assert sorted(onnx_nodes.listed()[1].keys() - known) == []


def test_nothing_is_listed_and_excused() -> None:
    assert sorted(set(LISTED) & set(exceptions())) == []
    assert all(len(reason) > 8 for reason in exceptions().values())
