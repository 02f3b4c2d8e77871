"""Deadlines, cancellation, limits and the end of a server over gRPC."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from support.fake_engine import LIMIT_S, Client, Gate, growing, wait_for
from support.grpc_served import SERVICE, Caller, FakeService, gated, grpc_port, request, slow
from support.served import floats

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.grpc.inference_pb2 import ModelStreamInferResponse
from mindspore_lite.server.grpc.port import GrpcPort
from mindspore_lite.server.grpc.stream import _Pending
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.models import Models


class Sending:
    """Requests of a stream, as the test sends them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, *messages: Any) -> None:
        for message in messages:
            self._queue.put(message)

    def end(self) -> None:
        self._queue.put(None)

    def __iter__(self) -> Iterator[Any]:
        while (message := self._queue.get(timeout=LIMIT_S)) is not None:
            yield message


def future(caller: Caller, message: Any, **more: Any) -> Any:
    return caller.channel.unary_unary(SERVICE + "ModelInfer").future(
        message.SerializeToString(), **more
    )


# --- deadlines and priorities ---


def test_the_deadline_of_the_call_ends_what_runs() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        for limit_s in growing(0.2):
            code = future(caller, slow(), timeout=limit_s).code()
            assert code is grpc.StatusCode.DEADLINE_EXCEEDED
            if not gate.nobody_entered():  # it ran, then
                break
        wait_for(lambda: service.statistics().running == 0)  # the gate obeys a stop
        gate.open()
        assert caller.infer(slow(3.0)).raw_output_contents[0] == floats(6, 6)


def test_the_smaller_of_both_limits_counts() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        gate.open()
        message = slow()
        message.parameters["timeout"].int64_param = 50_000_000
        caller.infer(message)
        message.parameters["timeout"].uint64_param = 500_000_000
        caller.call("ModelInfer", message)
        caller.channel.unary_unary(SERVICE + "ModelInfer")(slow().SerializeToString())
        first, second, third = (call.timeout_s for call in service.calls)
        assert first is not None and first <= 50
        assert second is not None and second < 100  # that of the call, which gRPC rounds
        assert third is None


def test_the_parameter_timeout_ends_what_runs() -> None:
    with gated() as (gate, _, port), Caller(port) as caller:
        message = slow()
        for limit_s in growing(0.2):
            message.parameters["timeout"].int64_param = round(limit_s * 1e6)
            code, _ = caller.code("ModelInfer", message)
            if not gate.nobody_entered():  # it ran, then
                break
        assert code == "DEADLINE_EXCEEDED"
        message.parameters["timeout"].int64_param = 1
        code, _ = caller.code("ModelInfer", message)
        assert code in ("DEADLINE_EXCEEDED", "UNAVAILABLE")  # before the run, or in the queue


def test_priorities_reach_the_model() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        gate.open()
        message = slow()
        message.parameters["priority"].uint64_param = 1
        caller.infer(message)
        assert service.calls[0].priority == 100


# --- cancellation ---


def test_a_cancelled_call_frees_its_slot() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        running = future(caller, slow())
        gate.entered()
        waiting = future(caller, slow())
        wait_for(lambda: service.statistics().queued == 1)
        waiting.cancel()
        wait_for(lambda: service.statistics().queued == 0)
        running.cancel()
        wait_for(lambda: service.statistics().running == 0)
        gate.open()
        assert caller.infer(slow(3.0)).raw_output_contents[0] == floats(6, 6)
        wait_for(lambda: port._core.flight.bytes == 0)


def test_a_client_that_dies_frees_its_slot() -> None:
    with gated() as (gate, service, port):
        code = (
            "import grpc, sys\n"
            f"channel = grpc.insecure_channel('127.0.0.1:{port.number}')\n"
            f"call = channel.unary_unary('{SERVICE}ModelInfer')\n"
            f"call({slow().SerializeToString()!r})"
        )
        child = subprocess.Popen([sys.executable, "-c", code])
        gate.entered()
        child.kill()
        child.wait()
        wait_for(lambda: service.statistics().running == 0)
        wait_for(lambda: port._core.flight.bytes == 0)


