"""Moves arrays between the host and cards.

A device is named as users name it, "gpu:0" or "ascend:0". Copies to and from the host have ended
when a function returns; copies between two places on a card are in order with what the calling
thread does with torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from mindspore_lite.core import dtypes
from mindspore_lite.engines.torch import cards
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy
from mindspore_lite.errors import InputError, ResourceError

_KINDS = {"gpu": "cuda", "ascend": "npu"}
_DEFAULT_STREAM = 1  # as DLPack numbers CUDA's


def check(device: str) -> None:
    """Raise EngineUnavailableError unless there is such a card."""
    cards.check(str(_torch_device(device)))


def zeros(shape: tuple[int, ...], dtype: np.dtype, device: str) -> torch.Tensor:
    """New memory on a card."""
    with _room(device):
        return torch.zeros(shape, dtype=_torch_type(dtype), device=_torch_device(device))


def placed(data: np.ndarray | torch.Tensor, device: str) -> torch.Tensor:
    """A copy on a card of what lies on the host or on a card."""
    found = of_numpy(data) if isinstance(data, np.ndarray) else data
    with _room(device):
        return found.to(_torch_device(device), copy=True).contiguous()


def filled(old: torch.Tensor | None, data: np.ndarray | torch.Tensor, device: str) -> torch.Tensor:
    """The data on a card: in the memory at hand where it fits, else in new memory."""
    found = of_numpy(data) if isinstance(data, np.ndarray) else data
    if old is None or old.shape != found.shape or old.dtype != found.dtype:
        return placed(found, device)
    return old.copy_(found)


def to_host(tensor: torch.Tensor) -> np.ndarray:
    """A copy on the host."""
    found: np.ndarray = to_numpy(tensor.detach().to("cpu", copy=True).contiguous())
    return found


def settle(tensor: torch.Tensor) -> None:
    """Wait for what the calling thread asked of a stream of its own, before others read a tensor.

    Work on the default stream is waited for by the session, on the card.
    """
    if tensor.device.type != "cpu" and _stream_address(tensor.device):
        getattr(torch, tensor.device.type).current_stream(tensor.device).synchronize()


def exported(tensor: torch.Tensor, **asked: Any) -> Any:
    """A tensor for another library, as torch itself exports it.

    That takes 20 microseconds, which are saved where nothing has to be waited for, because the
    library goes on where this thread's own work is done.
    """
    simply = tensor.device.type == "cuda" and asked.keys() <= {"stream", "max_version"}
    if simply and asked.get("stream") == (_stream_address(tensor.device) or _DEFAULT_STREAM):
        return torch.utils.dlpack.to_dlpack(tensor)
    return tensor.__dlpack__(**asked)


def _stream_address(device: torch.device) -> int:
    """Of the stream on which this thread's own work with torch is done; 0 is the default one."""
    if device.type == "cuda":
        return cards.stream_address(device, torch)
    module = getattr(torch, device.type)
    current = module.current_stream(device)
    return 0 if current == module.default_stream(device) else 1


def name_of(tensor: torch.Tensor) -> str:
    """The card that a tensor lies on, as users name it."""
    names = {kind: name for name, kind in _KINDS.items()}
    kind = tensor.device.type
    if kind not in names:
        raise InputError(f"a tensor on {tensor.device} cannot be used, wanted one on a card")
    return f"{names[kind]}:{tensor.device.index or 0}"


def numpy_type(tensor: torch.Tensor) -> np.dtype:
    """The element type, if tensors of this package can have it."""
    row = dtypes.BY_NAME.get(str(tensor.dtype).removeprefix("torch."))
    if row is None or "complex" in row.name:
        raise TypeError(f"Unsupported element type: {tensor.dtype}")
    return row.numpy


def from_dlpack(source: Any) -> torch.Tensor:
    """The memory of another library's array, wherever it lies, in C order."""
    found: torch.Tensor = torch.from_dlpack(source)
    return found.detach().contiguous()


def host_from_dlpack(source: Any) -> np.ndarray:
    """The same of an array of the host, for types that NumPy cannot take over."""
    found: np.ndarray = to_numpy(from_dlpack(source))
    return found


def shared_by_host(array: np.ndarray) -> torch.Tensor:
    """An array of the host as a tensor in the same memory, for types that NumPy cannot pass on."""
    return of_numpy(array)


def _torch_device(device: str) -> torch.device:
    kind, _, number = device.partition(":")
    return torch.device(_KINDS[kind], int(number))


def _torch_type(dtype: np.dtype) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.name)
    return found


@contextmanager
def _room(device: str) -> Iterator[None]:
    """Say what is missing when a card has no room."""
    try:
        yield
    except torch.OutOfMemoryError as exc:
        reason = " ".join(str(exc).split())
        raise ResourceError(
            f"there is no room for a tensor on {device!r}: {reason}; let go of other tensors or "
            "models on it"
        ) from exc
