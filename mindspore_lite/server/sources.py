"""What a server was given to serve: model files by name, and folders of models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindspore_lite.core import checks
from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.models import check_name
from mindspore_lite.server.repository.read import name_of, read_repository
from mindspore_lite.server.repository.records import ModelEntry

_LAYOUT = "NAME/1/model.onnx or NAME/1/model.mindir, or such files themselves"

PathLike = str | os.PathLike[str]
Models = Mapping[str, PathLike] | Sequence[PathLike | tuple[str, PathLike]]


class Sources:
    """Reads what there is to serve.

    Args:
        models: Files and folders, by name or in a list, where some may have names; or one of them.

    Raises:
        TypeError: It is something else.
        ValueError: There is nothing to serve, or a name is there twice, or cannot be served under.
        ModelFileError: A file or folder is not there.
    """

    def __init__(self, models: Any) -> None:
        if isinstance(models, str | os.PathLike):
            models = [models]
        pairs = models.items() if isinstance(models, Mapping) else map(_pair, models)
        given = [(checks.string("models key", name), path) for name, path in pairs]
        if not given:
            raise ValueError("there are no models to serve; give at least one")
        paths = [Path(checks.path("models element", path)) for _, path in given]
        is_folder = [path.is_dir() for path in paths]
        names = [
            name if folder or name else name_of(path)
            for (name, _), path, folder in zip(given, paths, is_folder, strict=True)
        ]
        twice = sorted({name for name in names if name and names.count(name) > 1})
        if twice:
            raise ValueError(f"the names {twice} are there twice; give models as name=path")
        self.files: dict[str, Path] = {}
        self._folders: list[tuple[Path, str]] = []
        self._known: dict[str, ModelEntry] = {}  # what was read last
        for name, path, folder in zip(names, paths, is_folder, strict=True):
            if name:
                check_name(name, "1")
            if not path.exists():
                raise ModelFileError(f"there is no model to serve at {nowhere(path)}")
            found = path.absolute()
            if folder:
                self._folders.append((found, name))
            else:
                self.files[name] = found

    def checked(self) -> dict[str, ModelEntry]:
        """The same as read(), if there is something to serve in each of them.

        Raises:
            ValueError: There is not.
        """
        for folder, name in self._folders:
            entries = read_repository(folder, name)
            wrong = [entry.fault for entry in entries.values() if entry.fault]
            if wrong and len(wrong) == len(entries):
                raise ValueError(f"{str(folder)!r} has no model that can be served: {wrong[0]}")
            if not entries:
                raise ValueError(
                    f"there are no models in the directory {str(folder)!r}; wanted {_LAYOUT}"
                )
        return self.read()

    def read(self) -> dict[str, ModelEntry]:
        """What there is now, by name. A name that is there twice is a fault of that model.

        Raises:
            ModelFileError: A folder cannot be read, or has not the one model that it should have.
        """
        found: dict[str, ModelEntry] = {}
        for folder, name in self._folders:
            try:
                entries = read_repository(folder, name, self._known)
            except ValueError as exc:  # another model has come, or the only one is gone
                raise ModelFileError(str(exc)) from exc
            for one in entries.values():
                _add(found, one)
        for name, path in self.files.items():
            try:
                (entry,) = read_repository(path, name).values()
            except ModelFileError:
                entry = ModelEntry(name, fault="its file is not there any more")
            _add(found, entry)
        self._known = found
        return found


def _pair(one: Any) -> tuple[Any, Any]:
    """A name, or "", and a path."""
    return one if isinstance(one, tuple) and len(one) == 2 else ("", one)


def _add(found: dict[str, ModelEntry], entry: ModelEntry) -> None:
    if entry.name in found:
        fault = f"two models are called {entry.name!r}; rename one"
        entry = replace(entry, versions={}, fault=fault)  # neither, whatever a load asks for
    found[entry.name] = entry
