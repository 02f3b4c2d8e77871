from __future__ import annotations

import pytest
from support.served import FakeService

from mindspore_lite.server.cache import CachedService, ResponseCache
from mindspore_lite.server.eviction import EvictableService
from mindspore_lite.server.health import ModelHealth
from mindspore_lite.server.wrapped import WrappedService


class Ailing(FakeService):
    """Tells what is wrong with it."""

    found = ""

    def examine(self) -> str:
        return self.found


@pytest.mark.parametrize("wrap", [
    WrappedService,
    lambda service: CachedService(service, ResponseCache(1000)),
    lambda service: EvictableService(lambda: service),
])  # fmt: skip
def test_faults_of_a_service_show_through_what_is_in_front(wrap: type[WrappedService]) -> None:
    service = Ailing()
    health = ModelHealth("net", wrap(service))
    health.look()
    assert health.reason == ""
    service.found = "it hangs"
    health.look()
    assert health.reason == "it hangs"
    service.close(None)


def test_a_closed_model_has_no_faults() -> None:
    service = Ailing()
    front = EvictableService(lambda: service)
    service.found = "it hangs"
    assert front.evict()
    assert front.examine() == ""
