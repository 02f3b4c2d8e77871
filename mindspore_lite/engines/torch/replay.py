"""One combination of shapes on a stream: arrays go in, a recorded run is replayed, arrays come out.

Buffers never move: inputs have a place on the card and one in pinned memory of the host, outputs
are where the recorded run writes them, with a place in pinned memory too. A request is copied to
pinned memory, from there by the card, replayed, and copied back; what callers get is theirs alone.
A plan that cannot be recorded is run step by step between the same buffers.

All Replays of a session use one stream and the same memory (Lane): they never run at the same time,
and what one wrote is copied away before another is started.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.compile import BUILDING
from mindspore_lite.engines.torch.precision import switched
from mindspore_lite.engines.torch.program import Plan, Program, warn_of_steps
from mindspore_lite.kernels.types import of_numpy, to_numpy

_WARM_UPS = 3  # the first loads code, the second may still choose kernels
_SEND_BYTES = 4 << 20  # begin to send when so much lies in pinned memory; guess
_THREADS_BYTES = 1 << 20  # of a request: from here on torch copies, with several threads; guess

Given = Any  # an array, or a tensor of the card


class Lane:
    """What all Replays of a session have in common: its stream, and memory that each uses alone."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.stream = card.stream()
        self.pool = card.pool() if card.captures else None
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
        """Let go of the memory."""
        self._rooms.clear()
        self.pool = None

    def _made(self, use: str, size: int) -> torch.Tensor:
        if use == "card":
            return torch.zeros(size, dtype=torch.uint8, device=self.card.device)
        return self.card.pinned((size,), torch.uint8)


class Replay:
    """A plan that is ready to run on a stream. For one thread at a time."""

    def __init__(self, program: Program, plan: Plan, lane: Lane) -> None:
        self._lane = lane
        self._card, self._stream = lane.card, lane.stream
        self._plan = plan
        shapes = list(zip(plan.shapes, program.types, strict=True))
        self._host = [lane.room("in", at, *one) for at, one in enumerate(shapes)]
        self._replay: Callable[[], None] | None = None  # None: run step by step
        self._outputs: Sequence[torch.Tensor] = ()
        self._stream.wait_stream(self._card.current())
        with self._card.using(self._stream), torch.no_grad():
            self._inputs = [lane.room("card", at, *one) for at, one in enumerate(shapes)]
            for tensor in self._inputs:
                tensor.zero_()  # an element of every table: any model takes it
            if not plan.dynamic and self._card.captures:
                self._replay, self._outputs = self._captured(program)
        self._back = [
            lane.room("out", at, out.shape, out.dtype) for at, out in enumerate(self._outputs)
        ]
        # slices of arrays cost a tenth of those of tensors
        self._arrays = [to_numpy(host) for host in self._host]
        self._back_arrays = [to_numpy(back) for back in self._back]
        self._done = self._card.event()

    def _captured(self, program: Program) -> tuple[Callable[[], None] | None, Any]:
        options = program.options

        def run() -> list[torch.Tensor]:
            return [output.contiguous() for output in self._plan.run(*self._inputs)]

        with BUILDING, switched(options.tf32, options.tuning == "full"):
            for _ in range(_WARM_UPS):
                run()
            self._stream.synchronize()
            try:
                return self._card.captured(run, self._stream, self._lane.pool)
            except Exception as exc:
                self._card.note(exc)
                if self._card.broken or self._card.is_full(exc):
                    raise
                warn_of_steps(program.name, f"{type(exc).__name__}: {exc}")
                return None, ()

    def run(self, requests: Sequence[Sequence[Given]], rows: Sequence[int]) -> list[list[Any]]:
        """The outputs of each request: arrays, or tensors of the card if all inputs are such.

        rows: how many each of them has along the first axis; what is left of the shapes is filled
        with the first row. No rows: one request, which fills the inputs as it is.
        """
        given = [one for request in requests for one in request]
        tensors = sum(isinstance(one, torch.Tensor) for one in given)
        current = self._card.current() if tensors else None
        if current is not None:
            self._stream.wait_stream(current)
        with self._card.using(self._stream), torch.no_grad():
            self._send(requests, rows)
            outputs = self._computed()
            if current is None or tensors < len(given):
                return _parts(self._fetched(outputs), rows, np.copy)
            found = _parts(outputs, rows, torch.clone)
        current.wait_stream(self._stream)
        for tensor in (one for request in found for one in request):
            _used_on(tensor, current)
        return found

    def _computed(self) -> Sequence[torch.Tensor]:
        if self._replay is None:
            return self._plan.run(*self._inputs)
        self._replay()
        return self._outputs

    def _fetched(self, outputs: Sequence[torch.Tensor]) -> Sequence[np.ndarray]:
        """Outputs in memory of the host that the next run will write to."""
        if self._replay is None:
            return [to_numpy(output.cpu().contiguous()) for output in outputs]
        for back, output in zip(self._back, outputs, strict=True):
            back.copy_(output, non_blocking=True)
        self._done.record(self._stream)
        self._done.synchronize()
        return self._back_arrays

    def _send(self, requests: Sequence[Sequence[Given]], rows: Sequence[int]) -> None:
        for at, target in enumerate(self._inputs):
            given = [request[at] for request in requests]
            if rows:
                self._put_rows(at, given, rows)
            elif isinstance(given[0], torch.Tensor):
                self._put(target, given[0])
            else:
                self._host[at].copy_(of_numpy(given[0]))
                target.copy_(self._host[at], non_blocking=True)

    def _put(self, target: torch.Tensor, given: torch.Tensor) -> None:
        target.copy_(given, non_blocking=True)
        _used_on(given, self._stream)

    def _put_rows(self, at: int, given: Sequence[Given], rows: Sequence[int]) -> None:
        """Copy rows one request after the other; the card fetches what is there meanwhile."""
        target, host, array = self._inputs[at], self._host[at], self._arrays[at]
        end = sent = 0
        most = max(1, _SEND_BYTES * len(host) // max(1, host.nbytes))  # rows to send at once
        for one, count in zip(given, rows, strict=True):
            begin, end = end, end + count
            if isinstance(one, torch.Tensor):
                self._put(target[begin:end], one)
                sent = end
                continue
            if one.nbytes >= _THREADS_BYTES:
                host[begin:end].copy_(of_numpy(one))
            else:
                array[begin:end] = one
            if end - sent >= most:
                target[sent:end].copy_(host[sent:end], non_blocking=True)
                sent = end
        if sent < end:
            target[sent:end].copy_(host[sent:end], non_blocking=True)
        if end < len(target):  # a real row: zeros might make it fail, or be slow
            target[end:].copy_(target[:1].expand(len(target) - end, *target.shape[1:]))


def _parts(
    outputs: Sequence[Any], rows: Sequence[int], own: Callable[[Any], Any]
) -> list[list[Any]]:
    """The outputs of each request, in memory of their own."""
    if not rows:
        return [[own(output) for output in outputs]]
    ends = list(itertools.accumulate(rows))
    return [
        [own(output[end - count : end]) for output in outputs]
        for count, end in zip(rows, ends, strict=True)
    ]


def _used_on(tensor: torch.Tensor, stream: Any) -> None:
    """Keep the memory of a tensor from being given to others while a stream uses it."""
    if tensor.device.type != "cpu":
        tensor.record_stream(stream)
