"""Random ONNX models of all kinds of nodes."""

from __future__ import annotations

import onnx
from support import random_bodies, random_elementwise, random_layers, random_shapes
from support.random_nodes import MAKERS, WEIGHTS
from support.random_onnx import Made, random_model

KINDS = (random_elementwise, random_shapes, random_layers, random_bodies)  # they fill the list


def model_of(seed: int) -> Made:
    """The model of a seed."""
    return random_model(seed, MAKERS, WEIGHTS)


def operators(model: onnx.ModelProto) -> set[str]:
    """The operators of a model, those of bodies included."""
    found, graphs = set(), [model.graph]
    while graphs:
        for node in graphs.pop().node:
            found.add(node.op_type)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return found
