"""Installs finished files into a user's directory, replacing older ones and nothing else.

A list of what was put there lies among them, one for each language. By it the next time knows what
is its own: that is replaced, or removed when it is not needed any more; anything else is refused
before the first file changes. Each file takes its place at once, so that a program that has the
old library open keeps it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mindspore_lite.errors import LiteError


def list_path(language: str) -> str:
    """Where the list of the files of a language lies."""
    return f"runtime/mslite-{language}.files"


def check_target(folder: Path, language: str, names: Mapping[str, object]) -> set[str]:
    """The files that an earlier time put there; before the long work, see that nothing prevents it.

    Raises:
        LiteError: The directory cannot be written to, or has files of others in the way.
    """
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise LiteError(f"{str(folder)!r} cannot be made: {str(there)!r} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise LiteError(
            f"{str(folder)!r} cannot be made: there is no right to write in {str(there)!r}"
        )
    ours = _listed(folder, language)
    foreign = sorted(name for name in names if name not in ours and (folder / name).exists())
    if foreign:
        raise LiteError(
            f"{str(folder / foreign[0])!r} is there already, and not by `mslite sdk {language}`; "
            "give another directory, or remove it"
        )
    return ours


def install(folder: Path, language: str, files: Mapping[str, Path | str]) -> None:
    """Put files (a path to copy, or a text) under their names, and take away those of last time.

    Raises:
        LiteError: As check_target.
    """
    before = check_target(folder, language, files)
    for name, content in files.items():
        _place(folder / name, content)
    for name in before - files.keys():
        (folder / name).unlink(missing_ok=True)
        _remove_empty(folder, (folder / name).parent)
    _place(folder / list_path(language), "".join(f"{name}\n" for name in sorted(files)))


def _listed(folder: Path, language: str) -> set[str]:
    try:
        text = (folder / list_path(language)).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return set()
    # someone may have edited it: only names below the directory count
    return {
        name
        for name in text.splitlines()
        if name and not name.startswith("/") and ".." not in PurePosixPath(name).parts
    }


def _place(target: Path, content: Path | str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mslite-", dir=target.parent) as folder:
        made = Path(folder) / target.name
        if isinstance(content, str):
            made.write_text(content, encoding="utf-8")
        else:
            shutil.copy(content, made)
        os.replace(made, target)


def _remove_empty(top: Path, folder: Path) -> None:
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
