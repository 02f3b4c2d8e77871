"""Sessions on the host, which run a lowered graph step by step.

Also what sessions on the host and on cards have in common. A session does not survive a fork: the
threads of torch, and the context of a card, stay with the parent. A forked child that builds models
of its own has one thread for each run, since torch would wait forever for the others.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from mindspore_lite.core import binding
from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.engines import time_limit
from mindspore_lite.engines.base import Opener, SessionInfo, Stop
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.engines.sessions.any_shape import accepts
from mindspore_lite.engines.sessions.run_failure import run_failure
from mindspore_lite.engines.torch.kernels.run_body import Watched
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy
from mindspore_lite.engines.torch.program import Program, Shapes, seen
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    LiteError,
    ShapeError,
    StoppedError,
)

_ACCEPTED = 1000  # shapes that are remembered


class Base:
    """What every session of this engine says about itself, and checks of a request."""

    def __init__(self, program: Program, mapped: bool) -> None:
        self._inward = io_types.declared(program.metadata, "inputs")
        self._outward = io_types.declared(program.metadata, "outputs")
        self.info = SessionInfo(
            inputs=seen(program.inner_inputs, self._inward),
            outputs=seen(program.inner_outputs, self._outward),
            metadata=program.metadata,
            variables=program.variables,
            mapped=mapped,
            device=None if program.card is None else str(program.card.device),
        )
        self._inner = program.inner_inputs
        self._program: Program | None = program
        self._skeleton = program.skeleton
        self._forked = False
        self._accepted: set[Shapes] = set()  # shapes that were found to fit
        _SESSIONS.add(self)

    def skeleton(self) -> bytes:
        """The untouched ONNX graph without its large weights."""
        return self._skeleton

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Let the variable weights be those of the file but for these."""
        self._open_program().store.update(replaced)

    def close(self) -> None:
        """Drop the model; runs under way finish undisturbed."""
        self._program = None

    def _open_program(self) -> Program:
        program = self._program
        if self._forked:
            raise EngineError(
                "the session was made before this process was forked, and what it needs stayed "
                "with the parent; build the model in the child, or use the spawn start method"
            )
        if program is None:
            raise ClosedError("the session is closed; build the model again to run it")
        return program

    def _given(self, inputs: Sequence[Any]) -> list[Any]:
        """Inputs as the graph wants them, found to fit."""
        if len(inputs) != len(self._inner):
            names = [info.name for info in self.info.inputs]
            raise InputError(
                f"the model was given {len(inputs)} inputs, wanted {len(names)}: {names}"
            )
        given = list(inputs)
        for at, info in enumerate(self.info.inputs if self._inward else ()):
            if info.name in self._inward:
                given[at] = inward(given[at], self._inward[info.name])
        shapes = shapes_of(given)
        if shapes not in self._accepted:
            self._accept(shapes, inputs)
        return given

    def _accept(self, shapes: Shapes, inputs: Sequence[Any]) -> None:
        if not accepts(self._inner, shapes):
            got = {i.name: list(a.shape) for i, a in zip(self.info.inputs, inputs, strict=True)}
            want = {i.name: list(i.shape) for i in self.info.inputs}
            raise ShapeError(
                f"the inputs have shapes {got}, the model takes {want}; resize it first"
            )
        if len(self._accepted) == _ACCEPTED:
            self._accepted.clear()
        self._accepted.add(shapes)

    def _taken(self, outputs: list[Any]) -> list[Any]:
        """Outputs as callers want them."""
        for at, info in enumerate(self.info.outputs if self._outward else ()):
            if info.name in self._outward:
                outputs[at] = outward(outputs[at], self._outward[info.name])
        return outputs


