"""Recognises files of other kinds by their first bytes, and names the command that helps.

Sure signs are looked at before a file is read. Files of protobuf look much alike: those of others
are recognised only after one could not be read as what it was given for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindspore_lite.core.files import open_file
from mindspore_lite.errors import ModelFileError

HEAD_BYTES = 1024  # that are looked at

_EXPORT = "export the network where it was made, with torch.onnx.export or torch.export.save"
_TF2ONNX = "python -m tf2onnx.convert"


@dataclass(frozen=True)
class Foreign:
    """A kind of file that is no model which can be run, and what to do with it."""

    what: str
    remedy: str
    damaged: bool = False  # no kind of file that anybody wants here, under whatever name


def _at(start: int, *texts: bytes) -> Callable[[bytes], bool]:
    return lambda head: any(head.startswith(text, start) for text in texts)


def _zip_of(pattern: bytes) -> Callable[[bytes], bool]:
    """A zip archive whose first file has such a name."""

    def test(head: bytes) -> bool:
        length = int.from_bytes(head[26:28], "little")
        name = head[30 : 30 + length]
        return head.startswith(b"PK\x03\x04") and re.search(pattern, name) is not None

    return test


def _is_safetensors(head: bytes) -> bool:
    length = int.from_bytes(head[:8], "little")  # of the header
    return head[8:9] == b"{" and head[9:10] in b'"} ' and 1 < length < 100_000_000


def _is_html(head: bytes) -> bool:
    return (
        re.match(rb"\s*(<!--.*?-->\s*)?<(!doctype html|html|head)\b", head, re.I | re.S) is not None
    )


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8", "strict" if len(head) < HEAD_BYTES else "ignore")
    except UnicodeDecodeError:
        return False
    return bool(text) and all(char.isprintable() or char in "\t\r\n" for char in text)


_PICKLE = rb"\x80[\x02-\x05]"
_LFS = Foreign(
    "a pointer of git-lfs, not the file itself",
    "fetch it: git lfs install && git lfs pull",
    damaged=True,
)
_HTML = Foreign(
    "an HTML page, as a download gives that needs a login or another link",
    "download the file itself: curl -LO with the link of the raw file",
    damaged=True,
)

# the first that fits counts
_SURE: tuple[tuple[Callable[[bytes], bool], Foreign], ...] = (
    (lambda head: not head, Foreign("an empty file", "copy or download it again", damaged=True)),
    (_at(0, b"version https://git-lfs"), _LFS),
    (_is_html, _HTML),
    (
        _at(0, b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"),
        Foreign("compressed", "unpack it first: gunzip, tar -xf or unzip", damaged=True),
    ),
    (_at(257, b"ustar"), Foreign("a tar archive", "unpack it first: tar -xf", damaged=True)),
    (_at(4, b"TFL3"), Foreign("a TFLite model", "convert it first: mslite convert MODEL.tflite")),
    (
        _at(4, b"MSL0", b"MSL1", b"MSL2"),
        Foreign(
            "an .ms model, which converter_lite makes for devices",
            "convert the model that it was made of: mslite convert MODEL.onnx",
        ),
    ),
    (
        _at(4, b"ORTM"),
        Foreign("a model in ONNX Runtime's own format", "give the .onnx file that it was made of"),
    ),
    (
        _at(0, b"IMOD"),
        Foreign(
            "an .om model, machine code for Ascend",
            "give the MindIR or ONNX file that it was made of",
        ),
    ),
    (
        _at(0, b"ftrt", b"ptrt"),
        Foreign("a TensorRT plan, machine code for one GPU", "give the .onnx it was built from"),
    ),
    (
        _zip_of(rb"\.npy$"),
        Foreign(
            "an .npz file: weights or inputs without a network",
            "read it with mslite.load_weights(), and build the model from its own file",
        ),
    ),
    (
        _zip_of(
            rb"/(data\.pkl|version|byteorder|archive_\w+|\.format_version|data/\d+|data/\w+/.*)$"
        ),
        Foreign(
            "a PyTorch file",
            f"convert it first: mslite convert MODEL.pt2; from a checkpoint, {_EXPORT}",
        ),
    ),
    (
        _zip_of(rb"^(metadata|config)\.json$"),
        Foreign(
            "a Keras model",
            f"convert it: model.export('FOLDER'), then {_TF2ONNX} --saved-model FOLDER --output "
            "MODEL.onnx",
        ),
    ),
    (_at(0, b"PK\x03\x04"), Foreign("a zip archive", "unpack it first: unzip")),
    (
        lambda head: re.match(_PICKLE, head) is not None,
        Foreign(
            "a pickle, such as a PyTorch checkpoint of old",
            f"no pickle is run here, since it may hold any code: {_EXPORT}",
        ),
    ),
    (
        _is_safetensors,
        Foreign(
            "a .safetensors file: weights without a network",
            f"read it with mslite.load_weights(), and {_EXPORT}",
        ),
    ),
    (
        _at(0, b"\x89HDF\r\n\x1a\n"),
        Foreign(
            "an HDF5 file, such as a Keras model",
            f"in Keras: load_model(...).export('FOLDER'), then {_TF2ONNX} --saved-model FOLDER "
            "--output MODEL.onnx",
        ),
    ),
    (_at(0, b"GGUF"), Foreign("a GGUF file of weights", _EXPORT)),
    (
        _at(0, b"\x93NUMPY"),
        Foreign("an array of NumPy", "give it as an input, and a model file as the model"),
    ),
    (_at(0, b"\x7fELF"), Foreign("a program or library", "give the model file")),
    (
        _at(0, b"\x89PNG", b"\xff\xd8\xff", b"GIF8"),
        Foreign("a picture", "give it as an input, and a model file as the model"),
    ),
    (
        lambda head: head.lstrip().startswith((b"<?xml", b"<net ")) and b"<net" in head,
        Foreign("an OpenVINO IR", "give the .onnx file that it was made of"),
    ),
)

_TEXT = Foreign("a text, no model", "give the model file; a README is often next to it")


def recognised(head: bytes, *, refused: bool = False) -> Foreign | None:
    """The kind of file that begins so; None for one of ours, or one that nobody knows.

    refused: It could not be read as a model, so that what may be one is looked at as well.
    """
    found = next((kind for test, kind in _SURE if test(head)), None)
    if found is not None or not refused:
        return found
    return _TEXT if _is_text(head) else _protobuf(head)


def refuse_damaged(path: Path, wanted: str) -> None:
    """Refuse what nobody can want under any name: pages, pointers, archives.

    Raises:
        ModelFileError: It is such, or cannot be opened.
    """
    with open_file(path) as file:
        found = recognised(file[:HEAD_BYTES])
    if found is not None and found.damaged:
        raise told(found).prefixed(f"{str(path)!r} cannot be loaded as {wanted}: ")


def refuse_foreign(path: Path) -> None:
    """Refuse a file that is surely of another kind, by its first bytes.

    Raises:
        ModelFileError: It is such, or cannot be opened.
    """
    with open_file(path) as file:
        found = recognised(file[:HEAD_BYTES])
    if found is not None:
        raise told(found).prefixed(f"{str(path)!r} cannot be converted: ")


def told(found: Foreign) -> ModelFileError:
    """The error that says so."""
    return ModelFileError(f"it is {found.what}; {found.remedy}")


def _protobuf(head: bytes) -> Foreign | None:
    """Files of protobuf that are neither MindIR nor ONNX."""
    if head.startswith(b"\x08\x01\x12"):
        return Foreign(
            "the .pb file of a SavedModel",
            f"convert its folder: {_TF2ONNX} --saved-model FOLDER --output MODEL.onnx",
        )
    # both have a list of records that begin with a name: Value of a checkpoint, NodeDef of a graph
    found = re.match(rb"\n[^\n]{1,9}\n([\x01-\x7f])", head)
    if found is None:
        return None
    name, rest = head[found.end() :][: found[1][0]], head[found.end() + found[1][0] :]
    if not _is_text(name) or rest[:1] != b"\x12":
        return None
    if re.match(rb"\x12[\x02-\x40][A-Z]\w", rest):
        return Foreign("a frozen graph of TensorFlow", "convert it first: mslite convert MODEL.pb")
    return Foreign(
        "a checkpoint of MindSpore: weights without a network",
        "load it into the network and export that: mindspore.export(network, inputs, "
        "file_name='MODEL', file_format='MINDIR')",
    )
