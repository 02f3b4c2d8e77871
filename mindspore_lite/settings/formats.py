"""Kinds of model files: the one table of suffixes, and of first bytes where a kind has its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mindspore_lite.core.files import open_file
from mindspore_lite.errors import LiteError

_HEAD_BYTES = 8


class ModelType(Enum):
    """What kind of file a model is in; ONNX is an addition of mslite.

    Examples:
        >>> from mindspore_lite.model import ModelType
        >>> print(ModelType.MINDIR)
        ModelType.MINDIR
    """

    MINDIR = 0
    ONNX = 3
    MINDIR_LITE = 4


@dataclass(frozen=True)
class Format:
    """One kind of file."""

    kind: str  # what ModelType, or the converter's FmkType, calls it
    suffixes: tuple[str, ...]
    head: tuple[int, bytes] | None = None  # where bytes stand that no other kind has there
    runs: bool = False  # as it is, without the converter


FORMATS = (
    Format("ONNX", (".onnx",), (0, b"\x08"), runs=True),  # a number as the first field: ir_version
    Format("MINDIR", (".mindir",), runs=True),
    Format("PYTORCH", (".pt2", ".pt", ".pth")),
    Format("TFLITE", (".tflite",), (4, b"TFL3")),
    Format("TF", (".pb",)),
    Format("CAFFE", (".prototxt",)),
    Format("OM", (".om",)),
    Format("MINDIR_LITE", (".ms",), runs=True),  # which a build refuses by this name
)


def by_suffix(path: Path) -> Format | None:
    """The kind that the name of a file says, in capitals or not; None for other names."""
    suffix = path.suffix.lower()
    return next((row for row in FORMATS if suffix in row.suffixes), None)


def looks_like(kind: str, head: Sequence[int]) -> bool:
    """Whether the first bytes of a file are those that the kind must have; some have none."""
    row = next(row for row in FORMATS if row.kind == kind)
    if row.head is None:
        return False
    start, wanted = row.head
    return bytes(head[start : start + len(wanted)]) == wanted


def model_kind(path: Path) -> str:
    """A name of ModelType: what the suffix says, else the first bytes, else MindIR."""
    found = by_suffix(path)
    if found is not None and found.runs:
        return found.kind
    if found is None:
        with suppress(LiteError, OSError, ValueError):  # whoever loads it says what is wrong
            if looks_like("ONNX", open_file(path)[:_HEAD_BYTES]):
                return "ONNX"
    return "MINDIR"
