"""Splits an onnx-ir model into its graph as small bytes and its large weights.

The bytes keep every tensor that shape inference may want to look at; only the large weights of the
main graph are left out, so their total may exceed protobuf's 2 GB.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.engines.prepare.alignment import aligned
from mindspore_lite.errors import EngineError

if TYPE_CHECKING:
    import onnx_ir as ir

LARGE_BYTES = 1024  # shapes, axes and scales are smaller, and stay where they are
NOWHERE = "not-stored"  # the file that left-out weights claim to lie in


@dataclass(frozen=True)
class Parts:
    """A model's graph without its large weights, and those weights by name."""

    skeleton: bytes
    weights: dict[str, np.ndarray]
    variable: tuple[str, ...] = ()  # those of the weights that may change
    most_folded: int = 0  # bytes that one node may be folded into; 0: nobody said

    @property
    def size_bytes(self) -> int:
        """What both take together."""
        return len(self.skeleton) + sum(array.nbytes for array in self.weights.values())


def take_apart(model: ir.Model, variable: Sequence[str] = ()) -> Parts:
    """Split a model, which is used up by it. Weights are not copied where they can be shared.

    Weights that may change are taken out however small they are.
    """
    import onnx_ir as ir

    _drop_unused(model.graph, but_for=variable)
    weights: dict[str, np.ndarray] = {}
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is None or value.name is None:
            continue
        if value.name not in variable and not (_is_large(tensor) and _is_used(value)):
            continue
        weights[value.name] = aligned(tensor.numpy())
        value.const_value = ir.ExternalTensor(
            NOWHERE,
            0,
            tensor.nbytes,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=value.name,
        )
    _bring_in(model, kept_out=weights.keys())
    try:
        skeleton = ir.serde.serialize_model(model).SerializeToString()
    except Exception as exc:  # protobuf's own errors; over 2 GB is the one that is known
        raise EngineError(
            f"the graph cannot be written as ONNX ({exc}); constants inside of nodes and subgraphs "
            "must stay under 2 GB together: make them weights of the main graph"
        ) from exc
    return Parts(skeleton, weights, tuple(variable))


def _drop_unused(graph: ir.Graph, but_for: Collection[str]) -> None:
    """Take out unused weights, which ONNX Runtime does not take from elsewhere."""
    for name, value in list(graph.initializers.items()):
        if not _is_used(value) and not value.is_graph_input() and name not in but_for:
            del graph.initializers[name]


def _is_used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _is_large(tensor: ir.TensorProtocol) -> bool:
    # types without a NumPy counterpart (strings, 4 and 8 bit floats) stay in the graph
    known = dtypes.BY_ONNX.get(int(tensor.dtype))
    return known is not None and "complex" not in known.name and tensor.nbytes >= LARGE_BYTES


def _bring_in(model: ir.Model, kept_out: Collection[str]) -> None:
    """Load every other tensor that lies in a file: the bytes will be read far from that file."""
    import onnx_ir as ir

    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            ours = graph is model.graph and value.name in kept_out
            if isinstance(tensor, ir.ExternalTensor) and not ours:
                value.const_value = _in_memory(tensor)
        for node in graph:
            for name, attribute in list(node.attributes.items()):
                if attribute.type == ir.AttributeType.TENSOR and isinstance(
                    attribute.value, ir.ExternalTensor
                ):
                    node.attributes[name] = ir.AttrTensor(name, _in_memory(attribute.value))


def _in_memory(tensor: ir.ExternalTensor) -> ir.TensorProtocol:
    import onnx_ir as ir

    return ir.Tensor(tensor.numpy().copy(), dtype=tensor.dtype, name=tensor.name)
