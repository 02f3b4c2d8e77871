"""A small transformer that guesses the next token: its weights, its graph, and it in NumPy.

The graph looks like one that PyTorch exports. A weight that is multiplied with has lost its name
there (`onnx::MatMul_3`), and nodes are called by their modules (`/layers.0/attn/q_proj/MatMul`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

import mindspore_lite as mslite

TOKENS, WIDTH, HEADS, LAYERS, LENGTH = 64, 32, 4, 2, 12

Weights = Mapping[str, np.ndarray]


def random_weights() -> dict[str, np.ndarray]:
    """Weights by the names of a PyTorch module; matrices are (out, in), as there."""
    rng = np.random.default_rng(7)
    shapes = {"embed.weight": (TOKENS, WIDTH), "place.weight": (LENGTH, WIDTH)}
    for layer in range(LAYERS):
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes[f"layers.{layer}.attn.{part}.weight"] = (WIDTH, WIDTH)
        shapes[f"layers.{layer}.fc1.weight"] = (4 * WIDTH, WIDTH)
        shapes[f"layers.{layer}.fc2.weight"] = (WIDTH, 4 * WIDTH)
    return {
        name: rng.standard_normal(shape, np.float32) * np.float32(shape[1] ** -0.5)
        for name, shape in shapes.items()
    }


def in_numpy(weights: Weights, tokens: np.ndarray) -> np.ndarray:
    """What the network computes: (rows, LENGTH) tokens in, a score of each next token out."""

    def norm(x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def heads(x: np.ndarray) -> np.ndarray:
        return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    x = weights["embed.weight"][tokens] + weights["place.weight"]
    for layer in range(LAYERS):
        w = {
            part: weights[f"layers.{layer}.{part}.weight"].T
            for part in ("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj", "fc1", "fc2")
        }
        y = norm(x)
        q, k, v = (heads(y @ w[f"attn.{part}_proj"]) for part in "qkv")
        scores = np.exp(q @ k.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5)
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)
        x = x + mixed.reshape(x.shape) @ w["attn.out_proj"]
        x = x + np.maximum(norm(x) @ w["fc1"], 0) @ w["fc2"]
    return norm(x) @ weights["embed.weight"].T


def write(path: Path, weights: Weights) -> None:
    """Write the network as a MindIR file; the converter prints that it succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        ir.save(_Graph(weights).model(), f"{folder}/model.onnx")
        mslite.Converter().convert(mslite.FmkType.ONNX, f"{folder}/model.onnx", str(path))


class _Graph:
    """Nodes and weights in the order in which they are made."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[ir.Node] = []
        self.held: list[ir.Value] = []

    def model(self) -> ir.Model:
        tokens = ir.Value(
            name="tokens", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(["rows", LENGTH])
        )
        embed = self.constant(self.weights["embed.weight"])
        x = self.op("/embed/Gather", embed, tokens)
        x = self.op("/Add", x, self.constant(self.weights["place.weight"]))
        for layer in range(LAYERS):
            x = self.layer(f"layers.{layer}", x)
        turned = self.op("/head/Transpose", embed, perm=[1, 0])
        scores = self.op("/head/MatMul", self.norm("/norm", x), turned)
        scores.name, scores.type = "scores", ir.TensorType(ir.DataType.FLOAT)
        graph = ir.Graph(
            [tokens], [scores], nodes=self.nodes, initializers=self.held,
            opset_imports={"": 17}, name="transformer",
        )  # fmt: skip
        return ir.Model(graph, ir_version=8)

    def layer(self, name: str, x: ir.Value) -> ir.Value:
        y = self.norm(f"/{name}/norm1", x)
        width = WIDTH // HEADS
        parts = {}
        for part, order in {"q": (0, 2, 1, 3), "k": (0, 2, 3, 1), "v": (0, 2, 1, 3)}.items():
            split = self.linear(f"{name}.attn.{part}_proj", y)
            split = self.op(f"/{name}/attn/{part}_split/Reshape", split, self.ints(HEADS, width))
            parts[part] = self.op(f"/{name}/attn/{part}_split/Transpose", split, perm=order)
        scores = self.op(f"/{name}/attn/MatMul", parts["q"], parts["k"])
        scores = self.op(f"/{name}/attn/Mul", scores, self.constant(np.float32(width**-0.5)))
        scores = self.op(f"/{name}/attn/Softmax", scores, axis=-1)
        mixed = self.op(f"/{name}/attn/mix/MatMul", scores, parts["v"])
        mixed = self.op(f"/{name}/attn/mix/Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = self.op(f"/{name}/attn/mix/Reshape", mixed, self.ints(WIDTH))
        x = self.op(f"/{name}/Add", x, self.linear(f"{name}.attn.out_proj", mixed))
        y = self.linear(f"{name}.fc1", self.norm(f"/{name}/norm2", x))
        y = self.linear(f"{name}.fc2", self.op(f"/{name}/Relu", y))
        return self.op(f"/{name}/Add_1", x, y)

    def linear(self, module: str, x: ir.Value) -> ir.Value:
        """A product with a matrix, which the exporter turns round and calls by a number."""
        weight = self.constant(np.ascontiguousarray(self.weights[f"{module}.weight"].T))
        scope = "/" + module.replace(".attn.", "/attn/").replace(".fc", "/fc")
        return self.op(f"{scope}/MatMul", x, weight)

    def norm(self, scope: str, x: ir.Value) -> ir.Value:
        ones = self.constant(np.ones(WIDTH, np.float32))
        return self.op(f"{scope}/LayerNormalization", x, ones, epsilon=1e-5)

    def ints(self, *last: int) -> ir.Value:
        """The shape (rows, LENGTH, *last)."""
        return self.constant(np.array([0, LENGTH, *last]))

    def constant(self, array: np.ndarray | np.generic) -> ir.Value:
        held = ir.tensor(np.asarray(array), name=f"onnx::MatMul_{len(self.held)}")
        kind = ir.TensorType(held.dtype)
        self.held.append(ir.Value(name=held.name, type=kind, shape=held.shape, const_value=held))
        return self.held[-1]

    def op(self, name: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        """Append a node, whose operator is the last part of its name; returns its output."""
        kind = name.rpartition("/")[2].partition("_")[0]
        result = ir.Value(name=f"{name}_output_0")
        self.nodes.append(ir.node(kind, inputs, attributes, outputs=[result], name=name))
        return result
