"""`mslite inspect MODEL --weights`: each weight, its names, how it lies, whether it may change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode, tensor_type
from support.models import written
from support.onnx_graphs import BOOL, F32, body, model, node

Run = Callable[..., Any]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    then = body([node("Identity", ["inner"], ["t"])], [], [("t", F32, None)], inner=ones(2, 4))
    other = body([node("Identity", ["z"], ["e"])], [], [("e", F32, None)])
    made = model(
        [
            node("MatMul", ["x", "onnx::MatMul_1"], ["h"], name="/enc/fc/MatMul"),
            node("Add", ["h", "enc.fc.bias"], ["z"], name="/enc/fc/Add"),
            node("Reshape", ["z", "sizes"], ["r"]),
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        [("x", F32, [2, 3]), ("c", BOOL, [])],
        ["y", "r"],
        **{
            "onnx::MatMul_1": ones(3, 4),
            "enc.fc.bias": ones(4),
            "sizes": np.array([4, 2]),
            "left": ones(2, 2),
        },
    )
    return written(tmp_path / "model.onnx", made.SerializeToString())


def test_the_table_has_a_row_for_each_weight(mslite: Run, path: Path) -> None:
    done = mslite("inspect", str(path), "--weights")
    assert done.code == 0
    rows = [line.split("  ") for line in done.out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    inside = "no: it lies inside a branch or a loop, where no weight can change"
    assert cells == [
        ["weight", "framework's name", "shape", "dtype", "layout", "may change"],
        ["onnx::MatMul_1", "enc.fc.weight", "[3, 4]", "float32", "transposed", "yes"],
        ["enc.fc.bias", "enc.fc.bias", "[4]", "float32", "same", "yes"],
        ["left", "-", "[2, 2]", "float32", "unknown", "no: the graph does not use this weight"],
        ["inner", "-", "[2, 4]", "float32", "unknown", inside],
    ]


@pytest.mark.parametrize("more", [[], ["--sandbox"]])
def test_programs_get_json(mslite: Run, path: Path, more: list[str]) -> None:
    found = json.loads(mslite("inspect", str(path), "--weights", "--json", *more).out)
    assert found.keys() == {"file", "weights"}
    assert found["weights"][0] == {
        "name": "onnx::MatMul_1",
        "framework_name": "enc.fc.weight",
        "shape": [3, 4],
        "dtype": "float32",
        "layout": "transposed",
        "may_change": True,
        "reason": "",
    }
    assert [row["may_change"] for row in found["weights"]] == [True, True, False, False]


def test_files_that_cannot_be_listed_say_why(mslite: Run, path: Path, tmp_path: Path) -> None:
    done = mslite("inspect", str(tmp_path / "none.onnx"), "--weights")
    assert (done.code, "No such file" in done.err) == (2, True)
    done = mslite("inspect", str(path), "--weights", "--html", "page.html")
    assert (done.code, "leave --weights or --html out" in done.err) == (2, True)
    net = Net()
    fancy = net.call("FancyOp", net.input("x", (2, 3)), type=tensor_type((2, 3)))
    unknown = written(tmp_path / "fancy.mindir", encode(net.model(fancy)))
    done = mslite("inspect", str(unknown), "--weights")
    assert (done.code, "FancyOp" in done.err) == (1, True)
