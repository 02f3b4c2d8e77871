"""The files next to a model that hold its weights: their names, and views of their bytes.

Above 1 GiB of weights, `export` writes `net_graph.mindir` and next to it `net_variables/data_0`: a
header of 64 bytes, whose first one is 1 for little-endian, and the weights, which the graph finds
by offset and length. The oldest releases wrote Graph messages with the weights into that folder,
and no word about them into the graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mindspore_lite.core.files import File, open_beneath
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.decrypt import Key, decrypted, encrypted_by, not_authentic
from mindspore_lite.mindir.scan import Data, weights_outside

HEADER_BYTES = 64
GRAPH_SUFFIX, FOLDER_SUFFIX = "_graph.mindir", "_variables"


def open_side_files(
    model: Path | None, data: Data, weights: memoryview | None = None
) -> dict[str, File]:
    """The side files of a model by the names that it gives them, found without parsing it.

    Args:
        model: The model file; None where there is no folder to look into.
        data: Its (decrypted) bytes.
        weights: The content of its one data file, which then need not be opened.
    """
    locations, has_weights = weights_outside(data)
    if weights is not None:
        if len(locations) != 1:
            raise ModelFileError(
                f"weight_bytes was given, but the model's weights lie in {len(locations)} "
                "side files, wanted one"
            )
        return {}
    if not has_weights:
        return _older(model)
    return {location: _opened(model, location) for location in sorted(locations)}


def _opened(model: Path | None, location: str) -> File:
    if model is None:
        raise ModelFileError(
            f"weights lie in the file {location[:200]!r} beside the model; pass its content as "
            "weight_bytes, or the path of the model file as mindir_path of section "
            "[model_file] in config_dict or the configuration file"
        )
    return open_beneath(model.parent, location)


def _older(model: Path | None) -> dict[str, File]:
    """All files in the folder that belongs to `net_graph.mindir`, where there is one."""
    if model is None or not model.name.endswith(GRAPH_SUFFIX):
        return {}
    name = model.name.removesuffix(GRAPH_SUFFIX) + FOLDER_SUFFIX
    try:
        found = sorted(n for n in os.listdir(model.parent / name) if n[0] != ".")
    except OSError:  # a network without weights has no such folder
        return {}
    return {file: open_beneath(model.parent, f"{name}/{file}") for file in found}


class SideFiles:
    """What lies in the side files of one model, each checked before it is used.

    Args:
        contents: The bytes of each file, by the name that the model gives it.
        key: Decrypts those that are encrypted.
        weights: The content of the model's one data file, whatever its name.
    """

    def __init__(
        self,
        contents: Mapping[str, memoryview] | None = None,
        key: Key | None = None,
        weights: memoryview | None = None,
    ) -> None:
        self._contents = dict(contents or {})
        self._key = key
        self._weights = weights
        self._checked: dict[str, memoryview] = {}

    def weight(self, location: str, offset: int, length: int) -> memoryview:
        """The bytes of one weight."""
        if location not in self._checked:
            try:
                self._checked[location] = self._data_file(location)
            except ModelFileError as exc:
                raise exc.prefixed(f"data file {location[:200]!r}: ") from exc.__cause__
        data = self._checked[location]
        if offset < HEADER_BYTES or length < 0 or offset + length > len(data):
            raise ModelFileError(
                f"it claims {length} bytes at {offset} of {location[:200]!r}, whose weights lie "
                f"from byte {HEADER_BYTES} to {len(data)}"
            )
        return data[offset : offset + length]

    def graphs(self) -> Iterator[memoryview]:
        """Files of the oldest layout: each a Graph message with weights."""
        return (self._plain(content) for content in self._contents.values())

    def _data_file(self, location: str) -> memoryview:
        found = self._contents.get(location) if self._weights is None else self._weights
        if found is None:
            raise ModelFileError("it was not opened with the model")
        data = self._plain(found)
        if len(data) < HEADER_BYTES:
            raise ModelFileError(f"it has {len(data)} bytes, its header alone has {HEADER_BYTES}")
        if data[0] == 0:
            raise ModelFileError("it is big-endian; export the model on a little-endian machine")
        if data[0] != 1:
            raise ModelFileError("it does not begin with the header of a MindIR data file")
        return data

    def _plain(self, data: memoryview) -> memoryview:
        """The file as it was before encryption; converters encrypt the graph file alone."""
        if encrypted_by(data) is not None:
            return decrypted(data, self._key)
        if self._key is not None and self._key.authentic:
            raise not_authentic("it is not encrypted, so that anybody could have changed it")
        return data
