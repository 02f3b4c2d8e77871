"""The weights of a model on one device, made once for all shapes and sessions.

Who owns what: the store owns the tensors; modules, compiled code and captured graphs refer to them
by their addresses, so a weight never moves. What the first build needs lies in one flat buffer,
which another process can map as a whole (ipc.py); what later builds need besides lies apart.

An update stages every new value on the device first, then holds off all runs of the model (gate.py)
while the values are copied into place: runs see all old weights or all new ones. Nobody may enter
the gate who holds the store's lock, or wait for the lock inside the gate.

On the host weights are pages of a file, but for those that may change, which are copies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch

from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.gate import Gate
from mindspore_lite.engines.torch.kernels.lower import Lowered, Weight
from mindspore_lite.engines.torch.kernels.types import of_numpy
from mindspore_lite.errors import InputError

ALIGNMENT = 256  # bytes, as CUDA's own allocator has it
_STAGE_BYTES = 32 << 20  # of pinned memory, twice; guess: large enough for full speed of the bus

Place = tuple[int, tuple[int, ...]]  # where a weight begins in a buffer, and its dims in memory
Values = Mapping[Weight, torch.Tensor]  # on the host, as the model has them


class Store:
    """The weights of one model on one device; `card` None is the host."""

    def __init__(self, card: Card | None, variable: Mapping[str, np.ndarray]) -> None:
        """variable: the first values of the weights that may change."""
        self.card = card
        self.gate = Gate()
        self.last_update_ms = 0.0  # how long runs were held off on the device, for the benchmark
        self._first = dict(variable)
        self._replaced: dict[str, np.ndarray] = {}
        self._tensors: dict[Weight, torch.Tensor] = {}
        self._lock = threading.Lock()  # of the tables above
        self.flat: torch.Tensor | None = None
        self.places: dict[Weight, Place] = {}
        self.addresses: frozenset[int] = frozenset()  # memory that nobody else may be given

    @property
    def size_bytes(self) -> int:
        """What the weights take on the device."""
        return sum(tensor.nbytes for tensor in self._tensors.values())

    def adopt(self, flat: torch.Tensor, places: Mapping[Weight, Place]) -> None:
        """Use weights that another process has laid out, instead of making them."""
        self._tensors |= {weight: _part(flat, weight, *at) for weight, at in places.items()}

    def fill(self, lowered: Lowered) -> None:
        """Put its weights into a module, and into the bodies of its nodes."""
        with self._lock:
            self._add(_weights(lowered), lowered.constants)
            self._put(lowered)

    def tensors(
        self, weights: Sequence[Weight], constants: Mapping[str, torch.Tensor]
    ) -> list[torch.Tensor]:
        """Weights of the device, made if need be of the values of those that never change."""
        with self._lock:
            self._add(weights, constants)
            return [self._tensors[weight] for weight in weights]

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Let weights be those of the file but for these; on an error nothing has changed."""
        for name, array in replaced.items():
            first = self._first.get(name)
            if first is None or first.shape != array.shape or first.dtype != array.dtype:
                there = "no weight that may change" if first is None else f"{_spelled(first)} there"
                raise InputError(f"weight {name!r} is given as {_spelled(array)}, {there}")
        with self._lock:
            changed = {**{name: self._first[name] for name in self._replaced}, **replaced}
            targets = [w for w in self._tensors if w.name in changed]
            values = {w: of_numpy(changed[w.name]) for w in targets}
            if not values:
                pass
            elif self.card is None:
                with self.gate.changing():
                    _copy(values, self._tensors)
            else:
                self._overwrite(self.card, values)
            self._replaced = dict(replaced)

    # --- putting in ---

    def _add(self, weights: Iterable[Weight], constants: Mapping[str, torch.Tensor]) -> None:
        missing = dict.fromkeys(w for w in weights if w not in self._tensors)
        values = {w: self._value(w, constants) for w in missing}
        on_host = {w: v for w, v in values.items() if w.on_host or self.card is None}
        for weight, value in on_host.items():
            own = value.clone() if weight.name in self._first else value
            self._tensors[weight] = _seen(laid_out(own, weight), weight)
        values = {w: v for w, v in values.items() if w not in on_host}
        if values and self.card is not None:
            flat, places = _packed(self.card, values)
            self._tensors |= {w: _part(flat, w, *place) for w, place in places.items()}
            if self.flat is None and not any(w.name in self._first for w in places):
                self.flat, self.places = flat, places
        stored = (tensor.untyped_storage() for tensor in self._tensors.values())
        self.addresses = frozenset(storage.data_ptr() for storage in stored)

    def _value(self, weight: Weight, constants: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """What a weight is now, on the host."""
        for arrays in (self._replaced, self._first):
            if weight.name in arrays:
                return of_numpy(arrays[weight.name])
        return constants[weight.name]

    def _put(self, lowered: Lowered) -> None:
        for name, weight in lowered.weights.items():
            tensor = self._tensors[weight]
            setattr(lowered.module, name, torch.nn.Parameter(tensor, requires_grad=False))
        for body in lowered.bodies.values():
            self._put(body)

    def _overwrite(self, card: Card, values: Values) -> None:
        """Stage values on the card, then copy them into place."""
        stream = card.stream()
        with card.using(stream):
            flat, places = _packed(card, {w: v for w, v in values.items() if not w.on_host})
            begun, ended = card.event(timed=True), card.event(timed=True)
            with self.gate.changing():
                card.synchronize()  # runs that gave out tensors of the card may not have ended
                begun.record(stream)
                for weight, place in places.items():
                    there = self._tensors[weight]
                    there.copy_(_part(flat, weight, *place), non_blocking=True)
                ended.record(stream)
                _copy({w: v for w, v in values.items() if w.on_host}, self._tensors)
                ended.synchronize()
        self.last_update_ms = begun.elapsed_time(ended)


def _copy(values: Values, tensors: Mapping[Weight, torch.Tensor]) -> None:
    for weight, value in values.items():
        tensors[weight].copy_(value)


def laid_out(value: torch.Tensor, weight: Weight) -> torch.Tensor:
    """A value in the type of a weight, its dims in the order in which they lie in memory."""
    return value.to(weight.dtype).permute(_order(weight, value.dim())).contiguous()


def _seen(memory: torch.Tensor, weight: Weight) -> torch.Tensor:
    """What lies in memory, with its dims as the model has them."""
    order = _order(weight, memory.dim())
    return memory.permute([order.index(at) for at in range(len(order))])


def _order(weight: Weight, rank: int) -> list[int]:
    if weight.layout == "channels_last":
        return [0, *range(2, rank), 1]
    return [1, 0] if weight.layout == "transposed" else list(range(rank))


def _packed(card: Card, values: Values) -> tuple[torch.Tensor, dict[Weight, Place]]:
    """All values in one buffer on the card, and where each of them lies."""
    places: dict[Weight, Place] = {}
    end = 0
    for weight, value in values.items():
        dims = tuple(value.shape[at] for at in _order(weight, value.dim()))
        places[weight] = end, dims
        end += -(-value.numel() * weight.dtype.itemsize // ALIGNMENT) * ALIGNMENT
    flat = torch.empty(end, dtype=torch.uint8, device=card.device)
    stage = Stage(card, max(1, min(end, _STAGE_BYTES)))
    for weight, value in values.items():  # one at a time: each may be a copy, in another type
        memory = laid_out(value, weight).reshape(-1).view(torch.uint8)
        start = places[weight][0]
        stage.copy(memory, flat[start : start + memory.numel()])
    stage.finish()
    return flat, places


def _part(flat: torch.Tensor, weight: Weight, start: int, shape: tuple[int, ...]) -> torch.Tensor:
    """One weight in a flat buffer."""
    size = weight.dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return _seen(flat[start : start + size].view(weight.dtype).view(shape), weight)


class Stage:
    """Copies from the host to a card through pinned memory: one half is filled, one on its way."""

    def __init__(self, card: Card, size_bytes: int) -> None:
        self._card = card
        self._size = size_bytes
        self._halves = [card.pinned((size_bytes,), torch.uint8) for _ in range(2)]
        self._sent: list[Callable[[], None]] = [lambda: None] * 2  # waits for what was sent last

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy bytes; they have arrived when `finish` returns."""
        for start in range(0, source.numel(), self._size):
            self._sent[0]()
            piece = source[start : start + self._size]
            half = self._halves[0][: piece.numel()]
            half.copy_(piece)
            target[start : start + piece.numel()].copy_(half, non_blocking=True)
            event = self._card.event()
            event.record(self._card.current())
            self._sent = [self._sent[1], event.synchronize]
            self._halves.reverse()

    def finish(self) -> None:
        """Wait for all copies."""
        for wait in self._sent:
            wait()


def _weights(lowered: Lowered) -> Iterable[Weight]:
    yield from lowered.weights.values()
    for body in lowered.bodies.values():
        yield from _weights(body)


def _spelled(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"