def test_a_cancelled_stream_cancels_all_that_it_asked_for() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        sending = Sending()
        call = caller.stream(sending)
        sending.send(*(slow() for _ in range(5)))
        gate.entered()
        wait_for(lambda: service.statistics().queued == 4)
        call.cancel()
        wait_for(lambda: service.statistics().queued == 0 and service.statistics().running == 0)
        wait_for(lambda: port._core.flight.bytes == 0)
        wait_for(lambda: not port._service._streams)
        sending.end()
        gate.open()
        assert caller.infer(slow(3.0)).raw_output_contents[0] == floats(6, 6)


# --- streams ---


def test_requests_of_a_stream_run_at_the_same_time_and_answer_in_order() -> None:
    with gated(workers=2) as (gate, _, port), Caller(port) as caller:
        sending = Sending()
        call = caller.stream(sending)
        sending.send(slow(1.0, id="1"), slow(2.0, id="2"))
        gate.entered(2)  # both, although neither is answered
        gate.open()
        found = [ModelStreamInferResponse.FromString(next(call)) for _ in range(2)]
        assert [one.infer_response.id for one in found] == ["1", "2"]
        sending.end()
        assert list(call) == []
        assert call.code() is grpc.StatusCode.OK


def test_a_stream_takes_only_so_many_requests_ahead() -> None:
    with gated() as (gate, service, port), Caller(port) as caller:
        sending = Sending()
        call = caller.stream(sending)
        sending.send(*(slow(id=str(number)) for number in range(50)))
        gate.entered()
        wait_for(lambda: service.statistics().queued == 15)
        gate.open()
        sending.end()
        found = [ModelStreamInferResponse.FromString(one).infer_response.id for one in call]
        assert found == [str(number) for number in range(50)]
        assert service.statistics().sent == 50


def test_a_broken_message_of_a_stream_is_answered(port: GrpcPort) -> None:
    with Caller(port) as caller:
        found = [
            ModelStreamInferResponse.FromString(one)
            for one in caller.stream([b"\x0a\xff", request(id="2")])
        ]
    assert "not a ModelInferRequest" in found[0].error_message
    assert found[1].infer_response.id == "2"


# --- limits ---


def test_calls_beyond_the_limit_are_refused_and_probes_are_not() -> None:
    with gated(limits=Limits(grpc_calls=2, grpc_streams=1)) as (gate, service, port):
        callers = [Caller(port, **{"grpc.use_local_subchannel_pool": 1}) for _ in range(3)]
        calls = [future(caller, slow()) for caller in callers[:2]]
        wait_for(lambda: service.statistics().queued + service.statistics().running == 2)
        code, text = callers[2].code("ModelInfer", slow())
        assert (code, "2 calls are under way" in text) == ("UNAVAILABLE", True)
        assert callers[2].code("ServerLive")[0] == "OK"
        assert callers[2].code("ServerMetadata")[0] == "OK"
        sending = Sending()
        stream = callers[0].stream(sending)
        wait_for(lambda: len(port._service._streams) == 1)
        assert callers[2].stream([slow()]).code() is grpc.StatusCode.UNAVAILABLE
        gate.open()
        assert all(call.result() for call in calls)
        sending.end()
        assert list(stream) == []
        wait_for(lambda: not port._pools.calls.is_full)
        assert callers[2].code("ModelInfer", slow())[0] == "OK"
        for caller in callers:
            caller.channel.close()


def test_a_full_queue_says_try_again() -> None:
    gate, models = Gate(), Models()
    models.load("slow", "1", lambda: FakeService(gate, queue_size=1))
    with grpc_port(models) as port, Caller(port) as caller:
        calls = [future(caller, slow())]
        gate.entered()
        calls.append(future(caller, slow()))
        wait_for(lambda: models.find("slow").service.statistics().queued == 1)
        code, text = caller.code("ModelInfer", slow())
        assert (code, "Exceeds maximum queue size" in text) == ("UNAVAILABLE", True)
        gate.open()
        assert all(call.result() for call in calls)
    models.close(None)


