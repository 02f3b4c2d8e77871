"""Records what compiled code does in one run, as a Tape (trace_program.py).

Operators are heard by a mode of torch. New tensors and kernels are made by functions that no mode
sees; so these are replaced while code is compiled or loaded, and such code goes on calling ours,
which do the same and record it. That is private to torch and may differ between versions, so a tape
is followed once, on other inputs, in memory that holds nothing, and thrown away unless its outputs
are those of the code.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mindspore_lite.engines.torch import trace_program
from mindspore_lite.engines.torch.trace_program import Kernel, Player, Step, Tape, UnknownValueError

_LOG = logging.getLogger(__name__)
_LANES = 32  # threads of a warp
_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}

Run = Callable[..., Sequence[torch.Tensor]]
Load = Callable[[Kernel, torch.device], trace_program.Launch]
_own = threading.local()  # notes: of the run of this thread that is listened to


class Notes:
    """Steps as they are heard. All tensors are held, so that no two have the same memory."""

    def __init__(self, given: Sequence[torch.Tensor]) -> None:
        self.steps: list[Step] = []
        self.kernels: list[Kernel] = []
        self._numbers: dict[Any, int] = {}
        self._held: list[torch.Tensor] = []
        self._at: dict[int, int] = {}  # functions of the driver -> kernels
        self.trouble: Exception | None = None  # why a step could not be written down
        for tensor in given:
            self.made(tensor)

    def made(self, tensor: torch.Tensor) -> int:
        """The number of a tensor that a step returned, which may be one that there was."""
        found = self._numbers.setdefault(_identity(tensor), len(self._held))
        self._held.append(tensor)
        return found

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor that a step is given."""
        try:
            return self._numbers[_identity(tensor)]
        except KeyError:
            raise UnknownValueError("a tensor comes from nowhere") from None

    def empty(self, found: torch.Tensor, size: Any, stride: Any, dtype: torch.dtype) -> None:
        """Write new memory down."""
        what = [list(size), list(stride), dtype, found.device]
        self.steps.append(["empty", self.made(found), *trace_program.encoded(what, self.number)])

    def view(
        self, found: torch.Tensor, source: torch.Tensor, size: Any, stride: Any, offset: int = 0
    ) -> None:
        """Write another view of memory down."""
        number = self.number(source)
        self.steps.append(["view", self.made(found), number, list(size), list(stride), offset])

    def call(self, function: Any, args: Any, keywords: dict[str, Any], found: Any) -> None:
        """Write an operator down."""
        given = trace_program.encoded(args, self.number)
        named = {key: trace_program.encoded(value, self.number) for key, value in keywords.items()}
        made = [
            self.made(one) if isinstance(one, torch.Tensor) else None
            for one in trace_program.results(found)
        ]
        name = f"{function.namespace}.{function._schema.name.partition('::')[2]}"
        self.steps.append(["call", made, f"{name}.{function._overloadname}", given, named])

    def run(
        self, function: int, x: int, y: int, z: int, warps: int, shared: int, kinds: str, args: Any,
        stream: int,
    ) -> None:  # fmt: skip
        """Write a kernel down."""
        if function not in self._at:
            path, name = _loaded[function]
            self._at[function] = len(self.kernels)
            self.kernels.append(Kernel(Path(path).read_bytes(), name, warps * _LANES, shared))
        given = trace_program.encoded(list(args), self.number)
        self.steps.append(["run", self._at[function], [x, y, z], kinds, given])


_loaded: dict[int, Sequence[str]] = {}  # function of the driver -> file and name of its code


def recorded(
    run: Run,
    inputs: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    load: Load | None = None,
) -> Tape | None:
    """The tape of a run, found to do the same; None where there can be none.

    run: takes the inputs; what it does with weights is done with these tensors.
    """
    try:
        with torch.no_grad():
            found = _listened(run, inputs, weights)
            _check(found, run, inputs, weights, load)
    except Exception as exc:  # noqa: BLE001 - whatever it is, there is another way to start
        _LOG.debug("compiled code is not put on tape", exc_info=exc)
        return None
    return found


