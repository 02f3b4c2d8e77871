"""Starting kernels by the driver of CUDA, in whose place are functions of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from mindspore_lite.engines.torch import kernel_launch
from mindspore_lite.engines.torch.trace_program import Kernel

CARD = torch.device("cuda:0")


class Library:
    """What the driver is asked for."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.error = 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        self.calls.append(("load", code))
        return self.error

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        self.calls.append(("function", name))
        return 0

    def cuFuncSetAttribute(self, function: Any, which: int, value: int) -> int:
        self.calls.append(("attribute", which, value))
        return 0

    def cuLaunchKernel(self, function: Any, *args: Any) -> int:
        *sizes, stream, addresses, _ = args
        kinds = (ctypes.c_int32, ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p)
        values = [kind.from_address(at).value for kind, at in zip(kinds, addresses, strict=True)]
        self.calls.append(("launch", sizes, stream.value, values))
        return 0

    def cuGetErrorString(self, error: int, text: Any) -> int:
        text._obj.value = b"no kernel image is available"
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    found = Library()
    monkeypatch.setattr(kernel_launch, "_library", lambda: found)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda at: 5, raising=False)
    kernel_launch.loaded.cache_clear()
    yield found
    kernel_launch.loaded.cache_clear()


def test_arguments_arrive_in_their_types(library: Library) -> None:
    x = torch.ones(2)
    launch = kernel_launch.loaded(Kernel(b"code", "add", 128, 1024), CARD)
    launch([4, 2, 1], "ifOO", [7, 0.5, x, None])
    sizes = [4, 2, 1, 128, 1, 1, 1024]
    assert library.calls == [
        ("load", b"code"),
        ("function", b"add"),
        ("launch", sizes, 5, [7, 0.5, x.data_ptr(), None]),
    ]


def test_the_same_code_is_loaded_once(library: Library) -> None:
    for name in ("add", "add", "other"):
        kernel_launch.loaded(Kernel(b"code", name, 32, 0), CARD)
    assert [call[0] for call in library.calls].count("load") == 2


def test_much_shared_memory_is_asked_for(library: Library) -> None:
    kernel_launch.loaded(Kernel(b"code", "add", 32, 100_000), CARD)
    assert ("attribute", 8, 100_000) in library.calls


def test_code_that_the_card_does_not_take_is_told(library: Library) -> None:
    library.error = 209
    with pytest.raises(RuntimeError, match="CUDA error: no kernel image is available"):
        kernel_launch.loaded(Kernel(b"code", "add", 32, 0), CARD)
