"""Shares the weights on a card with other processes.

CUDA lends an allocation to another process by a handle. torch wraps that: the storage that it makes
of a handle counts itself in a piece of shared memory, and the owner's memory is not used for
anything else before the count is zero, even if the owner is done with it. So every borrower needs
an export of its own. The functions are private to torch, and there are no others.

The bytes are JSON and hold no code: the handle, and where each weight lies.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.kernels.lower import Weight
from mindspore_lite.engines.torch.store import Place, Store
from mindspore_lite.errors import EngineError

_BINARY = ("handle", "counter", "event")  # fields of a handle that are bytes


def exported(store: Store) -> bytes:
    """What one other process needs to map the weights; b"" where there are none on a card."""
    if store.flat is None or store.card is None:
        return b""
    _, handle, size, offset, counter, counter_at, event, waits = (
        store.flat.untyped_storage()._share_cuda_()
    )
    body = {
        "process": os.getpid(),
        "card": store.card.identity(),
        "handle": handle.hex(),
        "size": size,
        "offset": offset,
        "counter": counter.hex(),
        "counter_at": counter_at,
        "event": event.hex(),
        "waits": waits,
        "weights": [
            [w.name, str(w.dtype).removeprefix("torch."), w.layout, start, list(dims)]
            for w, (start, dims) in store.places.items()
        ],
    }
    return json.dumps(body).encode()


def adopt(store: Store, data: bytes) -> None:
    """Let a store use the weights that another process exported.

    Raises:
        EngineError: They lie on another card, or make no sense.
    """
    card = store.card
    assert card is not None
    try:
        body = read_json(data)
        places = dict(_place(row) for row in body["weights"])
        binary = {name: bytes.fromhex(body[name]) for name in _BINARY}
        numbers = {name: int(body[name]) for name in ("size", "offset", "counter_at")}
        there, waits = str(body["card"]), bool(body["waits"])
        process = int(body["process"])
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise EngineError(
            f"the weights that another process shares cannot be understood ({exc}); both need the "
            "same version of mslite"
        ) from exc
    _check_inside(places, numbers["size"])
    if there != card.identity():
        raise EngineError(
            f"the shared weights lie on another card ({there}) than device {str(card.device)!r} of "
            f"this process ({card.identity()}); is CUDA_VISIBLE_DEVICES different in both?"
        )
    if process == os.getpid():  # CUDA maps nothing twice into one process: it gets a copy
        torch.UntypedStorage._release_ipc_counter(
            binary["counter"], numbers["counter_at"], device=card.device
        )
        return
    store.adopt(_mapped(card, binary, numbers, waits), places)


def _place(row: Any) -> tuple[Weight, Place]:
    name, dtype, layout, start, dims = row
    kind = getattr(torch, str(dtype), None)
    if not isinstance(kind, torch.dtype) or layout not in ("", "channels_last", "transposed"):
        raise ValueError(f"weight {name!r} is of {dtype!r}, laid out {layout!r}")
    return Weight(str(name), kind, layout), (int(start), tuple(int(d) for d in dims))


def _check_inside(places: dict[Weight, Place], size: int) -> None:
    for weight, (start, dims) in places.items():
        end = start + weight.dtype.itemsize * int(torch.Size(dims).numel())
        if start < 0 or min(dims, default=0) < 0 or end > size:
            raise EngineError(f"shared weight {weight.name!r} does not lie where it is said to")


def _mapped(
    card: Card, binary: dict[str, bytes], numbers: dict[str, int], waits: bool
) -> torch.Tensor:
    try:
        torch.cuda.init()
        storage = torch.UntypedStorage._new_shared_cuda(
            card.device.index,
            binary["handle"],
            numbers["size"],
            numbers["offset"],
            binary["counter"],
            numbers["counter_at"],
            binary["event"],
            waits,
        )
    except Exception as exc:  # torch raises anything
        raise EngineError(
            f"the weights that another process shares cannot be mapped from the card ({exc}); "
            "containers need a common IPC namespace, and the driver must allow sharing"
        ) from exc
    return torch.empty(0, dtype=torch.uint8, device=card.device).set_(storage)
