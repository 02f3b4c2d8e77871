"""A folder of a model repository: what is in it, and the bytes of its small files.

Nothing that lies in a repository leads out of it: names are those that the system lists, links are
followed as long as they stay inside, and small files are opened by core/files.py. Kubernetes mounts
its volumes with such links: `config.pbtxt -> ..data/config.pbtxt`. Entries with a leading dot are
passed over.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.core.files import open_beneath
from mindspore_lite.errors import ModelFileError

MAX_ENTRIES = 10_000  # of one folder; guess: a thousand times what people have
MAX_LISTED = 50_000  # of a folder and all below it, as often as they are listed; guess


@dataclass(frozen=True)
class Listing:
    """What is in a folder, by name, in order of names."""

    folders: dict[str, os.stat_result] = field(default_factory=dict)
    files: dict[str, os.stat_result] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)  # links that lead out of the repository
    other: list[str] = field(default_factory=list)  # pipes, devices, links that lead nowhere

    def stamp(self) -> tuple[object, ...]:
        """Changes when one of the files is replaced or written to, or an entry comes or goes."""
        files = tuple((name, status_stamp(found)) for name, found in self.files.items())
        return (*files, *self.folders, *self.outside, *self.other)


class Folder:
    """A folder of a repository.

    Args:
        repository: Which the user named.
        within: Names on the way from there, each of which a Listing has listed.
    """

    def __init__(self, repository: Path, *within: str) -> None:
        self.repository = repository
        self.within = within
        self.path = repository.joinpath(*within)
        self._root = os.path.realpath(repository)
        self._counted = [0]  # entries that were listed, here and below: links may go in circles

    def below(self, name: str) -> Folder:
        """A folder in it, which is part of the same."""
        found = self.apart(name)
        found._counted = self._counted
        return found

    def apart(self, name: str) -> Folder:
        """A folder in it, which is another model's."""
        return Folder(self.repository, *self.within, name)

    def listing(self) -> Listing:
        """What is in it now.

        Raises:
            ModelFileError: It cannot be read, or has too many entries.
        """
        found = Listing()
        for name in sorted(self._names()):
            path = self.path / name
            try:
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode):
                    if not self._is_inside(path):
                        found.outside.append(name)
                        continue
                    status = os.stat(path)
            except OSError:  # it has just gone, or leads nowhere
                found.other.append(name)
                continue
            if stat.S_ISDIR(status.st_mode):
                found.folders[name] = status
            elif stat.S_ISREG(status.st_mode):
                found.files[name] = status
            else:
                found.other.append(name)
        return found

    def read(self, name: str, most_bytes: int) -> bytes:
        """The bytes of a small file in it, which a configuration may have named.

        Raises:
            ModelFileError: It cannot be read, is too large, or lies outside.
        """
        if os.path.isabs(name):
            raise ModelFileError(f"file {name[:200]!r} lies outside the model's folder")
        location = "/".join((*self.within, name))
        with open_beneath(self.repository, location, what="file") as file:
            if file.size > most_bytes:
                raise ModelFileError(
                    f"file {name[:200]!r} has {file.size} bytes, more than the {most_bytes} allowed"
                )
            return bytes(file.load())

    def text(self, name: str, most_bytes: int) -> str:
        """The same as text.

        Raises:
            ModelFileError: It is not UTF-8, or cannot be read.
        """
        try:
            return self.read(name, most_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            raise ModelFileError(f"file {name[:200]!r} is not UTF-8 text: {exc.reason}") from exc

    def _is_inside(self, path: Path) -> bool:
        return os.path.commonpath([os.path.realpath(path), self._root]) == self._root

    def _names(self) -> list[str]:
        names: list[str] = []
        try:
            with os.scandir(self.path) as found:
                for entry in found:
                    if not entry.name.startswith("."):
                        names.append(entry.name)
                    if len(names) > MAX_ENTRIES:
                        raise self._too_many(MAX_ENTRIES)
        except OSError as exc:
            raise ModelFileError(f"cannot read folder {str(self.path)!r}: {exc.strerror}") from exc
        self._counted[0] += len(names)
        if self._counted[0] > MAX_LISTED:
            raise self._too_many(MAX_LISTED)
        return names

    def _too_many(self, most: int) -> ModelFileError:
        return ModelFileError(f"folder {str(self.path)!r} has more than {most} entries")


def status_stamp(found: os.stat_result) -> tuple[int, ...]:
    """Changes when a file is replaced or written to."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
