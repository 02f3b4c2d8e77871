"""Brings what is served in line with the model repository: loads, reloads and unloads.

    control = Control(models, loading, read, mode=EXPLICIT)
    control.start(["digits"])                    load what shall be there from the start
    control.load("digits").result()              read the repository again, load what changed
    control.unload("digits").result()
    control.close()

One loader thread does all of it, one task after the other, so that two loads of a model never meet;
the threads of ports only queue tasks, and wait for a Future if they like. A load happens beside
what is served: build, probe, warm up, switch; the old service ends when its last request has. If
any of it fails, what was served goes on, and the index says why.

The loader thread alone touches `_loaded`, `_spoilt`, `_applied`, `_seen` and `_unreadable`; `known`
is replaced as a whole. `_lock` guards the rest.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import ClosedError, LiteError
from mindspore_lite.server.errors import Kind, RequestError, cleaned, kind_of
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig
from mindspore_lite.server.grpc.pool import POOL
from mindspore_lite.server.loading import Loading
from mindspore_lite.server.models import READY, UNLOADED, Models, ProbeError, Status
from mindspore_lite.server.repository.folder import MAX_ENTRIES, Folder
from mindspore_lite.server.repository.pbtxt import from_message
from mindspore_lite.server.repository.records import ModelEntry, ServeConfig, chosen

NONE, EXPLICIT, POLL = "none", "explicit", "poll"
MODES = (NONE, EXPLICIT, POLL)
ALL = "*"  # stands for every model of the repository
EXTENSION = "model_repository"
_LOG = logging.getLogger(__name__)
_MOST_WAITING = 64  # tasks; more are refused. Guess
_JOIN_S = 1.0  # for a loader that is about to end; one that builds is left to itself

Entries = Mapping[str, ModelEntry]
Mark = Callable[[str, str, str, str], None]  # model, version, what, text
Task = tuple[Callable[[], Any], "Future[Any]"]


class Control:
    """Decides which models are served. Everything may be called from any thread.

    Args:
        models: What is served.
        loading: Starts services.
        read: Reads the repository.
        mode: NONE loads at the start alone, EXPLICIT when a client asks, POLL when files change.
        poll_s: How often the repository is looked at in mode POLL.
        mark: Told what happened.
    """

    def __init__(
        self,
        models: Models,
        loading: Loading,
        read: Callable[[], Entries],
        *,
        mode: str = NONE,
        poll_s: float = 0.0,
        mark: Mark = lambda model, version, what, text: None,
    ) -> None:
        self.mode = mode
        self.known: Entries = {}
        self._models, self._loading, self._read, self._mark = models, loading, read, mark
        self._poll_s = poll_s if mode == POLL else None
        self._tasks: queue.Queue[Task | None] = queue.Queue(_MOST_WAITING)
        self._loaded: dict[tuple[str, str], object] = {}  # stamps of versions that are served
        self._spoilt: dict[tuple[str, str], object] = {}  # of those that could not be loaded
        self._applied: dict[str, object] = {}  # stamps of entries
        self._seen: dict[str, object] = {}  # the same, of the read before
        self._unreadable = ""  # why the repository could not be read the last time
        self._is_closed = False
        self._running: Future[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="mslite-loader", daemon=True)
        self._lock = threading.Lock()

    # --- for other threads ---

    def start(self, names: Iterable[str] = (ALL,), needed: Iterable[str] = ()) -> None:
        """Load what shall be there from the start; returns when all are loaded or have failed.

        Args:
            names: Of models; ALL is all of them.
            needed: Models without which there is no sense in going on.

        Raises:
            LiteError: One that is needed cannot be loaded, or it was closed meanwhile.
        """
        self._queued(partial(self._start, list(names), frozenset(needed))).result()

    def load(self, name: str, parameters: Mapping[str, object] | None = None) -> Future[None]:
        """Load a model, or what has changed of it.

        Raises:
            RequestError: This server does not do so, or not with these parameters.
        """
        self._check_explicit()
        config = _config_parameter(parameters or {})
        return self._queued(partial(self._load_one, name, config))

    def unload(self, name: str) -> Future[None]:
        """Serve a model no more; what it took is finished. Harmless if it is not served.

        Raises:
            RequestError: This server does not do so.
        """
        self._check_explicit()
        return self._queued(partial(self._unload_one, name))

    def change(self, work: Callable[[], Any]) -> Future[Any]:
        """Do something that must not meet a load, such as an update of weights.

        Raises:
            RequestError: There is too much to do already.
        """
        return self._queued(work)

    def index(self, *, ready: bool = False) -> list[dict[str, Any]]:
        """What is known of all models and versions, as the protocol says it."""
        return index_of(self._models, self.known, ready=ready)

    @property
    def is_busy(self) -> bool:
        """Whether the loader has not ended."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Do nothing more. A build under way is not waited for: what it makes is closed again."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            left = [] if self._running is None else [self._running]
        with suppress(queue.Empty):
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    left.append(task[1])
        self._tasks.put(None)
        for future in left:
            _settle(future, error=_ending())
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _check_explicit(self) -> None:
        if self.mode != EXPLICIT:
            raise RequestError(
                Kind.UNAVAILABLE,
                "this server decides by itself which models it loads; start it with "
                "--control explicit",
            )

    def _queued(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._is_closed:
                raise _ending()
            try:
                self._tasks.put_nowait((work, future))
            except queue.Full:
                raise RequestError(
                    Kind.UNAVAILABLE,
                    f"{_MOST_WAITING} loads are waiting already; try again later",
                    retry_after_s=10,
                ) from None
            if not self._thread.is_alive():
                self._thread.start()
        return future

    # --- the loader thread ---

    def _run(self) -> None:
        due_s = self._next_poll()
        while True:
            try:
                left_s = None if due_s is None else max(0.0, due_s - time.monotonic())
                task = self._tasks.get(timeout=left_s)
            except queue.Empty:
                self._do(self._poll, Future())
                due_s = self._next_poll()
                continue
            if task is None:
                return
            self._do(*task)
            del task  # which the thread would hold until the next one

    def _do(self, work: Callable[[], Any], future: Future[Any]) -> None:
        with self._lock:
            self._running = future
            is_closed = self._is_closed
        try:
            if is_closed:
                raise _ending()
            _settle(future, work())
        except Exception as exc:  # noqa: BLE001 - whoever waits is told, the loader goes on
            if work == self._poll and not self._is_closed:  # for which nobody waits
                _LOG.exception("the model repository was not read to the end")
            _settle(future, error=exc)
        with self._lock:
            self._running = None

    def _next_poll(self) -> float | None:
        return None if self._poll_s is None else time.monotonic() + self._poll_s

    def _start(self, names: Sequence[str], needed: frozenset[str]) -> None:
        entries = self._reread()
        self._seen = {name: entry.stamp for name, entry in entries.items()}
        wanted = list(entries) if ALL in names else list(names)
        for name in wanted:
            if name not in entries:
                self._failed(name, "", "the repository has no such model")
                continue
            found = self._brought_in_line(entries[name])
            if name in needed and found is not None and not isinstance(found, ProbeError):
                raise found
            self._check_goes_on()
        self._models.expect(())

    def _load_one(self, name: str, config: str | None) -> None:
        entry = self._reread().get(name)
        if entry is None:
            raise RequestError(
                Kind.NOT_FOUND, f"failed to load {name!r}: the repository has no such model"
            )
        if config is not None:
            entry = configured(entry, config)
        found = self._brought_in_line(entry, again=True)
        if found is not None:
            kind = Kind.INVALID if entry.fault else kind_of(found)
            kind = kind if kind in (Kind.INVALID, Kind.UNAVAILABLE) else Kind.FAILED
            raise RequestError(kind, f"failed to load {name!r}: {cleaned(str(found))}")

    def _unload_one(self, name: str) -> None:
        for version in self._models.versions(name):
            self._unload(name, version)
        self._forget(name)

    def _poll(self) -> None:
        """Look whether files have changed. What is still being written is left for the next time:
        a change counts when it looks the same twice."""
        try:
            entries = self._reread()
        except LiteError as exc:
            if str(exc) != self._unreadable:  # once, not with every look
                self._unreadable = str(exc)
                _LOG.warning("the model repository cannot be read, and nothing changes: %s", exc)
            return
        self._unreadable = ""
        stamps = {name: entry.stamp for name, entry in entries.items()}
        for name, entry in entries.items():
            is_new = name not in self._applied or self._applied[name] != entry.stamp
            if is_new and name in self._seen and self._seen[name] == entry.stamp:
                self._brought_in_line(entry)
        for name in [name for name in self._applied if name not in entries]:
            if name not in self._seen:
                self._unload_one(name)
        self._seen = stamps

    def _reread(self) -> Entries:
        """What the repository holds now; the index forgets what is neither there nor served."""
        found = self._read()
        self.known = found
        for one in self._models.index():
            entry = found.get(one.name)
            is_there = entry is not None and one.version in entry.versions
            if one.reason == UNLOADED and not is_there:
                self._models.forget(one.name, one.version)
        return found

    # --- one model ---

    def _brought_in_line(self, entry: ModelEntry, *, again: bool = False) -> LiteError | None:
        """Serve the versions of a model that its policy asks for, and no others.

        Args:
            entry: The model.
            again: Try what failed once more, although nothing has changed.

        Returns:
            What went wrong first; then versions that should end go on.
        """
        name, error = entry.name, None
        self._applied[name] = entry.stamp
        if entry.config.ignored:
            shown = ", ".join(entry.config.ignored)
            _LOG.warning(
                "model %s: %s has keys without effect: %s", name, entry.config.source, shown
            )
        wanted = chosen(entry)
        if not wanted:
            fault = entry.fault or "none of its versions is chosen by its version policy"
            return self._failed(name, "", fault)
        for version in wanted:
            key, stamp = (name, version), _stamp(entry, version)
            if key in self._loaded and self._loaded[key] == stamp:
                self._models.is_fine(name, version)
                continue
            if not again and key in self._spoilt and self._spoilt[key] == stamp:
                continue
            found = self._load(entry, version)
            (self._loaded if found is None else self._spoilt)[key] = stamp
            error = error or found
            self._check_goes_on()
        statuses = [self._models.status(name, version) for version in wanted]
        if any(one is None or one.state != READY or one.reason for one in statuses):
            return error
        for version in self._models.versions(name):
            if version not in wanted:
                self._unload(name, version)
        for one in self._models.index():  # what failed before, and is not wanted any more
            if one.name == name and one.is_failure and one.version not in wanted:
                self._models.forget(name, one.version)
        return None

    def _load(self, entry: ModelEntry, version: str) -> LiteError | None:
        """Load a version; what went wrong, or None."""
        name, began_s = entry.name, time.monotonic()
        try:
            options = self._loading.options(entry, version)
            self._models.load(name, version, partial(self._loading.start, entry, version), options)
        except (LiteError, ValueError) as exc:
            if isinstance(exc, ClosedError) and self._is_closed:
                raise
            error = exc if isinstance(exc, LiteError) else LiteError(str(exc))
            return self._failed(name, version, str(exc), error)
        took_s = time.monotonic() - began_s
        _LOG.info("model %s version %s was loaded in %.1f s", name, version, took_s)
        self._mark(name, version, "load", "")
        return None

    def _failed(
        self, name: str, version: str, reason: str, error: LiteError | None = None
    ) -> LiteError:
        _LOG.error("model %s%s cannot be loaded: %s", name, version and f" {version}", reason)
        self._models.failed(name, version, cleaned(reason))
        self._mark(name, version, "reload_failed", cleaned(reason))
        return LiteError(reason) if error is None else error

    def _unload(self, name: str, version: str) -> None:
        self._loaded.pop((name, version), None)
        self._models.unload_soon(name, version)
        _LOG.info("model %s version %s was unloaded", name, version)
        self._mark(name, version, "unload", "")

    def _forget(self, name: str) -> None:
        """Nothing is known of a model any more, but that it was unloaded."""
        self._applied.pop(name, None)
        self._spoilt = {key: stamp for key, stamp in self._spoilt.items() if key[0] != name}
        for status in self._models.index():
            if status.name == name and status.is_failure:
                self._models.forget(name, status.version)

    def _check_goes_on(self) -> None:
        if self._is_closed:
            raise _ending()


def index_of(models: Models, known: Entries, *, ready: bool = False) -> list[dict[str, Any]]:
    """The index; models of the repository that were never loaded are there with their names."""
    found = models.index()
    if ready:
        return [_row(one) for one in found if one.state == READY and one.version]
    rows = [_row(one) for one in found]
    names = {one.name for one in found}
    rows += [{"name": name} for name in known if name not in names]
    return sorted(rows, key=lambda row: str(row["name"]))


def _row(status: Status) -> dict[str, Any]:
    row = {"name": status.name, "version": status.version, "state": status.state}
    if status.reason:
        row["reason"] = status.reason
    return row


def _stamp(entry: ModelEntry, version: str) -> object:
    """Changes when a version's own files do, or its configuration.

    A version with a folder of its own is not touched by changes elsewhere, such as a new version.
    """
    path = entry.versions[version]
    if path.parent.name != version:
        return entry.stamp
    return _looks(path.parent), _without_policy(entry.config)


def _looks(folder: Path) -> object:
    """Of the files in a folder, and in those that it holds, such as model_variables."""
    found: list[object] = []
    try:
        for path in sorted(folder.iterdir()):
            status = path.stat()
            found.append((path.name, status.st_ino, status.st_size, status.st_mtime_ns))
            if path.is_dir() and len(found) < MAX_ENTRIES:
                found += [
                    (one.name, one.stat().st_ino, one.stat().st_size, one.stat().st_mtime_ns)
                    for one in sorted(path.iterdir())
                ]
    except OSError as exc:  # it changes this very moment: a load says what is wrong
        return exc.errno, time.monotonic_ns()
    return tuple(found)


def _without_policy(config: ServeConfig) -> object:
    return tuple(value for name, value in vars(config).items() if name != "policy")


def configured(entry: ModelEntry, text: str) -> ModelEntry:
    """A model with another configuration, in JSON, in the place of that in its folder.

    Raises:
        RequestError: It is none, or makes no sense.
    """
    if not entry.versions:  # no configuration helps
        raise RequestError(Kind.INVALID, f"failed to load {entry.name!r}: {cleaned(entry.fault)}")
    failed = f"failed to load {entry.name!r}: parameter 'config'"
    folders = {path.parent.parent for v, path in entry.versions.items() if path.parent.name == v}
    if len(folders) != 1:
        raise RequestError(Kind.INVALID, f"{failed} is for models with a folder of their own")
    try:
        given = read_json(text)
        if not isinstance(given, dict):
            raise ValueError(f"it is a {type(given).__name__}, wanted an object")
        message = json_format.ParseDict(given, ModelConfig(), descriptor_pool=POOL)
        config = from_message(message, Folder(folders.pop()))
    except (json_format.ParseError, ValueError, RecursionError) as exc:
        raise RequestError(Kind.INVALID, f"{failed} cannot be read: {cleaned(str(exc))}") from exc
    except LiteError as exc:
        raise RequestError(Kind.INVALID, f"{failed}: {cleaned(str(exc))}") from exc
    if config.name not in ("", entry.name) or config.file not in ("", entry.config.file):
        text = f"{failed} must not change name or default_model_filename"
        raise RequestError(Kind.INVALID, text)
    config = replace(config, file=entry.config.file, source="the parameter 'config' of a load")
    return replace(entry, config=config, fault="")


def _config_parameter(parameters: Mapping[str, object]) -> str | None:
    """The configuration that a load brings; None if it brings none."""
    for key in parameters:
        if key.startswith("file:"):
            text = "model files cannot be sent: put them into the repository, then load"
        elif key == "config":
            continue
        else:
            text = f"unknown parameter {key[:200]!r}; a load may have 'config'"
        raise RequestError(Kind.INVALID, text)
    return str(parameters["config"]) if "config" in parameters else None


def _settle(future: Future[Any], result: Any = None, error: Exception | None = None) -> None:
    """End a task; once, whether it is the loader that ends it or close()."""
    with suppress(InvalidStateError):
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _ending() -> ClosedError:
    return ClosedError("the server is ending")