def _listened(run: Run, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> Tape:
    notes = Notes([*inputs, *weights])
    _own.notes = notes
    try:
        with _Operators():
            outputs = run(*inputs)
    finally:
        _own.notes = None
    if notes.trouble is not None:
        raise notes.trouble
    return Tape(notes.steps, [notes.number(one) for one in outputs], notes.kernels)


def _check(
    found: Tape,
    run: Run,
    inputs: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    load: Load | None,
) -> None:
    """Raise ValueError unless a tape does the same with other inputs."""
    others = [
        torch.rand_like(one) if one.is_floating_point() else torch.zeros_like(one) for one in inputs
    ]
    wanted = run(*others)
    player = Player(found, wanted[0].device, load)
    for one, other in zip(player(*others, *weights, spoiled=True), wanted, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype or not _near(one, other):
            raise ValueError("the tape computes something else")


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point():
        return bool(torch.equal(one, other))
    near = _TOLERANCE.get(one.dtype, 1e-4)
    return bool(torch.allclose(one, other, rtol=near, atol=near, equal_nan=True))


class _Operators(TorchDispatchMode):  # type: ignore[misc] # torch is untyped to us
    """Hears the operators that are called."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        _tell(Notes.call, func, args, kwargs or {}, found)
        return found


def _tell(note: Callable[..., None], *parts: Any, **more: Any) -> None:
    """Write something down if anybody listens; what goes wrong there does not concern the run."""
    notes: Notes | None = getattr(_own, "notes", None)
    if notes is None or notes.trouble is not None:
        return
    try:
        note(notes, *parts, **more)
    except Exception as exc:  # noqa: BLE001 - then there is no tape
        notes.trouble = exc


# --- what no mode of torch sees ---


@contextmanager
def listening() -> Iterator[None]:
    """Let code that is compiled or loaded in the block be heard later; under BUILDING."""
    guards = torch._C._dynamo.guards
    notes: dict[str, Callable[..., None]] = {
        "_empty_strided_cuda": Notes.empty,
        "_empty_strided_cpu": Notes.empty,
        "_reinterpret_tensor": Notes.view,
    }
    replaced: list[tuple[Any, str, Any]] = [
        (guards, name, _telling(getattr(guards, name), note))
        for name, note in notes.items()
        if hasattr(guards, name)
    ]
    kernels = _kernel_class()
    if kernels is not None:
        replaced.append((kernels, "load_kernel", _telling_kernel(kernels.load_kernel)))
    before = [getattr(place, name) for place, name, _ in replaced]
    try:
        for place, name, own in replaced:
            setattr(place, name, own)
        yield
    finally:
        for (place, name, _), own in zip(replaced, before, strict=True):
            setattr(place, name, own)


def _kernel_class() -> Any:
    """Of Triton's kernels that torch itself starts; None where it has no such."""
    try:
        from torch._inductor.runtime import static_triton_launcher as module
    except ImportError:
        return None
    return getattr(module, "StaticallyLaunchedCudaKernel", None)


def _telling(make: Any, note: Callable[..., None]) -> Any:
    """A function that makes a tensor, and records it."""

    def made(*args: Any, **keywords: Any) -> Any:
        found = make(*args, **keywords)
        _tell(note, found, *args, **keywords)
        return found

    return made


def _telling_kernel(load: Any) -> Any:
    def load_kernel(self: Any, device: int) -> None:
        if not isinstance(self.C_impl, _Launcher):
            self.C_impl = _Launcher(self.C_impl)
        load(self, device)

    return load_kernel


class _Launcher:
    """Torch's launcher, which also records."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __reduce__(self) -> Any:
        return _own_launcher, ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def _load_kernel(self, *args: Any) -> Any:
        found = self._own._load_kernel(*args)
        for handle in found:  # among them the function, whose place has changed with versions
            _loaded[handle] = args[:2]
        return found

    def _launch_kernel(self, *args: Any) -> None:
        self._own._launch_kernel(*args)
        _tell(Notes.run, *args)


def _own_launcher() -> Any:
    """Torch's, in whose place ours is not put into files."""
    return torch._C._StaticCudaLauncher


def _identity(tensor: torch.Tensor) -> Any:
    """What two tensors have in common that are the same view of the same memory."""
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
