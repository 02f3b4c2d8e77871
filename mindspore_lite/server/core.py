"""What HTTP and gRPC share: models, gate, limits, the bytes in flight, and whether it is ending."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mindspore_lite.server.access import Gate
from mindspore_lite.server.allocator import LARGE_BYTES, Trimmer
from mindspore_lite.server.control import EXTENSION as REPOSITORY
from mindspore_lite.server.control import Control
from mindspore_lite.server.dashboard.history import History
from mindspore_lite.server.errors import Kind, NoRoomError, RequestError
from mindspore_lite.server.health import Health, Watched
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.marks import Marks
from mindspore_lite.server.models import Models, ServedModel
from mindspore_lite.server.observer import Observer
from mindspore_lite.server.shared_memory import EXTENSION, SharedMemory
from mindspore_lite.version import __version__

# what the server metadata lists; others are added by what implements them
EXTENSIONS = (
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "parameters",
    "schedule_policy",
    "statistics",
)


class Flight:
    """Counts the bytes of requests that are not answered yet, over all connections."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self.trimmer = Trimmer(lambda: self.bytes > 0)
        self.bytes = 0

    def take(self, count: int) -> None:
        """Count bytes that a request is about to take.

        Raises:
            NoRoomError: There is no room now.
        """
        with self._lock:
            if self.bytes + count > self._most:
                raise NoRoomError(self._most)
            self.bytes += count

    def give(self, count: int) -> None:
        """They are free again."""
        with self._lock:
            self.bytes -= count
        if count >= LARGE_BYTES:
            self.trimmer.freed()


@dataclass
class Core:
    """The server behind its ports.

    Attributes:
        models: What is served.
        gate: Who may do what.
        limits: Of requests.
        extensions: Which the server metadata lists.
        regions: Shared memory of clients; None if that is off.
        control: Loads and unloads models; None where nothing does.
        history: What the models did lately, for the dashboard.
        health: Whether ports and models get something done.
        is_starting: Until all models of the start were loaded.
        is_ending: From the first signal on: not ready, and connections are closed after an answer.
        refuses: No new work is taken any more.
        observer: Counts and keeps what is known of requests.
        connections: How many are open, by protocol.
        quota_bytes: Of memory that models may take together; 0 is no limit.
        started_s: When it was made, by time.monotonic().
        made_s: The same, in seconds since 1970.
    """

    models: Models = field(default_factory=Models)
    gate: Gate = field(default_factory=Gate)
    limits: Limits = field(default_factory=Limits)
    extensions: list[str] = field(default_factory=lambda: list(EXTENSIONS))
    regions: SharedMemory | None = None
    control: Control | None = None
    history: History = field(default_factory=History)
    health: Health = field(default_factory=Health)
    is_starting: bool = False
    is_ending: bool = False
    refuses: bool = False
    observer: Observer = field(default_factory=Observer)
    connections: dict[str, Callable[[], int]] = field(default_factory=dict)
    quota_bytes: int = 0
    started_s: float = field(default_factory=time.monotonic)
    made_s: float = field(default_factory=time.time)
    flight: Flight = field(init=False)

    def __post_init__(self) -> None:
        self.health.told = self._mark_unready
        self.flight = Flight(self.limits.flight_bytes)

    @property
    def is_ready(self) -> bool:
        """Whether requests should come here."""
        if self.is_starting or self.is_ending or self.health.stalled():
            return False
        return self.models.are_ready()

    @property
    def is_live(self) -> bool:
        """Whether the process is of any use; it should be started again if not."""
        return self.health.is_live

    @property
    def marks(self) -> Marks:
        """What happened to models."""
        return self.observer.marks

    def _mark_unready(self, model: Watched, why: str) -> None:
        if why:
            self.marks.add(model.name, model.version, "unready", why)

    def usable(self, name: str, version: str) -> ServedModel:
        """The model that a request is for.

        Raises:
            RequestError: There is none, it failed its probe, or no more work is taken.
        """
        try:
            self.check_takes_work()
            return self.models.usable(name, version)
        except RequestError as exc:
            if exc.kind is Kind.UNAVAILABLE and (found := self.models.known(name, version)):
                found.meter.reject("not_ready")
            raise

    def refused_body(self, name: str, version: str) -> None:
        """Count a request to a model for whose body there was no room."""
        found = self.models.known(name, version)
        if found is not None:
            found.meter.reject("memory")
            self.marks.add(found.name, found.version, "rejected", "memory")

    def check_takes_work(self) -> None:
        """Refuse work after the drain has begun.

        Raises:
            RequestError: It has.
        """
        if self.refuses:
            raise RequestError(
                Kind.UNAVAILABLE, "the server is ending; send the request to another", 1
            )

    def shared(self) -> SharedMemory:
        """Shared memory of clients.

        Raises:
            RequestError: It is off.
        """
        if self.regions is None:
            raise RequestError(
                Kind.UNSUPPORTED, "shared memory is off; start the server with --allow-client-shm"
            )
        return self.regions

    def allow_shared_memory(self, owners: Sequence[int] = ()) -> None:
        """Let clients pass tensors in shared memory of these users, and of the server's own."""
        self.regions = SharedMemory(owners, self.limits.body_bytes, flight=self.flight)
        self.extensions.append(EXTENSION)

    def controlled(self) -> Control:
        """What loads and unloads models.

        Raises:
            RequestError: Nothing does.
        """
        if self.control is None:
            raise RequestError(Kind.UNAVAILABLE, "this server has no model repository")
        return self.control

    def add_control(self, control: Control) -> None:
        """Let it load and unload models."""
        self.control = control
        self.extensions.append(REPOSITORY)

    def metadata(self) -> dict[str, object]:
        """What the protocol tells of the server."""
        return {"name": "mslite", "version": __version__, "extensions": self.extensions}
