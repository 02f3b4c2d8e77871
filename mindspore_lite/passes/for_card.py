"""The passes that prepare a model for lowering to torch, in order.

What comes out may hold operators of our own domain, see fuse_attention.py and fuse_linear.py, and
a newer opset, see fuse_layer_norm.py: it is for the torch engine alone.

Three products of one input with constant weights, as of queries, keys and values, stay three: their
weights would have to become one, under a name that nobody could update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import onnx_ir as ir

from mindspore_lite.passes.fuse_attention import fuse_attention
from mindspore_lite.passes.fuse_gelu import fuse_gelu
from mindspore_lite.passes.fuse_layer_norm import fuse_layer_norm
from mindspore_lite.passes.fuse_linear import fuse_linear
from mindspore_lite.passes.optimise import optimise

_FUSIONS = (fuse_layer_norm, fuse_gelu, fuse_attention, fuse_linear)


def prepare(model: ir.Model, keep: Collection[str] = ()) -> None:
    """Optimise and fuse in place; weights of the names in `keep` are not computed with."""
    with _held_open(model, keep):
        optimise(model, "general")
        if sum(fuse(model) for fuse in _FUSIONS):
            optimise(model, "general")  # what the fusions left over


@contextmanager
def _held_open(model: ir.Model, names: Collection[str]) -> Iterator[None]:
    """Weights as inputs meanwhile, which no pass takes for constants."""
    weights = [model.graph.initializers[name] for name in names]
    opened = [weight for weight in weights if not weight.is_graph_input()]
    model.graph.inputs.extend(opened)
    try:
        yield
    finally:
        for weight in opened:
            model.graph.inputs.remove(weight)
