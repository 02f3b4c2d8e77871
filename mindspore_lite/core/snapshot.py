"""Reads the files of one model as of one moment: what is hashed is what is compiled.

Other programs may write to a model's files while they are read. So the files are opened together
and kept open, what is loaded has the digest under which it is compiled, and it counts only if all
files are still what they were when they were opened. Otherwise the build ends in an error; it never
sees a mixture of old and new.

Times on disk are coarse: a file that changes twice within a tick looks unchanged. A file that was
changed less than RACY_NS before it was opened is therefore read a second time and compared.

Converting a model mostly copies its weights from one file to another. There they are `Unread`: no
memory is taken for them, each is read once, when it is written, and the times of its file are
compared after that. Files whose times cannot be relied on are loaded at once instead.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mindspore_lite.core.files import File, Stamp, open_file
from mindspore_lite.core.machine import total_bytes
from mindspore_lite.errors import ModelFileError, ResourceError

RACY_NS = 2_000_000_000  # 2 s: the coarsest file times in use are FAT's
_PIECE_BYTES = 256 << 10  # of what is read to be passed on: it stays in the cache of a core


class Snapshot:
    """Some files, opened together; see the module."""

    def __init__(self, files: Sequence[File] = ()) -> None:
        self.files = tuple(files)
        self._digests: dict[int, str] = {}
        self._kept: dict[int, memoryview] = {}  # what was read for its digest
        size = sum(file.size for file in self.files)
        if size > total_bytes():  # said at once: reading it all would take minutes
            raise ResourceError(
                f"the model's files have {size >> 20} MiB together, and this machine has "
                f"{total_bytes() >> 20} MiB of memory; is {str(self._largest().path)!r} the right "
                "file?"
            )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The names by which the files were opened, the model file first."""
        return tuple(file.path for file in self.files)

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        """What distinguishes this state of the files; without ctime, which chmod changes."""
        return tuple(file.stamp[:4] for file in self.files)

    def sha256(self, at: int) -> str:
        """The digest of one file; what is digested is what load() returns."""
        if at not in self._digests:
            self._kept[at] = self.files[at].load()
            self._digests[at] = _sha256(self._kept[at])
        return self._digests[at]

    def recall(self, at: int, digest: str) -> None:
        """Believe what was noted of a file before; load() holds its content against that."""
        self._digests[at] = digest

    def forget(self) -> None:
        """Give back the memory of what was read and is not wanted."""
        self._kept.clear()

    def load(self) -> list[memoryview]:
        """The content of all files, in memory of our own, of one and the same moment.

        Raises:
            ModelFileError: A file was changed or replaced meanwhile, or cannot be read.
        """
        loaded = [self._content(at) for at in range(len(self.files))]
        for at, content in enumerate(loaded):
            self.check(at, content)
        if len(self.files) > 1:
            self._check_places()
        return loaded

    def open_later(self) -> list[memoryview] | list[File]:
        """The files for `excerpt()`, which reads later; where times are too new, as load().

        Raises:
            ModelFileError: As load() does.
        """
        if not all(_is_settled(file) for file in self.files):
            return self.load()
        self.check_times()
        if len(self.files) > 1:
            self._check_places()
        return list(self.files)

    def check_times(self) -> None:
        """Raise ModelFileError unless every file has the times that it had when it was opened."""
        for file in self.files:
            _check_times(file)

    def _check_places(self) -> None:
        """Each file is whole; now they must also belong together."""
        for file in self.files:
            if not file.is_in_place():
                raise _changed(file)

    def _content(self, at: int) -> memoryview:
        """What has the file's digest: a writer that maps the file may leave its times alone."""
        if at in self._kept:
            return self._kept.pop(at)
        content = self.files[at].load()
        if at in self._digests and _sha256(content) != self._digests[at]:
            raise _changed(self.files[at])
        return content

    def check(self, at: int, content: memoryview) -> None:
        """Raise ModelFileError unless what was read is what the file held when it was opened."""
        file, now = self.files[at], self.files[at].stamp_now()
        if now[:4] != file.stamp[:4]:
            raise _changed(file)
        if _is_settled(file) and now == file.stamp:
            return
        # unlinking and chmod change the last time, too, and are no harm
        if not file.holds(content) or file.stamp_now()[:4] != file.stamp[:4]:
            raise _changed(file)

    def _largest(self) -> File:
        return max(self.files, key=len)


class Unread:
    """Bytes of a file that are read when somebody wants them.

    What somebody has looked at is kept, so that no byte is ever seen in two states. The times of
    the file are compared after each reading. Any change of them is an error, that of the inode as
    well: there is nothing left to compare the content with.
    """

    def __init__(self, file: File, start: int, end: int) -> None:
        self.nbytes = end - start
        self._file, self._start = file, start
        self._kept: memoryview | None = None

    def __len__(self) -> int:
        return self.nbytes

    def read(self) -> memoryview:
        """The bytes, in memory of our own.

        Raises:
            ModelFileError: The file was changed since it was opened, or cannot be read.
        """
        if self._kept is None:
            content = memoryview(bytearray(self.nbytes))
            self._file.read_into(content, self._start)
            _check_times(self._file)
            self._kept = content
        return self._kept

    def pieces(self) -> Iterator[memoryview]:
        """The bytes, piece by piece, to be passed on; each piece is good until the next one.

        Raises:
            ModelFileError: As read() does; what was passed on must not be used then.
        """
        if self._kept is not None:
            yield self._kept
            return
        buffer = memoryview(bytearray(min(self.nbytes, _PIECE_BYTES)))
        for at in range(0, self.nbytes, _PIECE_BYTES):
            piece = buffer[: self.nbytes - at]
            self._file.read_into(piece, self._start + at)
            yield piece
        _check_times(self._file)


def excerpt(content: memoryview | File, start: int, end: int) -> memoryview | Unread:
    """Some bytes of what open_later() has given."""
    return Unread(content, start, end) if isinstance(content, File) else content[start:end]


@contextmanager
def sealed_copy(path: Path) -> Iterator[int]:
    """A copy of a file in memory that cannot change, for libraries that open files by name.

    Yields a descriptor; `/proc/self/fd/<number>` is the copy's name while the block lasts.
    """
    file = open_file(path)
    file.refuse_hollow()
    copy = os.memfd_create("mslite", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        if file.size:
            os.ftruncate(copy, file.size)
            with mmap.mmap(copy, file.size) as memory, memoryview(memory) as content:
                file.read_into(content)
                Snapshot([file]).check(0, content)
        file.close()
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
        yield copy
    finally:
        os.close(copy)


def _sha256(content: memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_settled(file: File) -> bool:
    """Whether any later change of the file will show in its times."""
    return file.opened_ns - max(file.stamp[-2:]) >= RACY_NS


def _check_times(file: File) -> None:
    if file.stamp_now() != file.stamp:
        raise _changed(file)


def _changed(file: File) -> ModelFileError:
    return ModelFileError(
        f"{str(file.path)!r} changed while it was read; build again when it is written, and write "
        "a new model beside the old one and rename it, so that a build meets one or the other"
    )
