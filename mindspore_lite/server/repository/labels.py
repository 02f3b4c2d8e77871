"""Reads the labels of an output's classes: one a line, the number of the line being the class."""

from __future__ import annotations

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.repository.folder import Folder

_MAX_BYTES = 16 << 20
_MAX_LABELS = 1_000_000  # as many classes as an output may have to be classified


def read_labels(folder: Folder, name: str) -> tuple[str, ...]:
    """The labels of a file in a model's folder.

    Raises:
        ModelFileError: It cannot be read, or has too many.
    """
    lines = folder.text(name, _MAX_BYTES).split("\n")
    if lines and not lines[-1].strip():
        lines.pop()
    if len(lines) > _MAX_LABELS:
        raise ModelFileError(f"file {name[:200]!r} has more than {_MAX_LABELS} labels")
    return tuple(line.strip() for line in lines)