def test_messages_beyond_the_limit_are_refused(models: Models) -> None:
    limits = Limits(body_bytes=100_000, json_bytes=10_000, grpc_fields=100)
    with grpc_port(models, limits=limits) as port, Caller(port) as caller:
        floats_ = (100_000 - 1000) // 4
        assert caller.infer(request(data=bytes(4 * floats_), shape=(floats_,)))
        assert caller.code("ModelInfer", request(data=bytes(100_001)))[0] == "RESOURCE_EXHAUSTED"
        assert caller.code("ModelInfer", bytes(100_001))[0] == "RESOURCE_EXHAUSTED"
        assert caller.code("ModelInfer", b"\x2a\x00" * 101)[0] == "INVALID_ARGUMENT"
        code, text = caller.code("ModelInfer", request(id="x" * 20_000))
        assert (code, "beside raw_input_contents" in text) == ("RESOURCE_EXHAUSTED", True)
        big = request(data=bytes(400_000), shape=(100_000,))
        code, _ = caller.code("ModelInfer", big, compression=grpc.Compression.Gzip)
        assert code == "RESOURCE_EXHAUSTED"  # of what it inflates to
        assert caller.infer(request())
        wait_for(lambda: port._core.flight.bytes == 0)


def test_all_requests_together_are_limited() -> None:
    size = len(slow().SerializeToString())
    limited = gated(limits=Limits(flight_bytes=2 * size))
    with limited as (gate, service, port), Caller(port) as caller:
        calls = [future(caller, slow()) for _ in range(2)]
        wait_for(lambda: service.statistics().queued + service.statistics().running == 2)
        code, text = caller.code("ModelInfer", slow())
        assert (code, "the requests under way take all" in text) == ("UNAVAILABLE", True)
        gate.open()
        assert all(call.result() for call in calls)
        wait_for(lambda: port._core.flight.bytes == 0)


def test_a_message_that_never_comes_is_given_up(models: Models) -> None:
    limits = Limits(grpc_receive_s=0.2, head_s=0.2)
    with grpc_port(models, limits=limits) as port, Caller(port) as caller:
        for method in ("ModelInfer", "ModelMetadata"):
            sending = Sending()
            call = caller.channel.stream_unary(SERVICE + method).future(iter(sending))
            assert call.code() is grpc.StatusCode.CANCELLED
            sending.end()
        # on a busy machine a message that does come may be late as well
        wait_for(lambda: caller.code("ModelInfer", request())[0] == "OK")


def test_an_answer_that_is_never_taken_is_given_up(models: Models) -> None:
    limits = Limits(send_s=0.2)
    with grpc_port(models, limits=limits) as port, Caller(port) as caller:
        big = request(data=bytes(16 << 20), shape=(4 << 20,))
        call = caller.stream([big] * 3)
        wait_for(lambda: len(port._service._streams) == 1)
        wait_for(lambda: not port._service._streams)
        with pytest.raises(grpc.RpcError):
            list(call)
        wait_for(lambda: port._core.flight.bytes == 0)


def test_a_call_without_a_message_is_refused(port: GrpcPort) -> None:
    with Caller(port) as caller:
        for method in ("ModelInfer", "ModelMetadata"):
            call = caller.channel.stream_unary(SERVICE + method).future(iter(()))
            assert call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert list(caller.stream([])) == []


def test_bytes_that_are_no_http2_harm_nobody(port: GrpcPort) -> None:
    for data in (
        b"\0" * 1000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff" * 9,
    ):
        with socket.create_connection(("127.0.0.1", port.number), timeout=LIMIT_S) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1000):
                pass
    with Caller(port) as caller:
        assert caller.infer(request())


# --- the end ---


def test_what_is_under_way_is_answered_at_the_end() -> None:
    with gated() as (gate, _, port), Caller(port) as caller:
        sending, idle = Sending(), Sending()
        call, stream, idle_stream = (
            future(caller, slow()),
            caller.stream(sending),
            caller.stream(idle),
        )
        gate.entered()
        sending.send(slow(id="7"))
        wait_for(lambda: len(port._service._streams) == 2)
        wait_for(lambda: any(one._pending for one in list(port._service._streams)))
        port.stop_accepting(0.01)
        draining = Client(lambda: port.wait_idle(LIMIT_S))
        assert idle_stream.code() is grpc.StatusCode.CANCELLED  # after it stayed idle
        with Caller(port, **{"grpc.use_local_subchannel_pool": 1}) as late:
            assert late.code("ServerLive")[0] == "UNAVAILABLE"
        gate.open()
        assert call.result()
        assert ModelStreamInferResponse.FromString(next(stream)).infer_response.id == "7"
        assert draining.ended().result is True
        sending.end()
        idle.end()


