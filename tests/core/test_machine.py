"""machine.py: the processor is named, and freed memory goes back."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from mindspore_lite.core import machine

MIB = 2**20


def own_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_malloc_kept_is_returned() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pieces = [libc.malloc(64 * 1024) for _ in range(2048)]  # too small for pages of their own
    for piece in pieces:
        ctypes.memset(piece, 1, 64 * 1024)
    for piece in pieces[:-1]:  # the last one keeps the heap from shrinking by itself
        libc.free(piece)
    before = own_bytes()
    machine.trim_heap()
    assert own_bytes() < before - 64 * MIB
    libc.free(pieces[-1])


def test_a_c_library_without_it_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    machine.trim_heap()


def test_the_processor_is_named_where_the_kernel_names_it(tmp_path: Path) -> None:
    assert machine.cpu_name(tmp_path / "nowhere")  # the architecture
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Fast CPU\nflags : avx\n")
    assert machine.cpu_name(tmp_path) == "Fast CPU"
