"""A compiled model of the cache that stays readable, whatever becomes of its folder.

ONNX Runtime takes the data file of a model by its path alone: a link of /proc/self/fd is followed
to the path behind it, which must exist. So another session is opened by the path as long as that
leads to the very files that are held open here; its weights, packed ones included, are then pages
that all sessions share. Once the folder is gone the graph and its weights are handed over from
memory: the weights are still pages of the file, but each session packs them for itself.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mindspore_lite.core.dtypes import BY_ONNX
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.prepare.alignment import stored_outside
from mindspore_lite.errors import EngineError


class Apart(NamedTuple):
    """A graph whose weights must be given with it, and these weights."""

    graph: bytes
    weights: Mapping[str, np.ndarray]


class Held:
    """The graph and the data file of an artefact, open for as long as this object lives."""

    def __init__(self, folder: Path) -> None:
        """Open the files; nobody may remove the folder meanwhile."""
        self.folder = folder
        self._graph = _File(folder / artefact.MODEL)
        self._weights = _File(folder / artefact.WEIGHTS)

    def is_there(self) -> bool:
        """Whether the folder still holds the files that were opened.

        Raises:
            EngineError: One of them was written to, so that no session can trust it.
        """
        for file in (self._graph, self._weights):
            file.check()
        return self._graph.is_there() and self._weights.is_there()

    @cached_property
    def apart(self) -> Apart:
        """The model in memory; its weights are views of the data file."""
        import onnx  # only a model whose folder has gone needs it

        model = onnx.ModelProto.FromString(self._graph.mapped()[:])
        data = np.frombuffer(self._weights.mapped(), np.uint8)
        weights = {}
        outer = {tensor.name: tensor for tensor in model.graph.initializer}
        for tensor in stored_outside(model.graph):
            place = {entry.key: entry.value for entry in tensor.external_data}
            start, length = int(place["offset"]), int(place["length"])
            part = data[start : start + length]
            kind = BY_ONNX.get(tensor.data_type)
            if kind is not None and outer.get(tensor.name) is tensor:
                weights[tensor.name] = part.view(kind.numpy).reshape(tuple(tensor.dims))
            else:  # of an inner graph, or of a type that NumPy lacks: it cannot be given apart
                del tensor.external_data[:]
                tensor.data_location = onnx.TensorProto.DEFAULT
                tensor.raw_data = part.tobytes()
        return Apart(model.SerializeToString(), weights)


class _File:
    """A file of the artefact, held open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = _state(os.fstat(self._descriptor))

    def check(self) -> None:
        """Refuse a file that was written to; losing its name changes nothing here."""
        if _state(os.fstat(self._descriptor)) != self._state:
            raise EngineError(
                f"the compiled model {str(self._path)!r} was changed by somebody while it was in "
                "use; build the model again"
            )

    def is_there(self) -> bool:
        """Whether the path still leads to this file."""
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def mapped(self) -> mmap.mmap:
        """The content."""
        return mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)


def _state(s: os.stat_result) -> tuple[int, int]:
    return s.st_size, s.st_mtime_ns
