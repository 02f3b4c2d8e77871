"""The folders that cases run in, and the watch over the files that they open.

case/        the files of one case; the only folder that it may read
  link, out  lead out of it, to a file and to a folder
  pipe       a FIFO: whoever opens it to read waits for ever
outside/     a stranger's folder
cwd/         the working directory, which has nothing to do with the model
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import site
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from fuzzing.decoys import Decoys
from fuzzing.trouble import Trouble, of_stack

import mindspore_lite

BAIT = ("link", "out", "pipe")
# in the working directory; models name such files
STRAY = ("stray", "data", "weights.bin", "link", "pipe", "out/secret", "split_variables/data_0")
_SYSTEM = ("/proc/", "/sys/", "/dev/shm/", "/dev/null", "/dev/urandom", "/etc/localtime")
_TESTS = Path(__file__).resolve().parent.parent  # modules and seeds of ours
_NO_FOLLOW = os.O_NOFOLLOW


class Ground:
    """Folders for one case after the other."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.case, self.cwd = self.base / "case", self.base / "cwd"
        outside = self.base / "outside"
        for folder in (self.case, self.cwd, outside, self.base / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        (outside / "secret").write_bytes(b"\1" + bytes(499))
        for name in STRAY:
            (self.cwd / name).parent.mkdir(exist_ok=True)
            (self.cwd / name).write_bytes(bytes(500))
        self._decoys = Decoys([outside, *{(self.cwd / name).parent for name in STRAY}])
        (self.case / "link").symlink_to(outside / "secret")
        (self.case / "out").symlink_to(outside)
        os.mkfifo(self.case / "pipe")

    def clean(self) -> None:
        """Remove what the last case left behind."""
        for path in self.case.iterdir():
            if path.name in BAIT:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()

    def keep(self, folder: Path) -> None:
        """Copy the files of the case."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in self.case.iterdir():
            if path.name not in BAIT and path.is_file():
                shutil.copyfile(path, folder / path.name)
            elif path.name not in BAIT and path.is_dir():
                shutil.copytree(path, folder / path.name, dirs_exist_ok=True)

    @contextlib.contextmanager
    def entered(self) -> Iterator[list[Trouble]]:
        """Watch the files that are opened meanwhile: the list of those that none may open."""
        opened: list[Trouble] = []
        self._decoys.opened()
        before, temporary = os.getcwd(), tempfile.tempdir
        os.chdir(self.cwd)
        tempfile.tempdir = str(self.base / "tmp")
        _hook()
        _WATCHED.append((self, opened))
        try:
            with cache_in(None):
                yield opened
        finally:
            _WATCHED.pop()
            tempfile.tempdir = temporary
            os.chdir(before)
            # what libraries opened, and Python by a relative name, which the hook cannot place
            opened += [
                Trouble("file", name, "a decoy was opened") for name in self._decoys.opened()
            ]

    def is_allowed(self, path: str, flags: int) -> bool:
        """Whether a case may open it."""
        if not os.path.isabs(path):
            return True  # relative to a descriptor, perhaps: the decoys tell
        whole = Path(path)
        parent = os.path.realpath(whole.parent)
        found = os.path.join(parent, whole.name) if flags & _NO_FOLLOW else os.path.realpath(path)
        own = (self.case, self.base / "tmp")
        if any(found == str(folder) or found.startswith(f"{folder}/") for folder in own):
            return True
        # imports look into the folders and archives of sys.path themselves
        return path in sys.path or path.startswith(_packages()) or found.startswith(_packages())


@contextlib.contextmanager
def cache_in(folder: Path | None) -> Iterator[None]:
    """The compile cache in a folder of the case, or none."""
    wanted = {"MSLITE_CACHE": "off"} if folder is None else {"MSLITE_CACHE_DIR": str(folder)}
    before = {name: os.environ.get(name) for name in ("MSLITE_CACHE", "MSLITE_CACHE_DIR")}
    for name in before:
        os.environ.pop(name, None)
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


_WATCHED: list[tuple[Ground, list[Trouble]]] = []
_hearing = threading.local()


@functools.cache
def _hook() -> None:
    """Hear of every file that Python opens; a hook stays for as long as the process."""
    sys.addaudithook(_hear)


def _hear(event: str, args: tuple[object, ...]) -> None:
    if event != "open" or not _WATCHED or getattr(_hearing, "now", False):
        return
    ground, opened = _WATCHED[-1]
    path, flags = args[0], args[2]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str) or ground.is_allowed(path, flags if type(flags) is int else 0):
        return
    _hearing.now = True  # the stack is told with lines of source files, which are opened for that
    try:
        opened.append(of_stack("file", f"{path!r} was opened"))
    finally:
        _hearing.now = False


@functools.cache
def _packages() -> tuple[str, ...]:
    """Where code lies, which may be read at any time, and what the system tells of itself."""
    found = {str(_TESTS), *site.getsitepackages()}
    found |= {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found.add(str(Path(mindspore_lite.__file__).parent))
    folders = {path for name in found for path in (name, os.path.realpath(name))}
    return (*(f"{folder.rstrip('/')}/" for folder in sorted(folders) if folder != "/"), *_SYSTEM)
