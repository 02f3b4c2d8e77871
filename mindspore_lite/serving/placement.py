"""From a model and a Spec to workers: the sessions that each may use, and its cores.

A worker of one thread needs none of an engine's own, so all such workers share one session. Wider
workers get a session each, because the threads of a session serve all its callers; their weights
are pages of the same file, so that only the graph is there several times. A model that cannot be
mapped from the compile cache is loaded once, in one session whose threads all workers share; only
bound workers get a session each even then, for threads cannot sit on the cores of two. An engine
that packs weights for each session, as OpenVINO does, is treated alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mindspore_lite.core import cores, machine
from mindspore_lite.engines import choice
from mindspore_lite.engines.base import Options, Session
from mindspore_lite.engines.sessions.swap import SessionSwap
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving.build import (
    Built,
    any_shape,
    any_shape_updated,
    applied,
    build,
    check_stateless,
    updated,
    warn_of_unused_targets,
)
from mindspore_lite.serving.layout import Layout, Wanted, layout
from mindspore_lite.serving.prefetch import places_ahead
from mindspore_lite.serving.scheduler import WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption
from mindspore_lite.settings.spec import Spec
from mindspore_lite.weights.all_or_none import all_or_none


class Changeable(Protocol):
    """All sessions of a model whose weights may change."""

    @property
    def quick(self) -> Session | None:
        """The first session, for requests of its own sizes that many may run at once, if any."""

    @property
    def built(self) -> Built:
        """The model as it is now, as seen by the first worker."""

    def change(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Let all sessions have other weights, or none. For one thread only."""


