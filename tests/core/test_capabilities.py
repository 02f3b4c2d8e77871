"""The rows of the engines: their folders exist, and no other module knows them by name."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

import mindspore_lite
from mindspore_lite.core.capabilities import ENGINES, named, those_that

PACKAGE = Path(mindspore_lite.__file__).parent
# files outside engines/ that say such a word, and mean a package or a peer by it
OTHERS = {
    "bench/looks.py",  # how the lines of peers are drawn
    "bench/peers.py",  # runtimes to compare with
    "cli/doctor.py",  # packages of which it shows the version
    "conversion/from_pytorch.py",
    "core/foreign_arrays.py",  # tensors of PyTorch, too
    "server/repository/pbtxt.py",  # what Triton calls its backend
    "tensor.py",  # tensors of PyTorch
}


def strings(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_no_module_outside_the_engines_names_one() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "engines" and strings(path) & ENGINES.keys()
    }
    assert found == OTHERS | {"core/capabilities.py"}


@pytest.mark.parametrize("name", ENGINES)
def test_every_row_has_a_folder(name: str) -> None:
    row = ENGINES[name]
    assert row.name == name
    assert importlib.util.find_spec(f"mindspore_lite.engines.{name}.engine") is not None
    has_cards = importlib.util.find_spec(f"mindspore_lite.engines.{name}.cards") is not None
    assert has_cards == row.serves_cards


def test_the_usual_engines_are_those_of_the_cpu_and_of_cards() -> None:
    assert [named("").name, named("auto").name, named("", on_card=True).name] == [
        "onnxruntime",
        "onnxruntime",
        "torch",
    ]
    assert named("openvino").name == "openvino"


def test_engines_are_named_in_sentences() -> None:
    assert those_that(lambda one: "preferred_bf16" in one.cpu_precisions) == "openvino or torch"
