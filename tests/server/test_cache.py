from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.fake_engine import Gate as RunGate
from support.grpc_served import Caller, request
from support.onnx_graphs import model, node
from support.served import FakeService, Wire, floats, get, port_of, post

import mindspore_lite as mslite
from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import EngineError
from mindspore_lite.server.cache import MOST_INPUT_BYTES, CachedService, ResponseCache
from mindspore_lite.server.models import Models
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.timing import Timing


class Counting(FakeService):
    """A model that multiplies by its weight, and counts its runs."""

    def __init__(self, gate: RunGate | None = None) -> None:
        self.runs, self.weight = 0, 2.0
        self._gate = gate
        super().__init__(self._compute)

    def _compute(self, inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        self.runs += 1
        result = [inputs[0] * self.weight]
        if self._gate is not None:
            self._gate.wait(stop)
        return result

    def update_weights(self, groups: list[list[mslite.Tensor]]) -> None:
        if groups:
            raise EngineError("these weights do not fit")
        self.weight += 1
        self.weights_version += 1


def array(*values: float, dtype: type = np.float32) -> np.ndarray:
    return np.array([values], dtype)


def asked(service: CachedService, value: np.ndarray) -> list[float]:
    (found,) = service.run(Call([value]))
    return [float(one) for one in found.ravel()]


@pytest.fixture
def inner() -> Counting:
    return Counting()


@pytest.fixture
def cached(inner: Counting) -> CachedService:
    return CachedService(inner, ResponseCache(1 << 20))  # type: ignore[arg-type]


def test_an_equal_request_is_not_computed_again(inner: Counting, cached: CachedService) -> None:
    for _ in range(3):
        assert asked(cached, array(1, 2)) == [2, 4]
    assert inner.runs == 1
    assert asked(cached, array(1, 3)) == [2, 6]
    assert inner.runs == 2
    assert cached.cache.bytes > 16
    cached.close(None)
    assert cached.cache.bytes == 0


def test_types_and_shapes_are_part_of_a_request(cached: CachedService) -> None:
    def key(*inputs: np.ndarray) -> bytes | None:
        return cached._looked_up(Call(inputs))[0]

    one = np.arange(8, dtype=np.float32)
    alike = [
        (one,), (one.reshape(2, 4),), (one.reshape(4, 2),), (one.view(np.int32),),
        (one[:4], one[4:]), (one[:3], one[3:]), (one.astype(np.float64),), (one[::-1],),
        (one.view(np.uint32),), (),
    ]  # fmt: skip
    assert len({key(*inputs) for inputs in alike}) == len(alike)
    assert key(one[::2]) == key(one[::2].copy())  # however it lies in memory
    empty = [np.zeros((0, 2), np.float32), np.zeros((2, 0), np.float32)]
    assert key(empty[0]) != key(empty[1])


def test_answers_cannot_be_changed_by_those_who_got_them(cached: CachedService) -> None:
    (first,) = cached.run(Call([array(1, 2)]))
    first[:] = 0
    (second,) = cached.run(Call([array(1, 2)]))
    assert second.tolist() == [[2, 4]]
    with pytest.raises(ValueError, match="read-only"):
        second[:] = 0


def test_it_never_holds_more_than_it_may_and_drops_the_oldest(inner: Counting) -> None:
    cache = ResponseCache(10_000)
    cached = CachedService(inner, cache)  # type: ignore[arg-type]
    for number in range(100):
        asked(cached, array(number, 0))
        asked(cached, array(-1, 0))  # used all the time
        assert cache.bytes <= 10_000
    assert inner.runs == 101
    asked(cached, array(99, 0))
    assert inner.runs == 101
    asked(cached, array(0, 0))
    assert inner.runs == 102


def test_what_would_fill_the_cache_is_not_kept(inner: Counting) -> None:
    cached = CachedService(inner, ResponseCache(16_000))  # type: ignore[arg-type]
    large = np.zeros((250, 2), np.float32)
    for _ in range(2):
        cached.run(Call([large]))
    assert (inner.runs, cached.cache.bytes) == (2, 0)


def test_huge_requests_are_not_looked_up(inner: Counting, cached: CachedService) -> None:
    huge = np.zeros((MOST_INPUT_BYTES // 8 + 1, 2), np.float32)
    assert cached._looked_up(Call([huge]))[0] is None
    for _ in range(2):
        cached.run(Call([huge]))
    assert inner.runs == 2


def test_failures_are_not_kept() -> None:
    calls = []

    def fails_once(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        calls.append(1)
        if len(calls) == 1:
            raise EngineError("once")
        return [inputs[0]]

    cached = CachedService(FakeService(fails_once), ResponseCache(1 << 20))  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="once"):
        asked(cached, array(1, 2))
    assert asked(cached, array(1, 2)) == [1, 2]


def test_hits_and_misses_are_told(cached: CachedService) -> None:
    timings = [Timing(), Timing()]
    for timing in timings:
        cached.run(Call([array(1, 2)], timing=timing))
    assert (timings[0].hit_ns, timings[0].miss_ns > 0) == (0, True)
    assert (timings[1].hit_ns > 0, timings[1].miss_ns) == (True, 0)
    assert timings[1].run is None


def test_the_calling_thread_goes_on(inner: Counting, cached: CachedService) -> None:
    found: list[object] = []
    for number in range(2):
        cached.submit_or_run(Call([array(1, 2)]), found.append)
        wait_for(lambda n=number: len(found) == n + 1)  # type: ignore[misc]
    assert inner.runs == 1
    assert [one[0].tolist() for one in found] == [[[2, 4]]] * 2  # type: ignore[index]


# --- weights ---


def test_an_update_is_never_answered_with_an_old_value(
    inner: Counting, cached: CachedService
) -> None:
    assert asked(cached, array(1, 2)) == [2, 4]
    cached.update_weights([])
    assert (cached.weights_version, cached.cache.bytes) == (1, 0)
    assert asked(cached, array(1, 2)) == [3, 6]
    with pytest.raises(EngineError, match="do not fit"):
        cached.update_weights([[]])
    assert asked(cached, array(1, 2)) == [3, 6]
    assert inner.runs == 3


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_run_that_meets_an_update_is_not_kept(when: str) -> None:
    """Which weights it used cannot be known."""
    gate = RunGate()
    inner = Counting(gate)
    cached = CachedService(inner, ResponseCache(1 << 20))  # type: ignore[arg-type]
    if when == "during":
        cached.cache.begin_change()
    client = Client(lambda: asked(cached, array(1, 2)))
    gate.entered()
    if when == "during":
        cached.cache.end_change()
    else:
        cached.update_weights([])
    gate.open()
    assert client.ended().result == [2, 4]
    assert cached.cache.bytes == 0
    assert asked(cached, array(1, 2)) == ([2, 4] if when == "during" else [3, 6])


def test_while_weights_change_nothing_comes_from_the_cache(
    inner: Counting, cached: CachedService
) -> None:
    asked(cached, array(1, 2))
    key, epoch = cached._looked_up(Call([array(1, 2)]))
    assert key is not None
    cached.cache.begin_change()
    assert cached.cache.get(key) is None
    assert asked(cached, array(1, 2)) == [2, 4]
    cached.cache.end_change()
    cached.cache.put(key, [array(0, 0)], epoch)  # of a run that began before
    assert asked(cached, array(1, 2)) == [2, 4]
    assert inner.runs == 3


def test_many_threads_and_updates_see_no_old_value() -> None:
    """A value is never older than the newest update that had ended before it was asked for."""
    inner = Counting()
    cached = CachedService(inner, ResponseCache(1 << 20))  # type: ignore[arg-type]
    faults: list[tuple[float, float]] = []
    over = threading.Event()

    def use() -> None:
        while not over.is_set():
            least = cached.weights_version
            (value, _) = asked(cached, array(1, 0))
            if value < 2 + least:
                faults.append((value, 2 + least))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        cached.update_weights([])
    over.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not faults


# --- served ---


@pytest.fixture
def net(tmp_path: Path) -> Path:
    made = model([node("Add", ["IN", "IN"], ["OUT"])], [("IN", 1, ["n"])], [("OUT", 1, ["n"])])
    onnx.save(made, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def cache_numbers(wire: Wire) -> tuple[int, int]:
    (stats,) = wire.ask(get("/v2/models/net/stats")).json["model_stats"]
    found = stats["inference_stats"]
    assert found["cache_hit"]["ns"] > 0 or not found["cache_hit"]["count"]
    return found["cache_hit"]["count"], found["cache_miss"]["count"]


def test_http_and_grpc_share_it(net: Path) -> None:
    tensor = {"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}
    asked_for = post("/v2/models/net/infer", {"inputs": [tensor]})
    with (
        mslite.Server([net], http_port=0, cache={"net": 1 << 20}) as server,
        Wire(server.http_port) as wire,
        Caller(server.grpc_port) as caller,
    ):
        for _ in range(3):
            assert wire.ask(asked_for).json["outputs"][0]["data"] == [2, 4]
        assert cache_numbers(wire) == (2, 1)
        assert list(caller.infer(request("net")).raw_output_contents) == [floats(2, 4)]
        (answer,) = caller.stream([request("net")])
        assert floats(2, 4) in answer
        assert cache_numbers(wire) == (4, 1)
        tensor["data"] = [1, 3]
        other = post("/v2/models/net/infer", {"inputs": [tensor], "parameters": {"timeout": 10**7}})
        assert wire.ask(other).json["outputs"][0]["data"] == [2, 6]
        assert cache_numbers(wire) == (4, 2)
        metrics = wire.ask(get("/metrics")).body.decode()
        assert 'nv_cache_num_hits_per_model{model="net",version="1"} 4' in metrics
        assert wire.ask(get("/v2/models/net/config")).json["response_cache"] == {"enable": True}


def test_it_is_off_unless_it_is_asked_for(net: Path) -> None:
    with mslite.Server([net], http_port=0) as server, Wire(server.http_port) as wire:
        assert not isinstance(server.core.models.find("net").service, CachedService)
        assert cache_numbers(wire) == (0, 0)
    with mslite.Server([net], http_port=0, cache={"net": 0}, grpc=False) as server:
        assert not isinstance(server.core.models.find("net").service, CachedService)


@pytest.mark.parametrize(
    ("cache", "error"),
    [
        ({"other": 1}, "cache names .'other'., but the models are .'net'."),
        ({"net": -1}, "must be greater|negative|0 or more|at least"),
        ({"net": "64M"}, "integer|int"),
        ({"net": True}, "integer|int"),
    ],
)
def test_caches_that_make_no_sense_are_refused(net: Path, cache: object, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        mslite.Server([net], http_port=0, cache=cache)  # type: ignore[arg-type]


def test_a_client_that_hangs_up_still_cancels_its_request() -> None:
    gate = RunGate()
    inner = Counting(gate)
    models = Models()
    start: Callable[[], CachedService] = lambda: CachedService(inner, ResponseCache(1 << 20))  # type: ignore[arg-type]  # noqa: E731
    models.load("fake", "1", start)
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    with port_of(models) as port:
        wire = Wire(port)
        wire.send(post("/v2/models/fake/infer", {"inputs": [tensor]}))
        gate.entered()
        wire.close()
        wait_for(lambda: inner.statistics().cancelled == 1)
        gate.open()
    models.close(None)
