"""Model files that ask for far more than their size: each is an attack on whoever builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from support.onnx_graphs import BOOL, F32, I64, body, model, node

X = ("x", F32, (2, 2))
_OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]


def functions(count: int, calls: int) -> onnx.ModelProto:
    """So many functions, each of which calls the one before as often as `calls` says."""
    names = ["a", *(f"t{i}" for i in range(calls - 1)), "b"]

    def function(number: int) -> onnx.FunctionProto:
        op, domain = (f"f{number - 1}", "f") if number else ("Neg", "")
        nodes = [node(op, [names[i]], [names[i + 1]], domain=domain) for i in range(calls)]
        return helper.make_function("f", f"f{number}", ["a"], ["b"], nodes, _OPSETS)

    last = node(f"f{count - 1}", ["x"], ["y"], domain="f")
    return model([last], [X], ["y"], 20, {"f": 1}, [function(i) for i in range(count)])


def affine_grid(size: int) -> onnx.ModelProto:
    """A constant of 8 x size x size bytes."""
    nodes = [
        node("AffineGrid", ["theta", "size"], ["grid"], name="bomb"),
        node("ReduceSum", ["grid"], ["sum"], keepdims=0),
        node("Add", ["x", "sum"], ["y"]),
    ]
    theta, sizes = np.ones((1, 2, 3), np.float32), np.asarray([1, 1, size, size])
    return model(nodes, [X], ["y"], 20, theta=theta, size=sizes)


def endless_loop(rows: int | str = 2) -> onnx.ModelProto:
    """A Loop whose condition stays true."""
    inner = body(
        [node("Identity", ["c"], ["d"]), node("Sin", ["v"], ["w"])],
        [("i", I64, ()), ("c", BOOL, ()), ("v", F32, None)],
        [("d", BOOL, ()), ("w", F32, None)],
    )
    loop = node("Loop", ["", "true", "x"], ["y"], body=inner)
    port = (F32, (rows, 2))
    return model([loop], [("x", *port)], [("y", *port)], 20, true=np.array(True))


def written(folder: Path, proto: Any) -> str:
    """The path of the model as a file."""
    path = folder / "bomb.onnx"
    onnx.save(proto, path)
    return str(path)
