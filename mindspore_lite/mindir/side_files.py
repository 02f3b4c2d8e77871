"""The files beside a model that hold its weights: their names, and views into their bytes.

Above 1 GiB of weights, `export` writes `net_graph.mindir` and beside it `net_variables/data_0`: a
header of 64 bytes, whose first one is 1 for little-endian, and the weights, which the graph finds
by offset and length. The oldest releases wrote Graph messages with the weights into that folder,
and no word about them into the graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.decrypt import Key, decrypted, encrypted_by
from mindspore_lite.mindir.files import contained, mapped
from mindspore_lite.mindir.scan import Data, weights_outside

HEADER_BYTES = 64
GRAPH_SUFFIX, FOLDER_SUFFIX = "_graph.mindir", "_variables"


class SideFiles:
    """The side files of one model, each opened once and checked before it is read.

    Without a path there is no folder to look into: then every weight must lie in `weights`, the
    content of the model's one data file.
    """

    def __init__(
        self, model: Path | None, key: Key | None = None, weights: memoryview | None = None
    ) -> None:
        self._model = model
        self._key = key
        self._weights = weights
        self._open: dict[str, memoryview] = {}

    def paths(self, data: Data) -> tuple[Path, ...]:
        """The side files of a model, given its (decrypted) bytes, found without parsing it."""
        locations, has_weights = weights_outside(data)
        if self._weights is not None:
            if len(locations) != 1:
                raise ModelFileError(
                    f"weight_bytes was given, but the model's weights lie in {len(locations)} "
                    "side files, wanted one"
                )
            return ()
        if not has_weights:
            return self._older()
        return tuple(self._path(location) for location in sorted(locations))

    def weight(self, location: str, offset: int, length: int) -> memoryview:
        """The bytes of one weight."""
        if location not in self._open:
            try:
                self._open[location] = self._data_file(location)
            except ModelFileError as exc:
                raise exc.prefixed(f"data file {location[:200]!r}: ") from exc.__cause__
        data = self._open[location]
        if offset < HEADER_BYTES or length < 0 or offset + length > len(data):
            raise ModelFileError(
                f"it claims {length} bytes at {offset} of {location[:200]!r}, whose weights lie "
                f"from byte {HEADER_BYTES} to {len(data)}"
            )
        return data[offset : offset + length]

    def graphs(self) -> Iterator[memoryview]:
        """Files of the oldest layout: each a Graph message with weights."""
        for path in self._older():
            yield self._plain(mapped(path))

    def _path(self, location: str) -> Path:
        if self._model is None:
            raise ModelFileError(
                f"weights lie in the file {location[:200]!r} beside the model; pass its content as "
                "weight_bytes, or the path of the model file as mindir_path of section "
                "[model_file] in config_dict or the configuration file"
            )
        return contained(self._model.parent, location)

    def _older(self) -> tuple[Path, ...]:
        """All files in the folder that belongs to `net_graph.mindir`, where there is one."""
        if self._model is None or not self._model.name.endswith(GRAPH_SUFFIX):
            return ()
        name = self._model.name.removesuffix(GRAPH_SUFFIX) + FOLDER_SUFFIX
        try:
            found = sorted(n for n in os.listdir(self._model.parent / name) if n[0] != ".")
        except OSError:  # a network without weights has no such folder
            return ()
        return tuple(contained(self._model.parent, f"{name}/{file}") for file in found)

    def _data_file(self, location: str) -> memoryview:
        data = self._weights if self._weights is not None else mapped(self._path(location))
        data = self._plain(data)
        if len(data) < HEADER_BYTES:
            raise ModelFileError(f"it has {len(data)} bytes, its header alone has {HEADER_BYTES}")
        if data[0] == 0:
            raise ModelFileError("it is big-endian; export the model on a little-endian machine")
        if data[0] != 1:
            raise ModelFileError("it does not begin with the header of a MindIR data file")
        return data

    def _plain(self, data: memoryview) -> memoryview:
        """The file as it was before encryption; converters encrypt the graph file alone."""
        return data if encrypted_by(data) is None else decrypted(data, self._key)