class Changing:
    """The sessions of a model whose weights may change: all of them change at once."""

    def __init__(self, built: Sequence[Built], sessions: Sequence[Session] | None = None) -> None:
        self._built = tuple(built)  # one for each session
        self._swap = SessionSwap([*(sessions or map(any_shape, built)), built[0].session])
        *self.sessions, self._quick = self._swap.faces()

    @property
    def quick(self) -> Session:
        """The first session, for its own sizes alone."""
        return self._quick

    @property
    def built(self) -> Built:
        """The model as it is now, as seen by the first worker."""
        return self._built[0]

    def change(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Load all sessions with other weights, then let them take over. For one thread only."""
        made, sessions = self._opened(replaced)
        self._swap.swap([*sessions, made[0].session])
        self._built = tuple(made)
        machine.trim_heap()  # what the sessions before took

    def derived(self, replaced: Mapping[str, np.ndarray]) -> Changing:
        """The same model once more with other weights; these sessions stay as they are."""
        made, sessions = self._opened(replaced)
        return Changing([replace(one, share=None) for one in made], sessions)

    def _opened(self, replaced: Mapping[str, np.ndarray]) -> tuple[list[Built], list[Session]]:
        """All sessions once more with other weights, or none; and each for any sizes."""
        with all_or_none(_close_session) as done:

            def make(one: Built) -> Built:
                made = updated(one, replaced)
                done(made)
                return made

            count = len(self._built)
            with ThreadPoolExecutor(count, thread_name_prefix="mslite-build") as pool:
                made = list(pool.map(make, self._built))
            return made, list(map(any_shape_updated, self._swap.now, made))


def _close_session(built: Built) -> None:
    built.session.close()


@dataclass(frozen=True)
class Placed:
    """A model that workers can run."""

    model: Built | Changeable  # the second where its weights may change
    layout: Layout
    places: tuple[WorkerPlace, ...]

    @property
    def changing(self) -> Changeable | None:
        """The sessions, where their weights may change."""
        return None if isinstance(self.model, Built) else self.model

    @property
    def built(self) -> Built:
        """The model as it is now, as seen by the first worker."""
        return self.model if isinstance(self.model, Built) else self.model.built

    def close(self) -> None:
        """Close all sessions, and share the weights no more."""
        for place in self.places:
            for lane in place.lanes:
                lane.session.close()  # some workers share one: it is harmless when repeated
        self.built.close()

    @property
    def device(self) -> str | None:
        """The card of all workers, in PyTorch's words; None on the CPU and on several cards."""
        found = {lane.session.info.device for p in self.places for lane in p.lanes}
        return found.pop() if len(found) == 1 else None


def place(given: ModelInput, spec: Spec) -> Placed:
    """Load a model for as many workers as the spec asks for, or the machine has room for."""
    warn_of_unused_targets(spec, stacklevel=7)
    spec = choice.settled(spec, given)
    plan = _plan(spec)
    weights, inter_op = spec.weights, spec.inter_op_parallel_num or 1

    with all_or_none(Built.close) as done:

        def load(width: int, worker: int, spec: Spec) -> Built:
            bound = plan.cores[worker] if width > 1 else ()
            options = Options(
                width,
                inter_op,
                bound,
                binds_caller=False,
                streams=1 if bound else plan.lanes(width),
                caller_computes=any(plan.cores),
            )
            made = build(given, spec, applied(spec, options))
            done(made)
            return made

        built = load(plan.threads, 0, spec)
        check_stateless(built)
        first = built.session.info
        if not first.mapped:
            plan = replace(plan, widths=(plan.threads,))
        elif weights.variable:  # which each session packs for itself, so one wider one is enough
            plan = replace(plan, widths=tuple(sorted({plan.widths[0], plan.threads}, reverse=True)))
        if not _is_shared(plan, built) and not first.mapped and not built.any_rank:
            warnings.warn(
                f"{_why_unmapped(built)}: each of {plan.workers} bound workers of {plan.threads} "
                "threads has its own copy of the weights; see `mslite doctor`",
                UserWarning,
                stacklevel=6,
            )
        with ThreadPoolExecutor(plan.usable, thread_name_prefix="mslite-build") as pool:
            # one session is enough to share; what another process shares is asked for by each
            further = replace(spec, weights=replace(weights, pids=None))
            wanted = _sessions(plan, built)[1:]
            made = [built, *pool.map(lambda one: load(one[0], one[1], further), wanted)]
        return _arranged(plan, Changing(made) if weights.variable else made)


def derived(placed: Placed, replaced: Mapping[str, np.ndarray]) -> Placed:
    """The same model once more with other weights, from what is compiled of it, on the CPU."""
    assert isinstance(placed.model, Changing)  # else there were none to replace
    return _arranged(placed.layout, placed.model.derived(replaced))


def _arranged(plan: Layout, made: Changing | list[Built]) -> Placed:
    """Deal sessions, which are in the order of _sessions(), to workers."""
    changing = made if isinstance(made, Changing) else None
    built = made.built if isinstance(made, Changing) else made[0]
    faces = made.sessions if isinstance(made, Changing) else [any_shape(one) for one in made]
    places = _places(plan, dict(zip(_sessions(plan, built), faces, strict=True)))
    if built.engine.capabilities.queues and not any(plan.cores):  # bound workers compute themselves
        places += _places_ahead(places)
    return Placed(changing or built, plan, tuple(places))


def _is_shared(plan: Layout, built: Built) -> bool:
    """Whether the workers share one session of the last width."""
    return plan.threads == 1 or not (built.session.info.mapped or any(plan.cores))


def _why_unmapped(built: Built) -> str:
    engine = built.engine.capabilities
    if not engine.maps_weights:
        return f"{engine.title} packs the weights for each session"
    return "the model is not in the compile cache"


def _plan(spec: Spec) -> Layout:
    """What the spec asks for."""
    inter_op = spec.inter_op_parallel_num
    wanted = Wanted(
        spec.workers_num,
        spec.thread_num or (inter_op if inter_op > 1 else 0),
        spec.thread_affinity_mode,
        spec.thread_affinity_core_list,
    )
    try:
        plan = layout(cores.usable(), wanted)
    except ValueError as exc:
        raise EngineError(str(exc)) from exc
    if inter_op > plan.threads:
        raise EngineError(
            f"inter_op_parallel_num is {inter_op}, wanted at most thread_num, which is "
            f"{plan.threads}"
        )
    if plan.warning:
        warnings.warn(plan.warning, UserWarning, stacklevel=7)
    return plan


def _sessions(plan: Layout, built: Built) -> list[tuple[int, int]]:
    """(width, worker) of every session, that of the first worker first."""
    count = 1 if _is_shared(plan, built) else plan.workers
    found = [(plan.threads, worker) for worker in range(count)]
    for width in plan.widths[:-1]:
        found += [(width, worker) for worker in range(plan.lanes(width))]
    return found


def _places(plan: Layout, sessions: dict[tuple[int, int], Session]) -> list[WorkerPlace]:
    return [
        WorkerPlace(
            worker,
            tuple(
                WidthOption(plan.lanes(width), sessions.get((width, worker)) or sessions[width, 0])
                for width in plan.widths
                if worker < plan.lanes(width)
            ),
            plan.cores[worker],
            plan.nodes[worker],
        )
        for worker in range(plan.workers)
    ]


def _places_ahead(places: Sequence[WorkerPlace]) -> list[WorkerPlace]:
    """Further places of the session that all workers share."""
    count = len(places)
    return [
        replace(places[0], index=count + number, ahead=True)
        for number in range(places_ahead(count))
    ]