class TorchSession(Base):
    """A model on the host that many threads may run at once."""

    def __init__(self, program: Program, mapped: bool) -> None:
        """Static shapes are lowered now, others when they are met."""
        super().__init__(program, mapped)
        self._again: Callable[[], Program] | None = program.again
        options = program.options
        self._threads = _threads(options.threads)
        self._cores = options.cores[:1] if options.binds_caller else ()
        if own := static(self._inner):
            with _wide(self._threads):
                program.plan(own)

    def opener(self) -> Opener:
        """Lowers the same graph again, on weights of its own."""
        again = self._again
        if again is None:
            raise ClosedError("the session is closed; build the model again to run it")
        return lambda replaced: on_host(again(), replaced, mapped=False)

    def close(self) -> None:
        """Drop the model, and what another session would be made of."""
        super().close()
        self._again = None

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs; once begun, a run is stopped between the steps of a loop alone."""
        program = self._open_program()
        check_stop(stop)
        given = self._given(inputs)
        try:
            with binding.bound(self._cores), _wide(self._threads), stoppable(stop):
                return self._taken(_computed(program, given))
        except LiteError:
            raise
        except Exception as exc:  # torch raises anything
            text = f"torch could not run the model: {readable(exc)}"
            raise run_failure(text, exc, self.info.inputs, self._skeleton, inputs) from exc


def on_host(program: Program, replaced: Mapping[str, np.ndarray], mapped: bool) -> TorchSession:
    """A session on the host, with other weights in place of some; within the time for a build."""
    if replaced:
        program.store.update(replaced)
    return time_limit.within(
        program.options.max_seconds,
        "preparing the model for PyTorch",
        lambda: TorchSession(program, mapped),
    )


@contextmanager
def _wide(threads: int) -> Iterator[None]:
    """Let torch use so many threads for what this one asks of it, then as many as before."""
    before = torch.get_num_threads()
    if before == threads:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _threads(wanted: int) -> int:
    if wanted == 1 or not _forked:
        return wanted
    warnings.warn(
        f"a run uses 1 thread instead of {wanted}: this process was forked from one that had "
        "loaded PyTorch, whose threads do not survive that; use the spawn start method",
        RuntimeWarning,
        stacklevel=2,
    )
    return 1


def _computed(program: Program, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    plan = program.plan(shapes_of(given))
    tensors = [of_numpy(array) for array in given]
    with program.store.gate.running(), torch.inference_mode():
        outputs = plan.run(*tensors)
        # an output may be an input, a weight, or twice the same tensor
        taken = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        found = []
        for output in outputs:
            address = output.untyped_storage().data_ptr()
            is_ours = address in taken or address in program.store.addresses
            taken.add(address)
            found.append(to_numpy((output.clone() if is_ours else output).contiguous()))
    return found


def shapes_of(given: Sequence[Any]) -> Shapes:
    """The shapes of arrays or tensors."""
    return tuple([tuple(one.shape) for one in given])


def static(infos: Sequence[Any]) -> Shapes | None:
    """The shapes of inputs that leave nothing open."""
    shapes = tuple(info.shape for info in infos)
    return shapes if all(dim >= 0 for dims in shapes for dim in dims) else None


def check_stop(stop: Stop | None) -> None:
    """Raise StoppedError if a run was told to stop."""
    if stop is not None and stop.fired:
        raise StoppedError("the run was told to stop")


def stoppable(stop: Stop | None) -> Watched:
    """Let a run end between the steps of its loops, which may never end by themselves."""
    return Watched(partial(check_stop, stop))


def readable(exc: BaseException) -> str:
    """An error of torch in one line."""
    return " ".join(str(exc).split())[:500] or type(exc).__name__


def inward(given: Any, kind: str) -> Any:
    """What a caller gives, as the graph wants it."""
    if not isinstance(given, torch.Tensor):
        return io_types.inward(given, kind)
    return given.float() if kind == "bfloat16" else torch.view_as_real(given)


def outward(found: Any, kind: str) -> Any:
    """What the graph gives, as a caller wants it."""
    if not isinstance(found, torch.Tensor):
        return io_types.outward(found, kind)
    return found.bfloat16() if kind == "bfloat16" else torch.view_as_complex(found)


def _after_fork() -> None:
    for session in list(_SESSIONS):
        session._forked = True
    _forked.append(True)


_forked: list[bool] = []  # not empty: this process is a child
_SESSIONS: weakref.WeakSet[Base] = weakref.WeakSet()
after_fork_in_child(_after_fork)
