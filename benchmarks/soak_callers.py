"""The callers of soak.py: prepared samples go to runners in many ways, and every end is counted.

An end is one that statistics() knows (done, failed, timed_out, cancelled, rejected), or `refused`
for requests that were wrong and never sent, or `abandoned` for those whose asyncio task was
cancelled, so that nobody saw how they ended. An end that should not come is a surprise.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import mindspore_lite as mslite
from mindspore_lite.errors import (
    EngineError,
    InputError,
    QueueFullError,
    RequestTimeoutError,
    ShapeError,
)

CROWD = 48  # requests at once: more than the queue takes
ANSWER_S = 50.0  # nothing takes that long; a future that does is a surprise
MAX_SURPRISES = 20

Answer = list[mslite.Tensor]


@dataclass(frozen=True)
class Sample:
    """Inputs, and the outputs that belong to them."""

    ids: np.ndarray
    wanted: np.ndarray


@dataclass
class Service:
    """A runner with its callers' own count of what they got."""

    name: str
    runner: mslite.ModelParallelRunner
    surprises: list[str] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def counts(self) -> Counter[str]:
        """How many requests had each end."""
        with self._lock:
            return Counter(self._counts)

    def count(self, end: str, allowed: Sequence[str]) -> None:
        """One request had this end, of those that it may have."""
        with self._lock:
            self._counts[end] += 1
        if end not in allowed:
            self._surprise(f"a request that should be {' or '.join(allowed)} was {end}")

    def check(self, answer: Answer, sample: Sample) -> None:
        """The answer must be the sample's, not somebody else's."""
        got = answer[0].get_data_to_numpy()
        if got.shape != sample.wanted.shape or not np.allclose(
            got, sample.wanted, rtol=1e-3, atol=1e-4
        ):
            self._surprise(f"a wrong answer for shape {sample.ids.shape}")

    def settle(self, get: Callable[[], Answer], sample: Sample, *allowed: str) -> None:
        """Get an answer, whatever it is, and count it; a full queue may meet every request."""
        try:
            self.check(get(), sample)
            end = "done"
        except Exception as exc:  # noqa: BLE001 - what it is, is the question
            end = end_of(exc)
        self.count(end, (*allowed, "rejected"))

    def _surprise(self, text: str) -> None:
        if len(self.surprises) < MAX_SURPRISES:
            self.surprises.append(text)


def end_of(exc: BaseException) -> str:
    """How statistics() calls what the caller sees as this error."""
    names: list[tuple[type[BaseException] | tuple[type[BaseException], ...], str]] = [
        (QueueFullError, "rejected"),
        (RequestTimeoutError, "timed_out"),
        (CancelledError, "cancelled"),
        ((InputError, ShapeError), "refused"),
        (EngineError, "failed"),
    ]
    return next((name for kind, name in names if isinstance(exc, kind)), repr(exc))


def given(ids: np.ndarray, rng: random.Random) -> object:
    """The inputs in one of the forms that callers may use."""
    forms = [lambda: [ids], lambda: (ids,), lambda: {"ids": ids}, lambda: [mslite.Tensor(ids)]]
    return rng.choice(forms)()


def alone(service: Service, sample: Sample, rng: random.Random) -> None:
    """A plain request."""
    service.settle(partial(service.runner.predict, given(sample.ids, rng)), sample, "done")


def hurried(service: Service, sample: Sample, rng: random.Random) -> None:
    """A request with a timeout between 1 us, which cannot be kept, and 10 ms."""
    timeout_s = 10 ** rng.uniform(-6, -2)
    call = partial(service.runner.predict, given(sample.ids, rng), timeout_s=timeout_s)
    service.settle(call, sample, "done", "timed_out")


def unknown_word(service: Service, sample: Sample, rng: random.Random) -> None:
    """A request that looks right, and makes the engine fail while it runs."""
    ids = sample.ids.copy()
    ids[rng.randrange(len(ids)), -1] = 10**6
    service.settle(partial(service.runner.predict, given(ids, rng)), sample, "failed")


def malformed(service: Service, sample: Sample, rng: random.Random) -> None:
    """A request that is refused before it is sent."""
    wrong = rng.choice([[sample.ids.astype(np.float32)], [sample.ids[0]], []])
    service.settle(partial(service.runner.predict, wrong), sample, "refused")


def crowd(service: Service, sample: Sample, rng: random.Random) -> None:
    """More requests at once than the queue takes; some are cancelled, waiting or running."""
    futures: list[Future[Answer]] = []
    for _ in range(CROWD):
        timeout_s = rng.choice([None, None, 10 ** rng.uniform(-5, -2)])
        try:
            futures.append(service.runner.submit(given(sample.ids, rng), timeout_s=timeout_s))
        except QueueFullError:
            service.count("rejected", ["rejected"])
    for future in rng.sample(futures, len(futures) // 3):
        future.cancel()
    for future in futures:
        get = partial(future.result, timeout=ANSWER_S)
        service.settle(get, sample, "done", "cancelled", "timed_out")


WAYS = {alone: 60, hurried: 15, unknown_word: 6, malformed: 6, crowd: 1}  # how often; guess


def thread_caller(
    services: Sequence[Service], samples: Sequence[Sample], seed: int, stop: threading.Event
) -> None:
    """Send requests in all ways until told to stop, and in each way once at least."""
    rng = random.Random(seed)
    for service in services:
        for way in WAYS:
            way(service, rng.choice(samples), rng)
    while not stop.is_set():
        (way,) = rng.choices(list(WAYS), list(WAYS.values()))
        way(rng.choice(services), rng.choice(samples), rng)


def asyncio_caller(
    services: Sequence[Service], samples: Sequence[Sample], seed: int, stop: threading.Event
) -> None:
    """Send groups of requests from an event loop until told to stop; some are abandoned."""
    rng = random.Random(seed)

    async def one(service: Service, sample: Sample) -> None:
        try:
            service.check(await service.runner.predict_async([sample.ids]), sample)
            service.count("done", ["done"])
        except asyncio.CancelledError:
            service.count("abandoned", ["abandoned"])
            raise
        except Exception as exc:  # noqa: BLE001 - what it is, is the question
            service.count(end_of(exc), ["rejected"])

    async def loop() -> None:
        while not stop.is_set():
            tasks = [
                asyncio.create_task(one(rng.choice(services), rng.choice(samples)))
                for _ in range(rng.randint(1, 12))
            ]
            await asyncio.sleep(0)  # all of them have sent their request now
            for task in tasks:
                if rng.random() < 0.2:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(loop())
