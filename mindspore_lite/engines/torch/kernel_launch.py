"""Launches the kernels of a Tape (trace_program.py) on NVIDIA cards.

The driver of CUDA is called by ctypes: a machine with torch on a card has it. Code that was loaded
stays loaded, for recorded runs refer to it, and is shared by all users of the same code.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from mindspore_lite.engines.torch.cards import stream_address

if TYPE_CHECKING:
    from mindspore_lite.engines.torch.trace_program import Kernel

_MOST_SHARED = 48 << 10  # bytes that a block may have without asking
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
# letters of torch's own launcher
_TYPES = {
    "O": ctypes.c_void_p,
    "b": ctypes.c_int8,
    "h": ctypes.c_int16,
    "i": ctypes.c_int32,
    "l": ctypes.c_int64,
    "B": ctypes.c_uint8,
    "H": ctypes.c_uint16,
    "I": ctypes.c_uint32,
    "K": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}


@functools.cache
def loaded(kernel: Kernel, device: torch.device) -> Callable[[Sequence[int], str, Any], None]:
    """What starts a kernel on the stream that torch uses then: grid, types of arguments, those."""
    with torch.cuda.device(device):
        function = _function(kernel)

    def launch(grid: Sequence[int], kinds: str, args: Sequence[Any]) -> None:
        values = [_TYPES[kind](_plain(arg)) for kind, arg in zip(kinds, args, strict=True)]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        stream = ctypes.c_void_p(stream_address(device, torch))
        _check(
            _library().cuLaunchKernel(
                function, *grid, kernel.threads, 1, 1, kernel.shared, stream, addresses, None
            )
        )

    return launch


def _function(kernel: Kernel) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    library = _library()
    _check(library.cuModuleLoadData(ctypes.byref(module), kernel.code))
    name = kernel.name.encode()
    _check(library.cuModuleGetFunction(ctypes.byref(function), module, name))
    if kernel.shared > _MOST_SHARED:
        _check(library.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, kernel.shared))
    return function


def _plain(arg: Any) -> Any:
    return arg.data_ptr() if isinstance(arg, torch.Tensor) else arg


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(error: int) -> None:
    if error:
        text = ctypes.c_char_p()
        _library().cuGetErrorString(error, ctypes.byref(text))
        raise RuntimeError(f"CUDA error: {(text.value or b'unknown').decode()}")
