"""One small interface to each card that torch can use, such as "cuda:0" or "npu:0".

torch_npu gives Ascend cards the functions that torch.cuda has, under torch.npu, so one class serves
both; what only one of them has is asked for where it is used. Everything that touches a card in
this package goes through a Card: tests put one in its place whose streams and graphs are plain
calls on the CPU.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from mindspore_lite.core.extras import pip_install
from mindspore_lite.errors import EngineError, EngineUnavailableError

_TARGETS = {"cuda": "gpu", "npu": "ascend"}
_NAMES = {"cuda": "NVIDIA GPU", "npu": "Ascend NPU"}
# after these a process can do nothing more with a card, whatever the work is
_FATAL = re.compile(
    "device-side assert|illegal memory access|misaligned address|illegal instruction|"
    "unspecified launch failure|uncorrectable ECC|invalid program counter|fallen off the bus",
    re.IGNORECASE,
)
# a device must not be waited for while anything on it is captured, whichever thread does so
_CAPTURING = threading.Lock()
# in the order of `Card` in one_run.c
_FUNCTIONS = (
    "cudaMemcpyAsync", "cudaGraphLaunch", "cudaStreamSynchronize", "cudaEventRecord",
    "cudaStreamWaitEvent",
)  # fmt: skip
_FULL = re.compile("out of memory|ALLOC_FAILED", re.IGNORECASE)


@dataclass(frozen=True)
class CardFacts:
    """What people want to know of a card."""

    device: str
    name: str
    memory_bytes: int


class Card:
    """One card. `broken` is why nothing can be run on it any more; empty while all is well."""

    def __init__(self, device: str, torch: Any = None) -> None:
        """Without a check: see `card_for`."""
        self._torch = torch or _torch(device.partition(":")[0])
        self.device = self._torch.device(device)
        self.kind = self.device.type
        self._module = getattr(self._torch, self.kind)
        self.broken = ""

    @property
    def name(self) -> str:
        """What its maker calls it."""
        return str(self._module.get_device_name(self.device))

    def memory_bytes(self) -> tuple[int, int]:
        """(free, all) memory of the card."""
        free, total = self._module.mem_get_info(self.device)
        return int(free), int(total)

    def identity(self) -> str:
        """What distinguishes this card from others, whatever number a process gives it."""
        return str(getattr(self._module.get_device_properties(self.device), "uuid", ""))

    def properties(self) -> str:
        """What code for this card follows from: that of others of its kind is the same."""
        found = self._module.get_device_properties(self.device)
        return f"{found.name} {found.major}.{found.minor} {found.multi_processor_count}"

    # --- order of work ---

    def stream(self) -> Any:
        """A new stream."""
        return self._module.Stream(device=self.device)

    def current(self) -> Any:
        """The stream on which this thread's own work with torch is done."""
        return self._module.current_stream(self.device)

    def is_current(self) -> bool:
        """Whether this thread's work with torch goes to this card anyway."""
        return int(self._module.current_device()) == (self.device.index or 0)

    def using(self, stream: Any) -> AbstractContextManager[Any]:
        """Let this thread's work go to a stream of this card."""
        found: AbstractContextManager[Any] = stream  # a tenth of what torch.cuda.stream() takes
        return found if hasattr(stream, "__enter__") else self._module.stream(stream)

    def event(self, timed: bool = False) -> Any:
        """An event, whose `synchronize` waits without the interpreter's lock."""
        return self._module.Event(enable_timing=timed)

    def synchronize(self) -> None:
        """Wait for all that was asked of the card."""
        with _CAPTURING:
            self._module.synchronize(self.device)

    # --- graphs ---

    @property
    def captures(self) -> bool:
        """Whether work can be recorded, and replayed."""
        return self._graph_class is not None

    @property
    def _graph_class(self) -> Any:
        return getattr(self._module, "CUDAGraph" if self.kind == "cuda" else "NPUGraph", None)

    def pool(self) -> Any:
        """Memory for graphs that never run at the same time."""
        return self._module.graph_pool_handle()

    def captured(self, run: Callable[[], Any], stream: Any, pool: Any) -> tuple[Any, Any]:
        """Record a run: a graph to replay, and the run's result, which every replay writes anew.

        Other threads may go on running meanwhile.
        """
        graph = self._graph_class()
        more = {"capture_error_mode": "thread_local"}
        with (
            _CAPTURING,
            self._module.device(self.device),
            self._own_workspace(),
            self._module.graph(graph, pool=pool, stream=stream, **more),
        ):
            result = run()
        return graph, result

    @contextmanager
    def _own_workspace(self) -> Iterator[None]:
        """Let matrix products of a graph find their scratch memory in the graph's own pool.

        torch has a piece of memory for those of a stream, which a graph knows by its address alone.
        Others free it: torch's compiler whenever it records a graph, and newer versions of torch
        whenever one of that stream goes. So there must be none before, and none is left behind.
        """
        clear = getattr(self._torch._C, "_cuda_clearCublasWorkspaces", None)
        if self.kind != "cuda" or clear is None:
            yield
            return
        clear()
        try:
            yield
        finally:
            clear()

    # --- for one_run.c ---

    def addresses(self) -> list[int]:
        """Of the functions of CUDA that it calls; none where there is no CUDA."""
        version = str(getattr(self._torch.version, "cuda", None) or "")
        if self.kind != "cuda" or not version:
            return []
        try:
            library = ctypes.CDLL(f"libcudart.so.{version.partition('.')[0]}")
        except OSError:
            return []
        found = (ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in _FUNCTIONS)
        return [one.value or 0 for one in found]

    def address(self, thing: Any) -> int:
        """Of a stream, an event or a graph, in CUDA's hands; of a graph 0 if it is not known."""
        for name in ("cuda_stream", "cuda_event"):
            if hasattr(thing, name):
                return int(getattr(thing, name))
        return int(thing.raw_cuda_graph_exec()) if hasattr(thing, "raw_cuda_graph_exec") else 0

    def current_address(self) -> int:
        """Of the stream on which this thread's own work with torch is done."""
        return stream_address(self.device, self._torch)

    def drawn(self) -> int:
        """Counts up with every random number; a graph that draws some must be replayed by torch."""
        generator = self._module.default_generators[self.device.index or 0]
        return int(generator.get_offset())

    def error_text(self, number: int) -> str:
        """What an error of CUDA is called, which CUDA then forgets: torch would report it again."""
        library = ctypes.CDLL(f"libcudart.so.{self._torch.version.cuda.partition('.')[0]}")
        library.cudaGetErrorString.restype = ctypes.c_char_p
        library.cudaGetLastError()
        return str(library.cudaGetErrorString(number).decode())

    # --- memory ---

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A tensor of the host that the card can copy from and to on its own."""
        return self._torch.empty(shape, dtype=dtype, pin_memory=True)

    def empty_cache(self) -> None:
        """Give unused memory back."""
        self._module.empty_cache()

    # --- errors ---

    def is_full(self, exc: BaseException) -> bool:
        """Whether an error says that there is no memory left."""
        if isinstance(exc, self._torch.OutOfMemoryError):
            return True
        return isinstance(exc, RuntimeError) and _FULL.search(str(exc)) is not None

    def note(self, exc: BaseException) -> None:
        """Remember an error after which the card cannot be used by this process."""
        if _FATAL.search(str(exc)):
            self.broken = " ".join(str(exc).split())[:300]

    def check_whole(self) -> None:
        """Raise EngineError if an earlier error made the card unusable."""
        if self.broken:
            raise EngineError(
                f"device {str(self.device)!r} failed before in this process ({self.broken}), and "
                "cannot be used again by it; restart the process"
            )


def stream_address(device: Any, torch: Any) -> int:
    """Of the stream of CUDA on which this thread's own work is done; 0 is the default one."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # 1 us, the other takes 8
    if raw is not None:
        return int(raw(device.index or 0))
    return int(torch.cuda.current_stream(device).cuda_stream)


