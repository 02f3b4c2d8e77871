"""Aligns weights to addresses that kernels can load from, in memory and in data files.

ONNX Runtime's kernels read packed weights with instructions that fault on addresses which are not a
multiple of 64, and its own writer puts weights below 1 MiB anywhere in the data file, from where
they are mapped and used in place: a model saved by it may kill the process that runs it.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    import onnx

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
_PACKED = re.compile(r"\|(\d+);(\d+);")  # key|offset;length;checksum, repeated per packed buffer


def aligned(array: np.ndarray) -> np.ndarray:
    """The array itself if it lies well in memory, else a copy that does."""
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy


def align_weights(model_file: Path, weights_file: Path) -> None:
    """Lay out the data file of a stored model anew, every piece at a multiple of ALIGNMENT."""
    import onnx

    if not weights_file.exists():
        return
    model = onnx.load(model_file, load_external_data=False)
    if not any(offset % ALIGNMENT for t in stored_outside(model.graph) for offset in _offsets(t)):
        return
    moved = weights_file.with_suffix(".moved")
    with open(weights_file, "rb") as old, open(moved, "wb") as new:
        source = mmap.mmap(old.fileno(), 0, access=mmap.ACCESS_READ)
        with source, memoryview(source) as data:
            for tensor in stored_outside(model.graph):
                _move(tensor, data, new)
    os.replace(moved, weights_file)
    onnx.save(model, model_file)


def stored_outside(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The weights of a graph, and of the graphs inside it, that lie in the data file."""
    yield from (tensor for tensor in graph.initializer if tensor.external_data)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from stored_outside(inner)


def _offsets(tensor: onnx.TensorProto) -> Iterator[int]:
    """Where a weight and its packed forms lie."""
    for entry in tensor.external_data:
        if entry.key == "offset":
            yield int(entry.value)
        elif entry.key.startswith("prepacked"):
            yield from (int(match[1]) for match in _PACKED.finditer(entry.value))


def _move(tensor: onnx.TensorProto, data: memoryview, new: BinaryIO) -> None:
    """Copy a weight and its packed forms to the new file, and note where they went."""

    def append(start: int, length: int) -> int:
        new.write(bytes(-new.tell() % ALIGNMENT))
        place = new.tell()
        new.write(data[start : start + length])
        return place

    entries = {entry.key: entry for entry in tensor.external_data}
    offset, length = int(entries["offset"].value), int(entries["length"].value)
    entries["offset"].value = str(append(offset, length))
    for name, entry in entries.items():
        if name.startswith("prepacked"):
            entry.value = _PACKED.sub(
                lambda m: f"|{append(int(m[1]), int(m[2]))};{m[2]};", entry.value
            )
