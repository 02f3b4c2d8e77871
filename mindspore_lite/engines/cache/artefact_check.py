"""Checks a compiled model that a jailed child wrote, before this process opens it.

Checked are names, kinds and sizes of files; that tensors of model.onnx lie in weights.bin and
nowhere else, each piece within its bounds and well aligned; that skeleton.onnx names no file; and
that ports.json has the form that the engine reads. Digests are made by this process when the folder
is sealed. Numbers in weights, packed weights and OpenVINO's blob cannot be checked: who took over
the child decides what the model computes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.engines.prepare.skeleton import NOWHERE
from mindspore_lite.errors import ModelFileError

if TYPE_CHECKING:
    import onnx

# of each engine: files that must be there, and those that may
_FORMS = {
    "onnxruntime": ({artefact.MODEL, artefact.SKELETON}, {artefact.WEIGHTS}),
    "openvino": ({artefact.BLOB, artefact.PORTS, artefact.SKELETON}, set()),
}
_MOST_PORTS_BYTES = 16 << 20  # guess: some thousand inputs of long names take 1 MiB
_MOST_GRAPH_BYTES = 2 << 30  # no protobuf message is larger
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
# key|offset;length;checksum, the last three once for each packed buffer
_PACKED = re.compile(r"[^|;]*(?:\|[0-9]{1,18};[0-9]{1,18};[^|;]*)+", re.ASCII)
_PACKED_PIECE = re.compile(r"\|([0-9]+);([0-9]+);", re.ASCII)
_MOST_DIMS = 100  # of an input; guess: NumPy has at most 64


class _WrongError(Exception):
    """What is wrong with the folder."""


def check(folder: Path, engine: str) -> None:
    """Refuse a folder that is not what an engine would have written.

    Raises:
        ModelFileError: With the reason.
    """
    try:
        sizes = _sizes(folder, *_FORMS[engine])
        _check_graph(folder / artefact.SKELETON, _stands_nowhere)
        if artefact.MODEL in sizes:
            size = sizes.get(artefact.WEIGHTS, 0)
            _check_graph(folder / artefact.MODEL, lambda tensor: _check_place(tensor, size))
        if artefact.PORTS in sizes:
            _check_ports(folder / artefact.PORTS, sizes[artefact.PORTS])
    except (_WrongError, OSError) as exc:
        raise ModelFileError(
            f"what the sandbox compiled is refused: {exc}; the model may have taken over the "
            "compiler: do not use it"
        ) from exc


def _sizes(folder: Path, needed: set[str], more: set[str]) -> dict[str, int]:
    """The size of every file, all of them plain files of this user under one name."""
    names = set(os.listdir(folder))
    if not needed <= names <= needed | more:
        found = sorted(name[:40] for name in names)[:10]
        raise _WrongError(f"it holds {found}, wanted {sorted(needed | more)}")
    sizes = {}
    for name in names:
        s = os.lstat(folder / name)
        if not stat.S_ISREG(s.st_mode) or s.st_nlink != 1 or s.st_uid != os.geteuid():
            raise _WrongError(f"{name} is no plain file of its own")
        sizes[name] = s.st_size
    return sizes


def _check_graph(path: Path, check_tensor: Callable[[onnx.TensorProto], None]) -> None:
    """Look at every tensor of an ONNX file that says it lies elsewhere, wherever it stands."""
    import onnx
    from google.protobuf.message import DecodeError

    from mindspore_lite.graph import onnx_places

    if (size_bytes := os.stat(path).st_size) > _MOST_GRAPH_BYTES:
        raise _WrongError(f"{path.name} takes {size_bytes} bytes")
    try:
        model = onnx.ModelProto.FromString(path.read_bytes())
    except DecodeError as exc:
        raise _WrongError(f"{path.name} cannot be read") from exc
    if any(entry.key == variable.KEY for entry in model.metadata_props):
        raise _WrongError(f"{path.name} claims weights that may change")
    for tensor in onnx_places.all_tensors(model):
        if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
            check_tensor(tensor)


def _stands_nowhere(tensor: onnx.TensorProto) -> None:
    places = {entry.value for entry in tensor.external_data if entry.key == "location"}
    if places != {NOWHERE}:
        raise _WrongError(f"{artefact.SKELETON} names files")


def _check_place(tensor: onnx.TensorProto, size_bytes: int) -> None:
    """Whether a weight and its packed forms lie in the data file."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if len(entries) != len(tensor.external_data) or entries.pop("location", "") != artefact.WEIGHTS:
        raise _WrongError(f"{artefact.MODEL} names files other than {artefact.WEIGHTS}")
    entries.pop("checksum", "")
    pieces = [(entries.pop("offset", "0"), entries.pop("length", ""))]
    for name, text in entries.items():
        if not name.startswith("prepacked") or _PACKED.fullmatch(text) is None:
            raise _WrongError(f"{artefact.MODEL} says of a weight what it cannot know")
        pieces += _PACKED_PIECE.findall(text)
    for offset, length in pieces:
        if not (_NUMBER.fullmatch(offset) and _NUMBER.fullmatch(length)):
            raise _WrongError(f"{artefact.MODEL} has a weight without a place")
        if int(offset) % ALIGNMENT or int(offset) + int(length) > size_bytes:
            raise _WrongError(f"{artefact.MODEL} has a weight beyond {artefact.WEIGHTS}")


def _check_ports(path: Path, size_bytes: int) -> None:
    """Whether ports.json says what the engine wants to know, in the right types."""
    if size_bytes > _MOST_PORTS_BYTES:
        raise _WrongError(f"{path.name} takes {size_bytes} bytes")
    try:
        told = read_json(path.read_bytes())
        ends = [*told["inputs"], *told["outputs"]]
        places, metadata = told["places"], told["metadata"]
        fits = (
            told["weights"] == []
            and all(_is_end(*end) for end in ends)
            and len(places) == len(told["inputs"])
            and all(type(place) is int and -1 <= place < len(places) for place in places)
            and all(isinstance(text, str) for text in metadata.values())
            and variable.KEY not in metadata
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise _WrongError(f"{path.name} makes no sense")


def _is_end(name: Any, kind: Any, dims: Any) -> bool:
    shape = all(type(dim) is int and -2 <= dim < 1 << 62 for dim in dims)
    return isinstance(name, str) and kind in BY_NAME and shape and len(dims) <= _MOST_DIMS