def card_for(device: str) -> Card:
    """A card that was found to be there, and to work; the same one for all callers."""
    check(device)
    card = _CARDS.get(device)
    if card is None:
        card = _CARDS.setdefault(device, Card(device))
    card.check_whole()
    return card


_CARDS: dict[str, Card] = {}


def check(device: str, torch: Any = None) -> None:
    """Raise EngineUnavailableError, with what to do about it, unless there is such a card."""
    kind, _, number = device.partition(":")
    if kind not in _TARGETS or not number.isdecimal():
        raise ValueError(f"device is {device!r}, wanted 'cpu', 'cuda:N' or 'npu:N'")
    count = device_count(kind, torch)
    if int(number) >= count:
        there = "device 0 alone is" if count == 1 else f"devices 0 to {count - 1} are"
        raise EngineUnavailableError(
            f"device_id {number} asks for a card of target {_TARGETS[kind]!r} that is not there: "
            f"{there} visible to this process; take one of these"
        )


def device_count(kind: str, torch: Any = None) -> int:
    """How many cards of a kind there are; none at all is an EngineUnavailableError."""
    torch = torch or _torch(kind)
    what = f"target {_TARGETS[kind]!r} needs an {_NAMES[kind]}"
    module = getattr(torch, kind, None)
    if kind == "cuda" and not torch.version.cuda:
        raise EngineUnavailableError(
            f"{what}, but PyTorch {torch.__version__} was built without CUDA; install a build of "
            "PyTorch for CUDA, as its own instructions for your system say"
        )
    if module is None:
        raise EngineUnavailableError(f"{what}, but torch_npu does not provide torch.{kind}")
    try:
        module.init()  # says why not, where is_available() and device_count() only say no
    except (RuntimeError, AssertionError) as exc:
        reason = " ".join(str(exc).split())
        raise EngineUnavailableError(f"{what} that PyTorch can use: {reason}") from exc
    count = int(module.device_count())
    if not count:
        hidden = "CUDA_VISIBLE_DEVICES" if kind == "cuda" else "ASCEND_RT_VISIBLE_DEVICES"
        raise EngineUnavailableError(
            f"{what}, and none is visible to this process; is {hidden} set to hide them?"
        )
    return count


def listed(kind: str = "cuda", torch: Any = None) -> list[CardFacts]:
    """Every card of a kind.

    Raises:
        EngineUnavailableError: There is none, with the reason.
    """
    found = [Card(f"{kind}:{at}", torch) for at in range(device_count(kind, torch))]
    return [CardFacts(str(c.device), c.name, c.memory_bytes()[1]) for c in found]


def _torch(kind: str) -> Any:
    """PyTorch, with what it needs for a kind of cards."""
    try:
        torch = importlib.import_module("torch")
        if kind == "npu":
            importlib.import_module("torch_npu")
    except (ImportError, OSError) as exc:  # the second: libraries of it are missing
        extra = _TARGETS[kind]
        package = "torch_npu" if getattr(exc, "name", "") == "torch_npu" else "PyTorch"
        raise EngineUnavailableError(
            f"target {_TARGETS[kind]!r} needs {package}, which cannot be imported ({exc}): "
            f"{pip_install(extra)}"
        ) from exc
    return torch
