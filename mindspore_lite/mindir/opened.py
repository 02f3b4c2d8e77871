"""Opens a MindIR model and the files next to it together, and reads them at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.core.files import File, open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.decrypt import Key, decrypted, encrypted_by
from mindspore_lite.mindir.scan import Data
from mindspore_lite.mindir.side_files import SideFiles, open_side_files

MAX_BYTES = 2**31 - 1  # of one protobuf message
_MORE_BYTES = 16 << 20  # that encryption may add to it


@dataclass(frozen=True)
class Opened:
    """A model whose bytes are not read yet."""

    snapshot: Snapshot  # of its files: first its own, if it has one, then those next to it
    names: tuple[str, ...]  # of the files next to it, as the model has them
    encrypted: bool
    data: memoryview | None = field(default=None, repr=False)  # None: it is in a file
    key: Key | None = None
    weights: memoryview | None = field(default=None, repr=False)

    def load(self) -> tuple[memoryview, SideFiles]:
        """Its (decrypted) bytes, and what lies next to it."""
        loaded = self.snapshot.load()
        data = loaded.pop(0) if self.data is None else self.data
        if self.encrypted:
            data = decrypted(data, self.key)
        return data, SideFiles(dict(zip(self.names, loaded, strict=True)), self.key, self.weights)


def open_mindir(
    path: Path | None,
    data: memoryview | None = None,
    *,
    key: Key | None = None,
    weights: memoryview | None = None,
    beside: Path | None = None,
) -> Opened:
    """Open a model and all files that it names.

    Args:
        path: The model file; None where the model is in memory.
        data: Its bytes in that case.
        key: Decrypts it.
        weights: The content of its one data file.
        beside: Where the model file would lie for its side files to be found.
    """
    file = None if path is None else open_file(path)
    found: Data = file if file is not None else memoryview(data or b"")
    encrypted = key is not None or encrypted_by(found) is not None
    if len(found) > MAX_BYTES + (_MORE_BYTES if encrypted else 0):
        raise ModelFileError(
            f"the file has {len(found)} bytes, and no MindIR file can have more than {MAX_BYTES}; "
            "a larger model keeps its weights in files beside it"
        )
    if encrypted:
        # here only to see what it names: kept, it would take memory until it is translated
        found = decrypted(found.load() if isinstance(found, File) else found, key)
    side = open_side_files(beside or path, found, weights)
    own = [] if file is None else [file]
    return Opened(Snapshot([*own, *side.values()]), tuple(side), encrypted, data, key, weights)