def test_the_end_does_not_wait_for_ever() -> None:
    with gated() as (gate, _, port), Caller(port) as caller:
        call = future(caller, slow())
        gate.entered()
        port.stop_accepting(0.01)
        assert port.wait_idle(0.05) is False
        port.close()
        assert call.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        port.close()


def test_a_server_that_ends_is_not_ready() -> None:
    with gated() as (_, _, port), Caller(port) as caller:
        watch = caller.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert next(watch) == b"\x08\x01"
        port._core.is_ending = True
        assert caller.call("/grpc.health.v1.Health/Check") == b"\x08\x02"
        assert caller.call("ServerReady") == b""  # false is not sent
        assert next(watch) == b"\x08\x02"
        port._core.refuses = True
        assert caller.code("ModelInfer", slow())[0] == "UNAVAILABLE"
        watch.cancel()


def test_threads_end_with_the_port(models: Models) -> None:
    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("mslite-grpc-")]

    wait_for(lambda: not [name for name in ours() if "reader" in name])
    before = len(ours())
    with grpc_port(models) as port, Caller(port) as caller:
        caller.infer(request())
        list(caller.stream([request()]))
        assert len(ours()) > before
    wait_for(lambda: len(ours()) == before)


def test_many_calls_leave_nothing_behind(port: GrpcPort) -> None:
    with Caller(port) as caller:
        for number in range(300):
            caller.infer(request(data=floats(number, 2)))
    wait_for(lambda: port._core.flight.bytes == 0)
    wait_for(lambda: port._pools.calls._busy == 0)


@contextmanager
def silent() -> Iterator[Callable[[], Iterator[bytes]]]:
    """Messages of a caller who sends none, for longer than any call here may take."""
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(2 * LIMIT_S)
        yield from ()

    try:
        yield nothing
    finally:
        over.set()


REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def test_callers_who_say_nothing_keep_no_probe_waiting(models: Models) -> None:
    """Strangers may ask for the health, and anybody who asks for reflection may stay."""
    with (
        silent() as nothing,
        grpc_port(models, reflection=True) as port,
        Caller(port) as caller,
    ):
        asking = caller.channel.stream_stream(REFLECTION)
        checking = caller.channel.stream_unary("/grpc.health.v1.Health/Check")
        held = [asking(nothing()) for _ in range(10)]
        held += [checking.future(nothing()) for _ in range(10)]
        pools = port._pools
        wait_for(lambda: pools.streams._busy + pools.small._busy >= 10)
        assert caller.code("ServerMetadata")[0] == "OK"
        assert caller.code("ServerReady")[0] == "OK"
        for one in held:
            one.cancel()


@pytest.mark.parametrize("path", [REFLECTION, "/grpc.health.v1.Health/Watch"])
def test_callers_who_say_nothing_do_not_keep_a_server_from_ending(
    models: Models, path: str
) -> None:
    with (
        silent() as nothing,
        grpc_port(models, reflection=True) as port,
        Caller(port) as caller,
    ):
        held = caller.channel.stream_stream(path)(nothing())
        wait_for(lambda: port._pools.streams._busy + port._pools.small._busy == 1)
        port.stop_accepting(0.0)
        assert port.wait_idle(LIMIT_S)
        held.cancel()


def test_a_request_of_a_stream_that_failed_keeps_no_message() -> None:
    """The frames of its error hold it, until the collector comes if they form a cycle."""
    pending = _Pending()
    try:
        raise RequestError(Kind.INVALID, "no")
    except RequestError as exc:
        pending.fail(exc)
    assert pending.answer()
    failed = pending.ended.exception()
    assert isinstance(failed, RequestError) and failed.__traceback__ is None
