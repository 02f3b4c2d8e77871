"""Crews of fake workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.fake_workers import FakeWorkers, place

from mindspore_lite.remote.devices import supervisor
from mindspore_lite.remote.devices.dispatcher import Dispatcher

Make = Callable[..., Dispatcher]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> FakeWorkers:
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 0.001)
    return FakeWorkers()


@pytest.fixture
def make(workers: FakeWorkers) -> Iterator[Make]:
    crews: list[Dispatcher] = []

    def make(devices: int = 2, *, cores: int = 1, **more: Any) -> Dispatcher:
        places = [place(device, cores) for device in range(devices)]
        crews.append(Dispatcher(places, start=workers.start, **more))
        return crews[-1]

    yield make
    for dispatcher in crews:
        dispatcher.close(0.0)
