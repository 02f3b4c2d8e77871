"""How a model of the repository becomes a service: its settings, its jail, and where it runs.

loading = Loading(context, isolation, retry=False, sandbox=True)
models.load(entry.name, "1", partial(loading.start, entry, "1"), loading.options(entry, "1"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.server.cache import CachedService, ResponseCache
from mindspore_lite.server.eviction import EvictableService
from mindspore_lite.server.isolation import Isolation, started
from mindspore_lite.server.models import ModelOptions, PoolLike
from mindspore_lite.server.repository.apply import options_of, spec_of, start_checked
from mindspore_lite.server.repository.records import ModelEntry
from mindspore_lite.server.shares import Shares
from mindspore_lite.settings.read import Layer

_SANDBOX, _SWITCH = "[build] sandbox", "mslite serve --no-sandbox, or Server(sandbox=False)"
_JAIL = Layer("--sandbox", {"build": {"sandbox": "on"}})


class Loading:
    """Starts services for models.

    Args:
        context: How models run that say nothing of their own.
        isolation: Where all of them run, or some, by name; "" is the name of the others, which run
            on threads unless it is there.
        retry: Whether requests that were lost with a process are computed once more.
        sandbox: Whether all models are built in a jailed process, whatever their files say.
        shares: Of the cores, by model, instead of what its files say.
        cache: Bytes of the response cache of some models, by name; those of others are what their
            own configuration says.
        evicts: Whether models that allow it may be closed while nobody uses them.

    Attributes:
        evictable: Those models, by service, with name and version.
    """

    def __init__(
        self,
        context: Context,
        isolation: str | Mapping[str, str] = "thread",
        *,
        retry: bool = False,
        sandbox: bool = False,
        shares: Mapping[str, float] | None = None,
        cache: Mapping[str, int] | None = None,
        evicts: bool = False,
    ) -> None:
        self._context = context
        word = checks.one_of(*(one.value for one in Isolation))
        by_name = {"": isolation} if isinstance(isolation, str) else isolation
        self.isolated = {name: word("isolation", how) for name, how in by_name.items()}
        self._usual = self.isolated.pop("", Isolation.THREAD.value)
        self._retry = checks.flag("retry", retry)
        self._sandbox = checks.flag("sandbox", sandbox)
        self.shares = Shares(shares)
        self._evicts = evicts
        self.evictable: WeakKeyDictionary[EvictableService, tuple[str, str]] = WeakKeyDictionary()
        self.cached = {
            checks.string("cache key", name): checks.non_negative(f"cache of {name!r}", size)
            for name, size in (cache or {}).items()
        }

    def start(self, entry: ModelEntry, version: str) -> PoolLike:
        """Build a version.

        Raises:
            LiteError: It cannot be built.
        """
        service: PoolLike
        if self._evicts and entry.config.evictable:
            service = EvictableService(partial(self._built, entry, version))
            self.evictable[service] = entry.name, version
        else:
            service = self._built(entry, version)
        cache_bytes = self._cache_bytes(entry)
        return CachedService(service, ResponseCache(cache_bytes)) if cache_bytes else service

    def _built(self, entry: ModelEntry, version: str) -> PoolLike:
        how = self.isolated.get(entry.name, self._usual)
        if entry.config.isolation == Isolation.PROCESS.value:  # a file may ask for more, not less
            how = entry.config.isolation
        with boundary(""):
            path = self._path(entry, version)
            first = (_JAIL,) if self._sandbox else ()
            spec = spec_of(entry.config, self._context, first)
            share = self._share(entry)
            start = partial(
                started,
                path,
                spec,
                Isolation(how),
                retry=self._retry,
                name=entry.name,
                share=share,
                nice=self.shares.niceness(share),
            )
            try:
                return start_checked(entry.config, start)
            except EngineError as exc:
                if self._sandbox and _SANDBOX in str(exc):
                    raise EngineError(f"{exc}: {_SWITCH}") from exc
                raise

    def _cache_bytes(self, entry: ModelEntry) -> int:
        return self.cached.get(entry.name, entry.config.cache_bytes)

    def options(self, entry: ModelEntry, version: str) -> ModelOptions:
        """What the server says of a version."""
        config = replace(
            entry.config, share=self._share(entry), cache_bytes=self._cache_bytes(entry)
        )
        return options_of(config, self._path(entry, version))

    def _share(self, entry: ModelEntry) -> float:
        return self.shares.of(entry.name, entry.config.share)

    @staticmethod
    def _path(entry: ModelEntry, version: str) -> Path:
        path = entry.versions.get(version)
        if path is None:
            raise ModelFileError(f"model {entry.name!r} has no version {version}")
        return path
