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


def _on_constants(last: Any, sizes: dict[str, list[int]], opset: int = 21) -> onnx.ModelProto:
    """A node `bomb` on constants of ones; its result `k` is added up."""
    one = helper.make_tensor("one", F32, [1], [1.0])
    nodes = [node("ConstantOfShape", [f"{n}_size"], [n], value=one) for n in sizes]
    nodes += [
        last,
        node("ReduceMax", ["k"], ["most"], keepdims=0),
        node("Add", ["x", "most"], ["y"]),
    ]
    weights = {f"{n}_size": np.asarray(size) for n, size in sizes.items()}
    return model(nodes, [X], ["y"], opset, **weights)


def scratch() -> dict[str, onnx.ModelProto]:
    """Constants whose computing takes over a gigabyte, or over a minute; the results are small."""
    row, conv = [1, 1, 20_000], {"pads": [19_990, 19_990], "name": "bomb"}
    lrn = node("LRN", ["a"], ["k"], size=100_001, name="bomb")
    edges = node("Einsum", list("aaabbb"), ["k"], equation="i,j,k,ij,jk,ik->", name="bomb")
    heads = {"q_num_heads": 1, "kv_num_heads": 1, "name": "bomb"}
    lstm = node("LSTM", ["a", "w", "r"], ["", "k"], hidden_size=256, name="bomb")
    return {
        "ConvTranspose": _on_constants(
            node("ConvTranspose", ["a", "b"], ["k"], **conv), {"a": row, "b": row}
        ),
        "LRN": _on_constants(lrn, {"a": [1, 1, 60, 60]}),
        "Einsum": _on_constants(edges, {"a": [750], "b": [750, 750]}),
        "Attention": _on_constants(
            node("Attention", ["a", "a", "a"], ["k"], **heads), {"a": [1, 20_000, 8]}, 23
        ),
        "LSTM": _on_constants(lstm, {"a": [400_000, 1, 1], "w": [1, 1024, 1], "r": [1, 1024, 256]}),
        "Unique": model(
            [
                node("Range", ["start", "end", "step"], ["a"]),
                node("Unique", ["a"], ["u"], name="bomb"),
                node("ReduceMax", ["u"], ["most"], keepdims=0),
                node("Add", ["x", "most"], ["y"]),
            ],
            [X],
            ["y"],
            start=np.float32(0),
            end=np.float32(16_000_000),
            step=np.float32(1),
        ),
        "Det": _on_constants(node("Det", ["a"], ["k"], name="bomb"), {"a": [1, 12_000, 12_000]}),
    }


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
