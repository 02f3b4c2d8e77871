"""Shares compiled models between processes, from the compile cache or from a card.

What is shared is the artefact of the compile cache, whose weights every process maps: its pages are
in memory once, however many map them, and stay as long as one does. Mappings are private, so that
nobody can write to what others read. Weights on a card are shared there: the session says how they
are mapped, anew for each process that may use them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mindspore_lite.engines.base import Engine, Exporting, ModelSource, Options, Session
from mindspore_lite.engines.cache import artefact, store
from mindspore_lite.engines.sandbox import JailedSource
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.sharing.client import borrowed
from mindspore_lite.weights.sharing.hold import Hold
from mindspore_lite.weights.sharing.server import Offer, Share


def load_shared(
    engine: Engine, source: ModelSource, options: Options, device: str, pids: tuple[int, ...]
) -> tuple[Session, Share]:
    """Load a model, and share its weights with the listed processes until the Share is closed."""
    _check_storable(source, "shared with other processes")
    if isinstance(source, JailedSource) and not source.lasting:
        raise _not_stored()
    offers: list[Offer] = []

    def keep(folder: Path, identity: Identity) -> None:
        offers.append(Offer(_held(folder), identity, device, frozenset(pids)))

    try:
        session = engine.load(source, options, keep)
    except BaseException as exc:
        for offer in offers:  # it will not be shared
            offer.hold.release()
        if not isinstance(exc, OpenRankError):
            raise
        raise EngineError(
            f"the model cannot be shared with other processes: inputs {list(exc.trial.open)} have "
            "any number of dims, and it is compiled when a request brings one; leave out "
            "shareable_weight_pid_list"
        ) from exc
    if not offers:
        raise _not_stored()
    (offer,) = offers
    if isinstance(session, Exporting):  # and so kept, with its memory, as long as it is shared
        offer = replace(offer, extra=session.export)
    return session, Share(offer)


def _held(folder: Path) -> Hold:
    try:
        return Hold(folder, without=[artefact.META])
    except OSError as exc:
        raise EngineError(
            "the model cannot be shared with other processes: its compiled form in "
            f"{str(folder)!r} cannot be held ({exc.strerror or exc})"
        ) from exc


def open_shared(
    engine: Engine, source: ModelSource, options: Options, device: str, handle: int
) -> Session:
    """A session on what another process shares; nothing is compiled, and nothing is written."""
    _check_storable(source, "used from another process")
    identity = engine.identity(source, options)
    with borrowed(handle, device, identity) as (folder, extra):
        return engine.open(folder, options, extra)


def _check_storable(source: ModelSource, doing: str) -> None:
    if not source.storable:
        raise EngineError(
            f"the weights of an encrypted model cannot be {doing}, for nothing of it may come to "
            "lie on a disk; leave out shareable_weight_pid_list and shareable_weight_mem_handle"
        )


def _not_stored() -> EngineError:
    state = store.describe()
    reason = state.reason or "the model could not be put there, and a warning says why"
    return EngineError(
        "the model cannot be shared with other processes: weights are shared from the compile "
        f"cache {state.place!r}, which is not used ({reason}); put that right, or leave out "
        "shareable_weight_pid_list"
    )
