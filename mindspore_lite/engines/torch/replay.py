"""Replays a recorded run for one combination of shapes on a stream.

Buffers never move: inputs have a place on the card, outputs are where the recorded run writes them,
with a place in pinned memory of the host too. A request is copied to the card, replayed, and copied
back; what callers get is theirs alone. A plan that cannot be recorded is run step by step between
the same buffers.

Few calls are made for a run, for after each the interpreter's lock must be waited for, and many
clients want it: one, where there is CUDA and a C compiler (fused_launch.py). Elsewhere rows of many
clients are copied by one call, right from their arrays, and only a large array is staged by torch.

All Replays of a session use one stream and the same memory (Recording): they never run at the same
time, and what one wrote is copied away before another is started.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from mindspore_lite.engines.torch import fused_launch
from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.compile import BUILDING
from mindspore_lite.engines.torch.fused_launch import OneRun
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy
from mindspore_lite.engines.torch.precision import switched
from mindspore_lite.engines.torch.program import ExecutionPlan, Program, warn_of_steps

_WARM_UPS = 3  # the first loads code, the second may still choose kernels
_SMALL_BYTES = 64 << 10  # copied within a few microseconds; guess
_SMALL_SIZES = 256  # that are remembered
_THREADS_BYTES = 4 << 20  # from here on torch copies an array, with several threads; guess

Given = Any  # an array, or a tensor of the card


class Recording:
    """What all Replays of a session have in common: its stream, and memory that each uses alone."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.stream = card.stream()
        self.pool = card.pool() if card.captures else None
        self.caller = fused_launch.caller(card, self.stream) if card.captures else None
        self._rooms: dict[tuple[str, int], torch.Tensor] = {}

    def room(self, use: str, at: int, dims: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory for the input or output at a place: the same for all, if it is large enough."""
        size = math.prod(dims) * dtype.itemsize
        found = self._rooms.get((use, at))
        if found is None or found.numel() < size:
            found = self._made(use, size)
            self._rooms[use, at] = found
        return found[:size].view(dtype).view(tuple(dims))

    def clear(self) -> None:
        """Let go of the memory, and of threads."""
        self._rooms.clear()
        if self.caller is not None:
            self.caller.close()
        self.pool = None

    def _made(self, use: str, size: int) -> torch.Tensor:
        if use == "card":
            return torch.zeros(size, dtype=torch.uint8, device=self.card.device)
        return self.card.pinned((size,), torch.uint8).zero_()


class Replay:
    """A plan that is ready to run on a stream. For one thread at a time.

    Two forms of it are recorded: one that also copies the outputs to pinned memory, for requests of
    the host, and one that leaves them on the card, for tensors that lie there already.
    """

    def __init__(self, program: Program, plan: ExecutionPlan, lane: Recording) -> None:
        self._lane = lane
        self._card, self._stream = lane.card, lane.stream
        self._plan = plan
        self._shapes = shapes = list(zip(plan.shapes, program.types, strict=True))
        self._back: list[torch.Tensor] = []
        self._outputs: Sequence[torch.Tensor] = ()
        self._replay: Any = None  # the graph; None: run step by step
        self._answer: Any = None  # with the copies of what comes back
        self._once: OneRun | None = None  # None: call by call
        self._stream.wait_stream(self._card.current())
        with self._card.using(self._stream), torch.no_grad():
            self._inputs = [lane.room("card", at, *one) for at, one in enumerate(shapes)]
            for tensor in self._inputs:
                tensor.zero_()  # an element of every table: any model takes it
            if not plan.dynamic and self._card.captures:
                self._record(program)
        self._back_arrays = [to_numpy(back) for back in self._back]

    def _record(self, program: Program) -> None:
        options = program.options
        with BUILDING, switched(options.tf32, options.tuning == "full"):
            caller = self._lane.caller
            drawn = caller and self._card.drawn()
            for _ in range(_WARM_UPS):
                outputs = self._plain()
            if caller and self._card.drawn() != drawn:
                caller = None
            self._back = [
                self._lane.room("out", at, out.shape, out.dtype) for at, out in enumerate(outputs)
            ]
            del outputs
            self._stream.synchronize()
            try:
                self._replay, self._outputs = self._captured(self._plain)
                self._answer, _ = self._captured(self._copied_back)
            except Exception as exc:
                self._card.note(exc)
                if self._card.broken or self._card.is_full(exc):
                    raise
                warn_of_steps(program.name, f"{type(exc).__name__}: {exc}")
                return
        self._once = self._at_once(caller) if caller else None

    def _at_once(self, caller: fused_launch.Caller) -> OneRun | None:
        """How to run by one call; None where CUDA's own name of a graph is not available."""
        self._graphs = [self._card.address(graph) for graph in (self._answer, self._replay)]
        if not all(self._graphs):
            return None
        staged = [self._lane.room("in", at, *one) for at, one in enumerate(self._shapes)]
        return OneRun(caller, self._inputs, staged)

    def _captured(self, run: Callable[[], Any]) -> tuple[Any, Any]:
        return self._card.captured(run, self._stream, self._lane.pool)

    def _plain(self) -> list[torch.Tensor]:
        """The outputs, on the card; a graph that runs step by step may have left some elsewhere."""
        found = self._plan.run(*self._inputs)
        return [output.to(self._card.device).contiguous() for output in found]

    def _copied_back(self) -> list[torch.Tensor]:
        """The outputs in pinned memory; nothing stays on the card."""
        for back, output in zip(self._back, self._plain(), strict=True):
            back.copy_(output, non_blocking=True)
        return []

    def run(self, requests: Sequence[Sequence[Given]], rows: Sequence[int]) -> list[list[Any]]:
        """The outputs of each request: arrays, or tensors of the card if all inputs are such.

        rows: how many each of them has along the first axis; what is left of the shapes keeps what
        it had before, which is a row of some request. No rows: one request, which fills the inputs.
        """
        if self._once is not None and self._once.of_arrays(requests, rows, self._graphs[0]):
            return _parts(self._back_arrays, rows, _copied)
        given = [one for request in requests for one in request]
        tensors = sum(isinstance(one, torch.Tensor) for one in given)
        with torch.no_grad():
            if tensors or self._answer is None:
                return self._on_card(requests, rows, tensors == len(given))
            with self._card.using(self._stream):
                for at, target in enumerate(self._inputs):
                    self._send_arrays(at, target, [request[at] for request in requests], rows)
                self._answer.replay()
            self._stream.synchronize()
            return _parts(self._back_arrays, rows, _copied)

    def _send_arrays(
        self, at: int, target: torch.Tensor, given: Sequence[np.ndarray], rows: Sequence[int]
    ) -> None:
        """Copy arrays to the card, one after the other along the first axis."""
        sources = [of_numpy(one) for one in given]
        if len(given) == 1 and given[0].nbytes >= _THREADS_BYTES:
            staged = self._lane.room("in", at, *self._shapes[at])[: len(given[0])]
            staged.copy_(sources[0])  # with several threads
            sources = [staged]
        filled = target[: sum(rows)] if rows else target
        parts = filled.split(list(rows)) if len(rows) > 1 else [filled]
        torch._foreach_copy_(parts, sources, non_blocking=True)
        _pad(target, sum(rows))

    def _on_card(
        self, requests: Sequence[Sequence[Given]], rows: Sequence[int], stay: bool
    ) -> list[list[Any]]:
        """Run between buffers of the card, where some of what is given may lie."""
        if stay and self._once is not None:
            found = self._once.of_tensors(requests, rows, self._graphs[1], self._outputs)
            if found is not None:
                return found
        current = self._card.current()
        self._stream.wait_stream(current)
        with self._card.using(self._stream):
            self._send(requests, rows)
            if self._replay is not None:
                self._replay.replay()
            outputs = self._outputs if self._replay is not None else self._plain()
            if not stay:
                arrays = [to_numpy(output.cpu()) for output in outputs]
                return _parts(arrays, rows, _copied)
            parts = _parts(outputs, rows, torch.clone)
        self._stream.synchronize()  # whoever gets them may use any stream
        for tensor in (one for request in parts for one in request):
            _used_on(tensor, current)
        return parts

    def _send(self, requests: Sequence[Sequence[Given]], rows: Sequence[int]) -> None:
        for at, target in enumerate(self._inputs):
            end = 0
            for request, count in zip(requests, rows or [0], strict=True):
                one = request[at]
                part = target[end : end + count] if rows else target
                end += count
                part.copy_(one if isinstance(one, torch.Tensor) else of_numpy(one))
                if isinstance(one, torch.Tensor):
                    _used_on(one, self._stream)
            _pad(target, end)


def _pad(buffer: torch.Tensor, rows: int) -> None:
    """Let integers of padding be some of a row: others may be no index of anything here."""
    if 0 < rows < len(buffer) and not buffer.is_floating_point():
        buffer[rows:] = buffer[:1]


def _parts(
    outputs: Sequence[Any], rows: Sequence[int], own: Callable[[Any], Any]
) -> list[list[Any]]:
    """The outputs of each request, in memory of their own."""
    if not rows:
        return [[own(output) for output in outputs]]
    parts, end = [], 0
    for count in rows:
        parts.append([own(output[end : end + count]) for output in outputs])
        end += count
    return parts


def _copied(part: np.ndarray) -> np.ndarray:
    """A part in memory of its own.

    NumPy lets go of the interpreter's lock to copy more than a few elements, and waits for it
    afterwards; so a small part is copied as one element.
    """
    if not 0 < part.nbytes <= _SMALL_BYTES:
        return part.copy()
    own = np.empty(part.shape, part.dtype)
    element = _bytes_type(part.nbytes)
    own.reshape(-1).view(element)[0] = part.reshape(-1).view(element)[0]
    return own


@functools.lru_cache(_SMALL_SIZES)
def _bytes_type(size: int) -> np.dtype[Any]:
    return np.dtype((np.void, size))


def _used_on(tensor: torch.Tensor, stream: Any) -> None:
    """Keep the memory of a tensor from being given to others while a stream uses it."""
    if tensor.device.type != "cpu":
        tensor.record_stream(stream)
