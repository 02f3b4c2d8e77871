"""From a model and a Spec to workers on cards: streams, and a copy of the weights per device.

Every entry of context.parallel.device_ids is a copy of the weights on that card, also where one is
named twice; without entries there is one copy, on the card of the context. Workers are dealt to the
copies in turn. Each is a stream: it has inputs, outputs and scratch memory of its own, and the
weights of its copy. So one computes while another is fed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

import numpy as np

from mindspore_lite.core import cores
from mindspore_lite.engines.base import CardSession, Options, Session
from mindspore_lite.engines.sessions.any_shape import Dims
from mindspore_lite.engines.sessions.card_copy import CardCopy
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving.batching import joining
from mindspore_lite.serving.build import (
    Built,
    applied,
    build,
    check_stateless,
    relaxed,
    warn_of_cpu_settings,
    warn_of_unused_targets,
)
from mindspore_lite.serving.layout import card_layout, check_workers
from mindspore_lite.serving.placement import Placed
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.weights import WeightSettings
from mindspore_lite.weights.all_or_none import all_or_none

STREAMS = 2  # of a copy, unless workers_num says otherwise: one computes, one is fed; guess
MOST_ROWS = 64  # of a batch, unless max_batch_rows or batch_buckets say otherwise


class CardModel:
    """The copies of a model on cards: their weights change together."""

    quick = None  # runs of a stream come one after the other

    def __init__(self, built: Sequence[Built]) -> None:
        self._built = list(built)  # one for each copy
        self.copies = [self._copy(at) for at in range(len(built))]

    @property
    def built(self) -> Built:
        """The model as it is now, as seen by the first worker."""
        return self._built[0]

    def worker(self, number: int) -> Session:
        """The session of a worker; they are dealt to the copies in turn."""
        at = number % len(self._built)
        copy = self.copies[at]
        return self._built[at].session if copy is None else copy.worker(number)

    def change(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Change the weights of all copies, or of none. For one thread only."""
        before = self._built[0].replaced

        def undo(copy: CardCopy) -> None:
            copy.update(before, replaced)

        with all_or_none(undo) as done:
            for copy in self.copies:
                if copy is not None:
                    copy.update(replaced, before)
                    done(copy)
        self._built = [
            replace(one, replaced=replaced, version=one.version + 1) for one in self._built
        ]

    def _copy(self, at: int) -> CardCopy | None:
        """The sessions of one copy; None where the engine makes them as requests come."""
        first = self._built[at].session

        def load(shapes: list[Dims]) -> CardSession:
            made = relaxed(self._built[at], shapes)
            assert isinstance(made, CardSession)  # of the engine that made the first
            return made

        return CardCopy(first, load) if isinstance(first, CardSession) else None


def place_on_cards(given: ModelInput, spec: Spec) -> tuple[Placed, Batching | None]:
    """Load a model for as many workers as the spec asks for, on the cards that it names.

    Requests are joined unless max_batch_rows is 1, or nobody asked for it and the model is not one
    whose requests can be; 0 rows are as many as the buckets have room for.
    """
    warn_of_unused_targets(spec, stacklevel=6)
    warn_of_cpu_settings(spec, stacklevel=6)
    rows = spec.max_batch_rows or max(spec.batch_buckets, default=MOST_ROWS)
    batching = None
    if rows > 1:
        spec = replace(spec, batch_buckets=spec.batch_buckets or _buckets(rows))
        batching = Batching(rows, spec.max_batch_wait_us * 1000, spec.batch_buckets)
    placed = _placed(given, spec)
    if batching is not None:
        try:
            _check_batching(placed, given, spec)
        except EngineError:
            if spec.max_batch_rows:
                raise
            batching = None
    return placed, batching


def _placed(given: ModelInput, spec: Spec) -> Placed:
    ids = list(spec.device_ids) or [spec.device_id]
    count = spec.workers_num or STREAMS * len(ids)
    if count < len(ids):
        warnings.warn(
            f"workers_num is {count}, so that device_ids {ids[count:]} are not used; ask for "
            f"{len(ids)} workers or more",
            UserWarning,
            stacklevel=7,
        )
    try:
        check_workers(count)
        devices = tuple(f"{spec.target}:{number}" for number in islice(cycle(ids), count))
        plan = card_layout(cores.usable(), devices)
    except ValueError as exc:
        raise EngineError(str(exc)) from exc

    def load(number: int, spec: Spec) -> Built:
        made = build(given, spec, applied(spec, Options(), number))
        check_stateless(made)
        return made

    # one copy is enough to share; what another process shares is asked for by each
    first, *others = ids[:count]
    further = replace(spec, weights=replace(spec.weights, pids=None))
    model = CardModel([load(first, spec), *(load(number, further) for number in others)])
    places = tuple(
        WorkerPlace(n, (WidthOption(count, model.worker(n)),), card=device)
        for n, device in enumerate(devices)
    )
    return Placed(model, plan, places)


def _buckets(most: int) -> tuple[int, ...]:
    """Powers of two, and the most: a batch is at most half padding."""
    return tuple(sorted({*(1 << bit for bit in range(most.bit_length())), most}))


def _check_batching(placed: Placed, given: ModelInput, spec: Spec) -> None:
    """Refuse a model whose requests cannot be joined, without compiling for what nobody sends.

    A model whose rows have open sizes is tried uncompiled, in a session of its own.

    Raises:
        EngineError: With the reason.
    """
    built, limit_s = placed.built, spec.budget.run_limit_s()
    if all(-1 not in info.shape[1:] for info in built.session.info.inputs):
        joining.check_model(built.session, built.options.batches, limit_s)
        return
    options = replace(built.options, tuning="off", batches=())
    trial = build(given, replace(spec, weights=WeightSettings()), options).session
    try:
        joining.check_model(trial, limit_s=limit_s)
    finally:
        trial.close()
