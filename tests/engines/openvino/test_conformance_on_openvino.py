"""MindIR files and node tests of the onnx package on OpenVINO, a part of them in each run.

tests/data/openvino_exceptions.txt says of each that does not pass why that is so.
scripts/fixtures/openvino_conformance.py runs them all, which takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from support import onnx_nodes
from support.archives import cases
from support.openvino_nodes import exceptions, failure, run_file, run_node_test

PARTS = 48  # of the files, and of the node tests; the suite runs one of each


def test_files_give_what_mindspore_gave(case_path: Callable[[str], Path]) -> None:
    found = {}
    for name in sorted(cases())[::PARTS]:
        problem = failure(partial(run_file, case_path(name)))
        if bool(problem) != (name in exceptions()):
            found[name] = problem or "is an exception no more"
    assert found == {}


def test_node_tests_pass() -> None:
    found = {}
    for name in sorted(onnx_nodes.listed()[1])[::PARTS]:
        test = onnx_nodes.node_tests().get(name)
        problem = failure(partial(run_node_test, test)) if test is not None else ""
        if test is not None and bool(problem) != (name in exceptions()):
            found[name] = problem or "is an exception no more"
    assert found == {}


def test_few_are_exceptions_and_each_has_a_reason() -> None:
    files = exceptions().keys() & set(cases())
    nodes = exceptions().keys() & onnx_nodes.listed()[1].keys()
    assert files | nodes == exceptions().keys()
    assert len(files) <= 0.03 * len(cases())
    assert len(nodes) <= 0.11 * len(onnx_nodes.listed()[1])
    assert all(len(reason) > 20 for reason in exceptions().values())
