"""[build] sandbox=on: a jailed child translates and compiles a model, this process opens it.

The child gets the model file, the settings of the compiler and an empty folder; it runs the very
code that this process would run without a sandbox (Compiling.compile) and writes an artefact
(engines/cache/artefact.py). What it wrote is checked (engines/cache/artefact_check.py), digested
and put into the cache under the key that this process computed, so that later builds find it there
and start no child. Without a cache it goes to a temporary folder, which is removed when the session
is open.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mindspore_lite.core import jail
from mindspore_lite.core.budget import Budget
from mindspore_lite.core.capabilities import those_that
from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.engines.base import Compiling, Engine, ModelSource, Options, Session
from mindspore_lite.engines.cache import artefact_check, digest
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.select import engine_for
from mindspore_lite.errors import EngineError, ModelFileError, ResourceError
from mindspore_lite.graph.open_rank import End, OpenRankError, Trial
from mindspore_lite.graph.source import ModelInput, Shapes, source_of

TASK = f"{__name__}:compile_task"
DOING = "compiling it in the sandbox"
_SLACK_BYTES = 64 << 20  # for files that are only a little too large, which the store reports
_OFF = "leave [build] sandbox out"


@dataclass(frozen=True, kw_only=True)
class JailedSource(ModelSource):
    """A source that only a child translates."""

    given: ModelInput
    shapes: Shapes | None
    store: cache.Cache  # where what is compiled goes
    lasting: bool  # False: that is removed when the session is open

    def compile(
        self, engine: str, options: Options, digests: tuple[str, ...], folder: Path
    ) -> None:
        """Have a child compile the model into an empty folder, and check what it wrote.

        The child opens the files itself, and refuses them unless they have these digests.
        """
        given, size_bytes = self.given, _size_bytes(self)
        self.snapshot.forget()
        blobs = [given.data] if given.path is None else []
        if given.weights is not None:
            blobs.append(given.weights)
        told = jail.run(
            TASK,
            {
                "engine": engine,
                "precision": options.precision,
                "folder": str(folder),
                "digests": digests,
                "kind": given.kind,
                "path": _text(given.path),
                "beside": _text(given.beside),
                "has_weights": given.weights is not None,
                "strict_bfloat16": given.strict_bfloat16,
                "budget": asdict(replace(given.budget, sandbox=False)),
                "shapes": None if self.shapes is None else dict(self.shapes),
            },
            doing=DOING,
            hint="[build] max_seconds and max_fold_bytes, and MSLITE_CACHE_MAX_BYTES, set limits",
            limits=limits(size_bytes, given.budget, self.store.max_bytes + _SLACK_BYTES),
            read=_readable(given),
            write=[folder],
            blobs=blobs,
        )
        if told:
            raise OpenRankError(_read_trial(told))
        artefact_check.check(folder, engine)


def check(engine: Engine, given: ModelInput) -> None:
    """Refuse what would be compiled in this process all the same.

    Raises:
        EngineError: With the reason.
    """
    if not isinstance(engine, Compiling):
        able = those_that(lambda one: one.compiles_apart)
        raise EngineError(
            f"[build] sandbox is on, but engine {engine.name!r} compiles a model when it opens it, "
            f"in this process; use target 'cpu' with [common_context] engine={able}, or {_OFF}"
        )
    if given.variable:
        raise EngineError(
            "[build] sandbox is on, but a model whose weights may change is compiled again with "
            f"every change, in this process; leave out the list of variable weights, or {_OFF}"
        )


@contextmanager
def jailed(source: ModelSource, given: ModelInput, shapes: Shapes | None) -> Iterator[JailedSource]:
    """The source of the same model for a child to translate; load it before the block ends."""
    if not source.storable:
        raise EngineError(
            "[build] sandbox is on, but the model is encrypted: a sandbox hands over compiled "
            f"models as files, and nothing of this one may come to lie on a disk; {_OFF}"
        )
    own = {field.name: getattr(source, field.name) for field in fields(source)}
    own["translate"] = _never
    with ExitStack() as stack:
        found = cache.usable()
        store = found or stack.enter_context(cache.temporary())
        yield JailedSource(
            **own, given=given, shapes=shapes, store=store, lasting=found is not None
        )


def load(engine: Engine, source: ModelSource, options: Options) -> Session:
    """The session of a source, which may be a jailed one."""
    session = engine.load(source, options)
    if isinstance(source, JailedSource) and not source.lasting:
        # its file is about to go: another session is another child's work
        session.info = replace(session.info, mapped=False)
    return session


def _never() -> NoReturn:
    raise EngineError(
        "[build] sandbox is on, and the model would have been compiled in this process; this is a "
        "bug: please report it"
    )


def limits(size_bytes: int, budget: Budget, file_bytes: int) -> jail.Limits:
    """What a child may use for a model of this size.

    Compilers were seen to hold three copies of the weights at most, for a moment. The time by the
    clock is for a child that waits: one that computes meets the CPU limit first.
    """
    stacks = (os.cpu_count() or 1) * (8 << 20)
    data = (1 << 30) + stacks + 4 * size_bytes + budget.max_fold_bytes
    data = min(data, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return jail.Limits(
        cpu_s=budget.max_seconds,
        wall_s=2 * budget.max_seconds + 60,
        data_bytes=data,
        address_bytes=data + 4 * size_bytes + (16 << 30),
        file_bytes=file_bytes,
    )


def _size_bytes(source: JailedSource) -> int:
    """What the model takes, in files and in memory."""
    given = source.given
    files = sum(file.size for file in source.snapshot.files)
    return files + len(given.data) + len(given.weights or b"")


def _readable(given: ModelInput) -> list[Path]:
    """The folder of the model, and the file itself, which may be a link to another folder."""
    found = [] if given.path is None else [given.path]
    return found if given.place is None else [*found, given.place.parent]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def compile_task(arguments: dict[str, Any], blobs: Sequence[bytes]) -> dict[str, Any]:
    """In the child: compile; returns nothing, or what a model of open rank looks like."""
    told = arguments
    left = list(blobs)
    given = ModelInput(
        told["kind"],
        None if told["path"] is None else Path(told["path"]),
        b"" if told["path"] is not None else left.pop(0),
        left.pop(0) if told["has_weights"] else None,
        None if told["beside"] is None else Path(told["beside"]),
        budget=Budget(**told["budget"]),
        carries_state=True,  # as all that is built; see serving/build.py
        strict_bfloat16=told["strict_bfloat16"],
    )
    engine = engine_for("cpu", told["engine"])
    assert isinstance(engine, Compiling)
    try:
        source = source_of(given, told["shapes"])
        if list(digest.read(source.snapshot, None).sha256) != told["digests"]:
            raise ModelFileError(f"{given.name} changed while it was read; build it again")
        engine.compile(source, Options(precision=told["precision"]), Path(told["folder"]))
    except OpenRankError as exc:
        return _write_trial(exc.trial)
    except cache.CacheTroubleError as exc:
        raise ResourceError(f"the compiled model cannot be written: {exc}") from exc
    except EngineError as exc:
        if _is_full(Path(told["folder"])):  # which compilers report in words of their own
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG)) from exc
        raise
    return {}


def _is_full(folder: Path) -> bool:
    """Whether a file has met the limit of this process."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return any(file.lstat().st_size >= limit for file in folder.iterdir())


def _write_trial(trial: Trial) -> dict[str, Any]:
    ends = {
        side: [(name, np.dtype(dtype).name, dims) for name, dtype, dims in found]
        for side, found in (("inputs", trial.inputs), ("outputs", trial.outputs))
    }
    return {"open": trial.open, "metadata": trial.metadata, **ends}


def _read_trial(told: Any) -> Trial:
    """What the child says of a model of open rank, which is not trusted."""
    try:
        return Trial(
            tuple(str(name) for name in told["open"]),
            tuple(_end(*end) for end in told["inputs"]),
            tuple(_end(*end) for end in told["outputs"]),
            _strings(told["metadata"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as exc:
        raise ModelFileError(f"{DOING} gave no answer that makes sense") from exc


def _end(name: Any, kind: Any, dims: Any) -> End:
    return str(name), BY_NAME[kind].numpy, tuple(int(dim) for dim in dims)


def _strings(told: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in told.items()}
