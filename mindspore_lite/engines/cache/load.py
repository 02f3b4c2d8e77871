"""Finds a compiled model in the cache or builds it; the part that all engines share.

An engine says how to write a folder, and how to open one; which process waits for which, and what a
later load must not find, is decided here.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from mindspore_lite.core import machine
from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.sandbox import JailedSource
from mindspore_lite.errors import EngineError
from mindspore_lite.weights.records import Identity

T = TypeVar("T")


def store_of(source: ModelSource) -> cache.Cache | None:
    """Where what is compiled of a model goes; None: it stays in memory."""
    if isinstance(source, JailedSource):
        return source.store
    return cache.usable() if source.storable else None


def in_memory_because(source: ModelSource, trouble: cache.CacheTroubleError) -> str:
    """Why a model is compiled in memory after all.

    Raises:
        EngineError: It must not be, since this process would compile it.
    """
    if isinstance(source, JailedSource):
        raise EngineError(
            f"the model cannot be built with [build] sandbox=on: the compiled form is not to be "
            f"had: {trouble}"
        ) from trouble
    return str(trouble)


def builder(
    source: ModelSource,
    options: Options,
    engine: str,
    where: tuple[cache.Cache, str, digest.Content],
    build: Callable[[], Path],
) -> Callable[[], Path]:
    """How a model is compiled: by `build`, here, or in a jailed child.

    where: The store, the key there, and what the model's files hold.
    """
    if not isinstance(source, JailedSource):
        return build
    store, key, content = where
    fill = partial(source.compile, engine, options, content.sha256)
    return lambda: write(store, key, 0, fill)


def identity(
    source: ModelSource, content: digest.Content, engine: str, makers: str, more: Mapping[str, str]
) -> Identity:
    """Whatever decides what is compiled, but for the CPU.

    Args:
        source: The model.
        content: What its files hold.
        engine: The engine, with its version.
        makers: A digest of the code that decides; see digest.code_of.
        more: What else decides, each by a name that people understand.
    """
    made_by = digest.joined([source.recipe, makers, str(artefact.FORMAT)])
    return Identity(
        digest.joined([*source.digests, *content.sha256]),
        {"version of mslite": made_by, "version of the engine": engine, **more},
    )


def find_or_build(
    store: cache.Cache,
    key: str,
    opened: Callable[[Path], T | None],
    build: Callable[[], Path],
) -> T:
    """What `opened` makes of the folder of a key; it returns None where it refuses one.

    Raises:
        CacheTroubleError: What `build` has written is refused.
    """

    def tried(folder: Path | None) -> T | None:  # under the key's lock
        return None if folder is None else opened(folder)

    with store.locked(key, alone=False):
        found = tried(store.find(key))
    if found is not None:
        return found
    with store.locked(key, alone=True):  # another builder may have been faster
        found = tried(store.repair(key))
        if found is not None:
            return found
        store.discard(key)  # right to the last bit, but refused
        found = opened(build())
        if found is None:
            store.discard(key)
            raise cache.CacheTroubleError("the engine refuses to open what it just wrote")
    gc.collect()  # graphs hold themselves in circles
    machine.trim_heap()
    store.evict(keep=key)
    return found


def write(
    store: cache.Cache,
    key: str,
    size_bytes: int,
    fill: Callable[[Path], None],
) -> Path:
    """The folder of a key, filled; size_bytes: how much that will be, about.

    Raises:
        CacheTroubleError: It is too much, or cannot be written.
    """
    if size_bytes > store.max_bytes:  # known before the work is done
        raise store.too_large(size_bytes)

    def filled(folder: Path) -> None:
        try:
            fill(folder)
        except OSError as exc:
            raise cache.CacheTroubleError(f"storing failed ({exc.strerror or exc})") from exc

    return store.build(key, filled)
