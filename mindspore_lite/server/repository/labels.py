"""Reads the labels of an output's classes: one a line, the number of the line being the class."""

from __future__ import annotations

from collections.abc import Mapping

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.repository.folder import Folder

_MAX_BYTES = 16 << 20  # of all files of a model; guess
_MAX_LABELS = 1_000_000  # as many classes as an output may have to be classified


def read_labels(folder: Folder, files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The labels of outputs, by name, of files in a model's folder; "" is none.

    Raises:
        ModelFileError: One cannot be read, or they have too many.
    """
    read: dict[str, tuple[str, ...]] = {}
    left = _MAX_BYTES
    for name in dict.fromkeys(filter(None, files.values())):
        text = folder.text(name, left)
        left -= len(text.encode())
        lines = text.split("\n")
        if not lines[-1].strip():
            lines.pop()
        if len(lines) > _MAX_LABELS:
            raise ModelFileError(f"file {name[:200]!r} has more than {_MAX_LABELS} labels")
        read[name] = tuple(line.strip() for line in lines)
    return {output: read[name] for output, name in files.items() if name}
