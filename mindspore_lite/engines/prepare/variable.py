"""Weights that may change: marks them before compiling, stores and fills them in after.

Folding and packing would spread a weight over the graph. So a model is compiled as if such weights
were inputs, and stored with them as plain weights of their own, their first values at the end of
the data file. Opened with all optimisations it is as fast as if nothing could change; opened with
other arrays in their place it is the model after an update.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.graph.parameters import Parameter
from mindspore_lite.weights.records import Variable

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.weights.resolve import Found

KEY = "variable_weights"  # of the model's metadata: JSON, one list per weight


def mark(model: ir.Model, entries: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Find the weights that entries mean, note them in the model's metadata, return their names.

    What the file itself says there is dropped: only our own notes are trusted when it is opened.
    """
    model.metadata_props.pop(KEY, None)
    if not entries:
        return ()
    from mindspore_lite.weights.resolve import resolve

    found = resolve(model, entries)
    rows = []
    for one in found:
        value = model.graph.initializers[one.name]
        tensor = value.const_value
        assert tensor is not None
        kind = np.dtype(tensor.dtype.numpy()).name
        rows.append([one.name, _names(one), kind, list(tensor.shape.numpy())])
    model.metadata_props[KEY] = json.dumps(rows)
    return tuple(one.name for one in found)


def hold_open(model: ir.Model, names: Sequence[str]) -> None:
    """Make inputs of weights, as which they are not computed with beforehand."""
    weights = [model.graph.initializers[name] for name in names]
    # files of IR version 3 declare all weights as inputs
    model.graph.inputs.extend(w for w in weights if not w.is_graph_input())


def settle(model: ir.Model, names: Sequence[str]) -> None:
    """Make plain weights of them again."""
    for name in names:
        model.graph.inputs.remove(model.graph.initializers[name])


def opened(skeleton: bytes, names: Sequence[str]) -> bytes:
    """A serialized model whose weights of these names are inputs."""
    if not names:
        return skeleton
    import onnx

    model = onnx.ModelProto.FromString(skeleton)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in names]
    for tensor in model.graph.initializer:
        if tensor.name in names:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            model.graph.input.append(info)
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model.SerializeToString()


def store(model_file: Path, weights_file: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Put weights into a compiled model that has them as inputs, and their values into its data."""
    import onnx

    model = onnx.load(model_file, load_external_data=False)
    for info in [info for info in model.graph.input if info.name in weights]:
        model.graph.input.remove(info)
    offsets = {}
    with open(weights_file, "ab") as data:
        for name, array in weights.items():
            data.write(bytes(-data.tell() % ALIGNMENT))
            offsets[name] = data.tell()
            data.write(array.reshape(-1).view(np.uint8).data)
    for name, array in weights.items():
        place = {"location": weights_file.name, "offset": offsets[name], "length": array.nbytes}
        model.graph.initializer.append(
            onnx.TensorProto(
                name=name,
                data_type=BY_NAME[array.dtype.name].onnx,
                dims=array.shape,
                data_location=onnx.TensorProto.EXTERNAL,
                external_data=[
                    onnx.StringStringEntryProto(key=k, value=str(v)) for k, v in place.items()
                ],
            )
        )
    for entry in model.metadata_props:
        if entry.key == KEY:
            rows = read_json(entry.value)
            entry.value = json.dumps([[*row, offsets[row[0]]] for row in rows])
    onnx.save(model, model_file)


def from_file(metadata: Mapping[str, str], weights_file: Path) -> tuple[Variable, ...]:
    """The weights that may change of a stored model; their first values stay in the file."""
    rows = read_json(metadata.get(KEY, "[]"))
    if not rows:
        return ()
    data = np.memmap(weights_file, np.uint8, "r")
    found = []
    for name, names, kind, shape, offset in rows:
        dtype = np.dtype(BY_NAME[kind].numpy)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        first = np.asarray(data[offset : offset + size]).view(dtype).reshape(shape)
        found.append(_variable(name, names, first))
    return tuple(found)


def from_memory(
    metadata: Mapping[str, str], weights: Mapping[str, np.ndarray]
) -> tuple[Variable, ...]:
    """The weights that may change of a model that lies nowhere."""
    found = []
    for name, names, _, _ in read_json(metadata.get(KEY, "[]")):
        first = weights[name].view()
        first.flags.writeable = False
        found.append(_variable(name, names, first))
    return tuple(found)


def _names(found: Found) -> dict[str, Any]:
    """What callers may call a weight, and how its parameter lay, as JSON holds it."""
    return {
        "aliases": list(found.aliases),
        "parameter": found.parameter.name,
        "transposed": found.parameter.transposed,
        "least": found.least,
    }


def _variable(name: str, names: Mapping[str, Any], first: np.ndarray) -> Variable:
    return Variable(
        name,
        tuple(names["aliases"]),
        first.dtype,
        first.shape,
        first,
        Parameter(names["parameter"], names["transposed"]),
        names["least"],
    )
