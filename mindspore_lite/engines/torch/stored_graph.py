"""Stores a prepared graph in a folder of the cache, and maps it from there.

Weights lie in one file, which is mapped once: a mapping for each of them would hold a descriptor
each. Small tensors stay in the graph, but for weights that may change.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.core.dtypes import BY_ONNX
from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.engines.prepare.skeleton import LARGE_BYTES


def write(folder: Path, model: ir.Model, skeleton: bytes) -> None:
    """Write model.onnx, weights.bin and skeleton.onnx; the model's weights are left as files."""
    rows = read_json(model.metadata_props.get(variable.KEY, "[]"))
    changing = {row[0] for row in rows}
    offsets: dict[str, int] = {}
    with open(folder / artefact.WEIGHTS, "wb") as data:
        for name, value in model.graph.initializers.items():
            tensor = value.const_value
            if tensor is None or not (name in changing or _is_large(tensor)):
                continue
            data.write(bytes(-data.tell() % ALIGNMENT))
            offsets[name] = data.tell()
            data.write(np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data)
            value.const_value = ir.ExternalTensor(
                artefact.WEIGHTS,
                offsets[name],
                tensor.nbytes,
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=name,
            )
    if rows:
        model.metadata_props[variable.KEY] = json.dumps([[*r, offsets[r[0]]] for r in rows])
    if not offsets:
        (folder / artefact.WEIGHTS).unlink()
    proto = ir.serde.serialize_model(model)
    (folder / artefact.MODEL).write_bytes(proto.SerializeToString())
    (folder / artefact.SKELETON).write_bytes(skeleton)


def read(folder: Path) -> tuple[ir.Model, bytes]:
    """The model on mapped weights, and the skeleton."""
    proto = onnx.ModelProto.FromString((folder / artefact.MODEL).read_bytes())
    model = ir.serde.deserialize_model(proto)
    weights = folder / artefact.WEIGHTS
    data = np.memmap(weights, np.uint8, "r") if weights.exists() else np.empty(0, np.uint8)
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if isinstance(tensor, ir.ExternalTensor):
            start, size = tensor.offset or 0, tensor.length or 0
            shape, dtype = tensor.shape.numpy(), BY_ONNX[int(tensor.dtype)].numpy
            array = np.asarray(data[start : start + size]).view(dtype).reshape(shape)
            value.const_value = ir.Tensor(array, name=name)
    return model, (folder / artefact.SKELETON).read_bytes()


def _is_large(tensor: ir.TensorProtocol) -> bool:
    return int(tensor.dtype) in BY_ONNX and tensor.nbytes >= LARGE_BYTES
