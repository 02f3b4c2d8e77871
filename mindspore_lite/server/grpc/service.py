"""The methods of the gRPC port, in one table: what each does, needs and runs on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from mindspore_lite.errors import EngineUnavailableError
from mindspore_lite.server.access import Need
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Kind, RequestError, answer_to
from mindspore_lite.server.grpc import health_pb2, inference_pb2, repository
from mindspore_lite.server.grpc.calls import Answers, of_message, unary
from mindspore_lite.server.grpc.gate import abort
from mindspore_lite.server.grpc.infer import infer
from mindspore_lite.server.grpc.messages import checked_version
from mindspore_lite.server.grpc.pool import POOL
from mindspore_lite.server.grpc.statistics import statistics
from mindspore_lite.server.grpc.stream import Stream
from mindspore_lite.server.grpc.threads import Threads
from mindspore_lite.server.grpc.watch import Watch
from mindspore_lite.server.model_config import config_of
from mindspore_lite.server.request import invalid

INFERENCE, HEALTH = "inference.GRPCInferenceService", "grpc.health.v1.Health"
_PROBE_THREADS, _SMALL_THREADS = 4, 8  # for calls that take microseconds; guesses
_CHECK_THREADS, _CHECK_S = 32, 2.0  # strangers may call, and must send a message soon; guesses
_ADMIN_THREADS = 8  # guess
_LOOK_S = 1.0  # how often a watched health is looked at
_SERVING, _NOT_SERVING = 1, 2  # of HealthCheckResponse


@dataclass
class Pools:
    """The threads of a port, by what they wait for."""

    probes: Threads  # for strangers, too: nothing on them waits for a client
    checks: Threads  # for strangers, who send a message
    small: Threads
    admin: Threads  # for those that load models, and wait for them
    calls: Threads
    streams: Threads

    @classmethod
    def of(cls, core: Core) -> Pools:
        """As many as the limits allow; each thread is made when it is needed."""
        return cls(
            Threads(_PROBE_THREADS, "probe"),
            Threads(_CHECK_THREADS, "check"),
            Threads(_SMALL_THREADS, "small"),
            Threads(_ADMIN_THREADS, "admin"),
            Threads(core.limits.grpc_calls, "call"),
            Threads(core.limits.grpc_streams, "stream"),
        )

    def busy(self) -> int:
        """How many calls are under way."""
        pools = (self.probes, self.checks, self.small, self.calls, self.streams)
        return sum(pool.busy for pool in pools)

    def close(self) -> None:
        """End the threads, once what they do has ended."""
        for pool in vars(self).values():
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Service:
    """Everything that clients can call.

    Attributes:
        core: The server.
        pools: Its threads.
        logs: Whether there is an access log.
        handlers: By the path of the method.
        needs: What the caller of each must show.
        limited: Whose threads must be free for a call.
    """

    core: Core
    pools: Pools
    logs: bool = False
    handlers: dict[str, Any] = field(default_factory=dict)
    needs: dict[str, Need] = field(default_factory=dict)
    limited: dict[str, Threads] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: set[Stream] = set()
        self._waiting: set[Any] = set()  # contexts of calls that wait for a message, owing nothing
        self._is_ending = threading.Event()
        pb, core = inference_pb2, self.core
        # probes have no content: they are answered without it, so that nobody can hold a thread
        self._probe(
            "ServerLive",
            lambda *_: pb.ServerLiveResponse(live=core.is_live).SerializeToString(),
        )
        self._probe(
            "ServerReady",
            lambda *_: pb.ServerReadyResponse(ready=core.is_ready).SerializeToString(),
        )
        self._small("ServerMetadata", self._server_metadata)
        self._small("ModelReady", self._model_ready)
        self._small("ModelMetadata", self._model_metadata)
        self._small("ModelConfig", self._model_config)
        self._small("ModelStatistics", partial(statistics, core))
        for name in ("Status", "Register", "Unregister"):
            self._small(f"SystemSharedMemory{name}", getattr(self, f"_system_{name.lower()}"))
            self._small(f"CudaSharedMemory{name}", getattr(self, f"_cuda_{name.lower()}"))
        for name, act, need in repository.methods(core):
            threads = self.pools.admin if need is Need.ADMIN else self.pools.small
            self._small(name, act, need, threads)
        self._unary(
            f"/{INFERENCE}/ModelInfer",
            partial(infer, core),
            self.pools.calls,
            core.limits.grpc_receive_s,
            limited=self.pools.calls,
        )
        self._add_streaming(f"/{INFERENCE}/ModelStreamInfer", self._stream)
        self._unary(
            f"/{HEALTH}/Check",
            of_message(health_pb2.HealthCheckRequest, self._check),
            self.pools.checks,
            min(_CHECK_S, core.limits.head_s),
            Need.OPEN,
        )
        self._add_streaming(f"/{HEALTH}/Watch", self._watch)

    def handler(self, details: Any) -> Any:
        """What answers a call; None if nothing does."""
        return self.handlers.get(details.method)

    def end_when_idle(self) -> None:
        """The server is ending: streams end once they have nothing to answer."""
        self._is_ending.set()
        with self._lock:
            streams, waiting = list(self._streams), list(self._waiting)
        for stream in streams:
            stream.end_when_idle()
        for context in waiting:
            context.cancel()

    # --- the table ---

    def _add(
        self, path: str, handler: Any, need: Need = Need.USE, limited: Threads | None = None
    ) -> None:
        self.handlers[path], self.needs[path] = handler, need
        if limited is not None:
            self.limited[path] = limited

    def _unary(
        self,
        path: str,
        answers: Answers,
        threads: Threads,
        receive_s: float,
        need: Need = Need.USE,
        limited: Threads | None = None,
    ) -> None:
        watch = Watch(self.core, path, logs=self.logs)
        self._add(
            path,
            unary(answers, threads, receive_s, watch, self.core.flight.trimmer.freed),
            need,
            limited,
        )

    def _probe(self, name: str, answers: Answers) -> None:
        self._unary(f"/{INFERENCE}/{name}", answers, self.pools.probes, 0, Need.OPEN)

    def _small(
        self,
        name: str,
        act: Callable[[Any], Any],
        need: Need = Need.USE,
        threads: Threads | None = None,
    ) -> None:
        answers = of_message(getattr(inference_pb2, f"{name}Request"), act)
        threads = threads or self.pools.small
        limited = threads if need is Need.ADMIN else None  # which waits for more than a client
        path, receive_s = f"/{INFERENCE}/{name}", self.core.limits.head_s
        self._unary(path, answers, threads, receive_s, need, limited)

    def add_reflection(self) -> None:
        """Let clients ask which methods there are; each that asks holds a stream.

        Raises:
            EngineUnavailableError: The package for it is not installed.
        """
        try:
            from grpc_reflection.v1alpha import reflection, reflection_pb2
        except ImportError as exc:
            raise EngineUnavailableError(
                "gRPC reflection needs the package grpcio-reflection: pip install grpcio-reflection"
            ) from exc
        servicer = reflection.ReflectionServicer(
            (INFERENCE, HEALTH, reflection.SERVICE_NAME), pool=POOL
        )
        read = reflection_pb2.ServerReflectionRequest.FromString

        def handle(requests: Any, context: Any) -> Iterator[bytes]:
            try:
                with self._waits(context):
                    for answer in servicer.ServerReflectionInfo(map(read, requests), context):
                        yield answer.SerializeToString()
            except DecodeError:
                abort(context, answer_to(invalid("the message is not a ServerReflectionRequest")))

        self._add_streaming(f"/{reflection.SERVICE_NAME}/ServerReflectionInfo", handle)

    def _add_streaming(self, path: str, handle: Callable[[Any, Any], Iterator[bytes]]) -> None:
        def handler(requests: Any, context: Any) -> Iterator[bytes]:
            return handle(requests, context)

        handler.experimental_thread_pool = self.pools.streams  # type: ignore[attr-defined]
        self._add(path, grpc.stream_stream_rpc_method_handler(handler), limited=self.pools.streams)

    # --- streams ---

    def _stream(self, requests: Any, context: Any) -> Iterator[bytes]:
        watch = Watch(self.core, f"/{INFERENCE}/ModelStreamInfer", logs=self.logs)
        stream = Stream(self.core, requests, context, watch)
        with self._lock:
            self._streams.add(stream)
        try:
            if self._is_ending.is_set():
                stream.end_when_idle()
            yield from stream.answers()
        finally:
            with self._lock:
                self._streams.discard(stream)

    @contextmanager
    def _waits(self, context: Any) -> Iterator[None]:
        """A call waits for its client, and is cancelled when the server ends."""
        with self._lock:
            self._waiting.add(context)
        try:
            if self._is_ending.is_set():
                context.cancel()
            yield
        finally:
            with self._lock:
                self._waiting.discard(context)

    def _watch(self, requests: Any, context: Any) -> Iterator[bytes]:
        """Each change of the health, until the client has enough of it or the server ends."""
        try:
            with self._waits(context):
                asked = health_pb2.HealthCheckRequest.FromString(next(requests, b""))
            known = asked.service in ("", INFERENCE)
        except DecodeError:
            abort(context, answer_to(invalid("the message is not a HealthCheckRequest")))
        gone = threading.Event()
        if not context.add_callback(gone.set):
            return
        last = 0
        while not gone.is_set():
            status = (_SERVING if self.core.is_ready else _NOT_SERVING) if known else 3
            if status != last:
                yield health_pb2.HealthCheckResponse(status=status).SerializeToString()  # type: ignore[arg-type]
                last = status
            if self._is_ending.is_set():
                return
            gone.wait(_LOOK_S)

    # --- small calls ---

    def _check(self, request: Any) -> Any:
        if request.service not in ("", INFERENCE):
            raise RequestError(Kind.NOT_FOUND, f"unknown service {request.service[:200]!r}")
        return health_pb2.HealthCheckResponse(
            status=_SERVING if self.core.is_ready else _NOT_SERVING  # type: ignore[arg-type]
        )

    def _server_metadata(self, request: Any) -> Any:
        return inference_pb2.ServerMetadataResponse(**self.core.metadata())  # type: ignore[arg-type]

    def _model_ready(self, request: Any) -> Any:
        version = checked_version(request.version)
        try:
            ready = self.core.models.find(request.name, version).is_ready
        except RequestError:
            ready = False
        return inference_pb2.ModelReadyResponse(ready=ready)

    def _model_metadata(self, request: Any) -> Any:
        models, version = self.core.models, checked_version(request.version)
        model = models.find(request.name, version)
        versions = [model.version] if version else models.versions(request.name)
        return inference_pb2.ModelMetadataResponse(**model.metadata(versions))  # type: ignore[arg-type]

    def _model_config(self, request: Any) -> Any:
        model = self.core.models.find(request.name, checked_version(request.version))
        return inference_pb2.ModelConfigResponse(config=config_of(model))

    def _system_status(self, request: Any) -> Any:
        response = inference_pb2.SystemSharedMemoryStatusResponse()
        memory = self.core.regions
        for one in memory.status(request.name) if memory is not None else ():
            status = response.regions[one.name]
            status.name, status.key = one.name, one.key
            status.offset, status.byte_size = one.offset, one.byte_size
        return response

    def _system_register(self, request: Any) -> Any:
        self.core.shared().register(request.name, request.key, request.offset, request.byte_size)
        return inference_pb2.SystemSharedMemoryRegisterResponse()

    def _system_unregister(self, request: Any) -> Any:
        self.core.shared().unregister(request.name)
        return inference_pb2.SystemSharedMemoryUnregisterResponse()

    def _cuda_status(self, request: Any) -> Any:
        return inference_pb2.CudaSharedMemoryStatusResponse()

    def _cuda_register(self, request: Any) -> Any:
        raise invalid("memory of cards cannot be registered here; use system shared memory")

    def _cuda_unregister(self, request: Any) -> Any:
        return inference_pb2.CudaSharedMemoryUnregisterResponse()
