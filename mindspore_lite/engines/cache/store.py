"""The compile cache: folders of compiled models, with locks, repair and eviction.

    <place>/<key>/            one artefact, see artefact.py; its mtime is its last use
    <place>/build-<xx>-*/     a build under way, or what a dead builder left; xx = key[:2]
    <place>/locks/<xx>.lock   256 permanent files; flock on one covers every key that starts with xx
    <place>/seen/             remembered digests of model files, see digest.py
    <place>/choices/          the engine measured to be best for a model, see engines/choice.py
    <place>/torch/            what torch's compiler keeps, folders with files of its own

Who owns what: a reader holds the lock of its key shared while it checks and opens the artefact;
a builder, or a process that removes an artefact or old build, holds it alone. The kernel drops
the lock of a dead process, so a build folder whose lock can be had is nobody's. An opened artefact
needs no lock: its pages stay mapped after the files are unlinked. One that is shared with other
processes is held by its own folder's lock (weights/sharing/hold.py), and stays until that is let
go. Lock files are never removed, because a second file of the same name would be a second lock.

Set by MSLITE_CACHE (on, off), MSLITE_CACHE_DIR and MSLITE_CACHE_MAX_BYTES. A place that cannot be
used never fails a build: it is warned about once, and the build goes on without it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mindspore_lite.core.byte_size import size_of
from mindspore_lite.core.environment import variables
from mindspore_lite.engines.cache import artefact
from mindspore_lite.weights.sharing.hold import unheld

DEFAULT_MAX_BYTES = 10 << 30  # guess: some twenty BERT-sized models
_SEEN_MAX = 1000  # remembered digests; guess, some 300 bytes each
COMPILER = "torch"
_KEY = re.compile(r"[0-9a-f]{64}")
_BUILD = re.compile(r"build-([0-9a-f]{2})-[0-9a-f]+")
_WARNED: set[Path] = set()


class CacheTroubleError(Exception):
    """The cache cannot be used now; never shown to the user except as a warning."""


@dataclass(frozen=True)
class Settings:
    """What the environment asks for."""

    place: Path
    enabled: bool
    max_bytes: int


@dataclass(frozen=True)
class CacheState:
    """What `mslite doctor` prints."""

    place: str
    enabled: bool
    reason: str  # why it is not used; empty when it is
    size_bytes: int
    entries: int
    max_bytes: int


def settings() -> Settings:
    """Read the environment; a value that means nothing raises ValueError."""
    switch = variables.get("MSLITE_CACHE", "").strip().lower()
    if switch not in ("", "on", "1", "true", "yes", "off", "0", "false", "no"):
        raise ValueError(f"MSLITE_CACHE is {switch!r}, wanted 'on' or 'off'")
    enabled = switch not in ("off", "0", "false", "no")
    return Settings(_place(), enabled, _max_bytes())


def _place() -> Path:
    """Where the environment puts the cache; starts with "~" when there is no home directory."""
    named = variables.get("MSLITE_CACHE_DIR")
    base = variables.get("XDG_CACHE_HOME", "")
    if not named:  # the XDG rules say to ignore a relative base
        named = os.path.join(base if os.path.isabs(base) else "~/.cache", "mslite")
    place = os.path.expanduser(named)
    return Path(place if place.startswith("~") else os.path.abspath(place))


def _max_bytes() -> int:
    text = variables.get("MSLITE_CACHE_MAX_BYTES", "").strip()
    if not text:
        return DEFAULT_MAX_BYTES
    try:
        return size_of(text)
    except ValueError as exc:
        raise ValueError(f"MSLITE_CACHE_MAX_BYTES is {exc}") from exc


def warn(place: Path, problem: str) -> None:
    """Tell the user, once per process and place, that a compiled model is not kept."""
    if place in _WARNED:
        return
    _WARNED.add(place)
    warnings.warn(
        f"compiled model not kept: cache {str(place)!r}: {problem}; set MSLITE_CACHE_DIR to a "
        "directory of your own, or MSLITE_CACHE=off to do without",
        RuntimeWarning,
        stacklevel=2,
    )


def usable(*, quietly: bool = False) -> Cache | None:
    """The cache as the environment sets it, its folders made; None when off or unusable."""
    wanted = settings()
    if not wanted.enabled:
        return None
    try:
        if not wanted.place.is_absolute():
            raise FileNotFoundError("there is no home directory")
        wanted.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = _problem(wanted.place)
        if problem is None:
            for name in ("locks", "seen"):
                (wanted.place / name).mkdir(mode=0o700, exist_ok=True)
                problem = problem or _problem(wanted.place / name, follow=False)
    except OSError as exc:
        problem = f"it cannot be made ({exc.strerror or exc})"
    if problem is not None:
        if not quietly:
            warn(wanted.place, problem)
        return None
    return Cache(wanted.place, wanted.max_bytes)


@contextmanager
def temporary() -> Iterator[Cache]:
    """A cache of its own for one model, removed at the end; what was opened from it stays open."""
    with tempfile.TemporaryDirectory(prefix="mslite-build-", ignore_cleanup_errors=True) as place:
        for name in ("locks", "seen"):
            os.mkdir(os.path.join(place, name), 0o700)
        yield Cache(Path(place), DEFAULT_MAX_BYTES)


def _problem(folder: Path, follow: bool = True) -> str | None:
    """Why a folder must not be trusted: another user could put a model there."""
    s = os.stat(folder, follow_symlinks=follow)
    if not stat.S_ISDIR(s.st_mode):
        return "it is not a directory"
    if s.st_uid != os.geteuid():
        return f"it belongs to user {s.st_uid}, wanted {os.geteuid()}"
    if s.st_mode & 0o022:
        return f"others may write to it (mode {s.st_mode & 0o777:o}), wanted 700"
    return None


def describe() -> CacheState:
    """The state of the cache, for people; makes and changes nothing."""
    try:
        wanted = settings()
    except ValueError as exc:
        return CacheState(str(_place()), False, str(exc), 0, 0, 0)
    reason: str | None = None
    sizes: list[int] = []
    compiled = 0
    if not wanted.enabled:
        reason = "switched off by MSLITE_CACHE"
    try:
        if os.path.lexists(wanted.place):
            reason = reason or _problem(wanted.place)
            found = Cache(wanted.place, 0)
            sizes = [size for _, size, _ in found.artefacts()]
            compiled = sum(size for _, size, _ in found.compiler_folders())
    except OSError as exc:
        reason = reason or f"it cannot be read ({exc.strerror or exc})"
    return CacheState(
        str(wanted.place),
        reason is None,
        reason or "",
        sum(sizes) + compiled,
        len(sizes),
        wanted.max_bytes,
    )


@contextmanager
def _trouble(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise CacheTroubleError(f"{doing} failed ({exc.strerror or exc})") from exc


class Cache:
    """One cache folder that was found usable."""

    def __init__(self, place: Path, max_bytes: int) -> None:
        self.place = place
        self.seen = place / "seen"
        self.max_bytes = max_bytes

    @contextmanager
    def locked(self, key: str, *, alone: bool) -> Iterator[None]:
        """Hold the lock of a key, shared with other readers or alone."""
        with _trouble("locking"):
            lock = self._lock(key[:2], fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            _unlock(lock)

    def find(self, key: str) -> Path | None:
        """The artefact, if its files are untouched. Wants the lock, shared is enough."""
        folder = self.place / key
        return self._used(folder) if artefact.trusted(folder, key) else None

    def repair(self, key: str) -> Path | None:
        """The artefact, if its content is right; a damaged one is removed. Wants the lock alone."""
        folder = self.place / key
        if artefact.sound(folder, key):
            return self._used(folder)
        self.discard(key)
        return None

    def too_large(self, size_bytes: int) -> CacheTroubleError:
        """What to raise for an artefact above the bound."""
        return CacheTroubleError(
            f"the model takes {size_bytes} bytes, MSLITE_CACHE_MAX_BYTES allows {self.max_bytes}"
        )

    def build(self, key: str, fill: Callable[[Path], None]) -> Path:
        """Let `fill` compile into a folder and put it in place. Wants the lock alone.

        Whatever goes wrong leaves no folder.
        """
        with _trouble("making a folder"):
            self._sweep(key[:2])
            folder = self.place / f"build-{key[:2]}-{secrets.token_hex(8)}"
            folder.mkdir(mode=0o700)
        try:
            fill(folder)
            with _trouble("storing"):
                size_bytes = artefact.seal(folder, key)
                if size_bytes > self.max_bytes:
                    raise self.too_large(size_bytes)
                os.rename(folder, self.place / key)
        finally:
            remove_tree(folder)  # gone already when it was renamed
        return self.place / key

    def discard(self, key: str) -> None:
        """Remove an artefact, whatever lies in its place. Wants the lock alone."""
        folder = self.place / key
        with unheld(folder) as free, _trouble("removing a damaged artefact"):
            if not free:
                raise CacheTroubleError("the compiled model is shared with other processes now")
            if not os.path.lexists(folder):
                return
            if folder.is_symlink() or not folder.is_dir():
                folder.unlink()
                return
            # renamed first: a half removed artefact must not be found under its own name
            doomed = self.place / f"build-{key[:2]}-{secrets.token_hex(8)}"
            os.rename(folder, doomed)
            shutil.rmtree(doomed)

    def compiler_place(self) -> Path | None:
        """Where torch's compiler may keep its files; None where others could put some, too."""
        place = self.place / COMPILER
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            return None if _problem(place, follow=False) else place
        except OSError:
            return None

    def compiler_folders(self) -> list[tuple[int, int, Path]]:
        """(last change in ns, size in bytes, path) of every folder with files of the compiler."""
        found = []
        for folder, _, names in os.walk(self.place / COMPILER):
            with suppress(FileNotFoundError):  # just removed by somebody else
                stats = [os.lstat(os.path.join(folder, name)) for name in names]
                if stats:
                    size = sum(s.st_size for s in stats)
                    found.append((max(s.st_mtime_ns for s in stats), size, Path(folder)))
        return found

    def evict(self, keep: str) -> None:
        """Remove what was not used for longest above the bound, and what dead builders left.

        Wants no lock held: it tries the lock of each victim and passes over the busy ones. Folders
        of the compiler have no lock; a process that misses one compiles again.
        """
        # what stays now is tried again at the next store
        with suppress(OSError, CacheTroubleError):
            found: list[tuple[int, int, Callable[[], bool]]] = [
                (used, size, partial(self._discard_idle, key) if key != keep else bool)
                for used, size, key in self.artefacts()
            ]
            for used, size, folder in self.compiler_folders():
                found.append((used, size, partial(_removed, folder)))
            found.sort(key=lambda one: one[:2])
            total = sum(size for _, size, _ in found)
            for _, size, remove in found:
                if total > self.max_bytes and remove():
                    total -= size
            for name in os.listdir(self.place):
                if match := _BUILD.fullmatch(name):
                    self._sweep_idle(match[1])
            self._forget_old_digests()

    def artefacts(self) -> list[tuple[int, int, str]]:
        """(last use in ns, size in bytes, key) of every artefact."""
        found = []
        for entry in os.scandir(self.place):
            if _KEY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # just removed by somebody else
                    used = entry.stat(follow_symlinks=False).st_mtime_ns
                    found.append((used, artefact.size_bytes(Path(entry.path)), entry.name))
        return found

    def _used(self, folder: Path) -> Path:
        with suppress(OSError):  # the order of eviction is all that suffers
            os.utime(folder)
        return folder

    def _lock(self, prefix: str, how: int) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(self.place / "locks" / f"{prefix}.lock", flags, 0o600)
        try:
            fcntl.flock(lock, how)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _discard_idle(self, key: str) -> bool:
        try:
            lock = self._lock(key[:2], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            self.discard(key)
        except CacheTroubleError:  # somebody shares it
            return False
        finally:
            _unlock(lock)
        return True

    def _sweep_idle(self, prefix: str) -> None:
        with suppress(OSError):
            lock = self._lock(prefix, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                self._sweep(prefix)
            finally:
                _unlock(lock)

    def _sweep(self, prefix: str) -> None:
        """Remove the builds of dead processes; the sole holder of the lock knows them dead."""
        for left in self.place.glob(f"build-{prefix}-*"):
            remove_tree(left)

    def _forget_old_digests(self) -> None:
        notes = sorted(os.scandir(self.seen), key=lambda e: e.stat(follow_symlinks=False).st_mtime)
        for note in notes[: max(0, len(notes) - _SEEN_MAX)]:
            os.unlink(note.path)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, however deep; what cannot be removed stays.

    `shutil.rmtree` calls itself for each level, and a jailed child may have made thousands.
    """
    found = [str(folder)]
    for here in found:  # which grows
        with suppress(OSError):
            os.chmod(here, 0o700)  # it may have been made unreadable
        with suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.path)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)
    for here in reversed(found):
        with suppress(OSError):
            os.rmdir(here)


def _removed(folder: Path) -> bool:
    """Remove the files of a folder, and the folder itself unless there are others in it."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
        folder.rmdir()
    return True


def _unlock(lock: int) -> None:
    # said aloud, not left to close(): a forked child may hold a copy of the descriptor
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)
