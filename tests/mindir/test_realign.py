"""Weights are moved within memory of our own to addresses that kernels may load from."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
from support.mindir_builder import Net, encode

from mindspore_lite.mindir.opened import open_mindir
from mindspore_lite.mindir.read import read
from mindspore_lite.mindir.realign import ALIGNMENT, realigned

CONTENT = os.urandom(4096)


def room() -> memoryview:
    """Some bytes that begin at a multiple of the alignment."""
    held = bytearray(len(CONTENT) + ALIGNMENT)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(held)) % ALIGNMENT
    data = memoryview(held)[start : start + len(CONTENT)]
    data[:] = CONTENT
    return data


def test_a_weight_is_moved_down_and_keeps_its_bytes() -> None:
    data = room()
    assert realigned(data, {0: (70, 1070), 1: (1163, 2163)}) == {0: (64, 1064), 1: (1152, 2152)}
    assert data[64:1064] == CONTENT[70:1070]
    assert data[1152:2152] == CONTENT[1163:2163]


def test_a_weight_that_lies_well_stays() -> None:
    data = room()
    assert realigned(data, {5: (128, 300)}) == {5: (128, 300)}
    assert data == CONTENT


def test_a_weight_never_moves_over_the_one_before() -> None:
    data = room()
    assert realigned(data, {0: (64, 1000), 1: (1002, 2000)}) == {0: (64, 1000), 1: (1002, 2000)}
    assert data == CONTENT


def test_the_order_of_weights_is_that_of_the_file() -> None:
    data = room()
    assert realigned(data, {0: (1100, 2000), 1: (70, 1070)}) == {1: (64, 1064), 0: (1088, 1988)}
    assert data[64:1064] == CONTENT[70:1070]
    assert data[1088:1988] == CONTENT[1100:2000]


def test_weights_of_a_file_lie_well_and_those_of_a_caller_stay(tmp_path: Path) -> None:
    net = Net()
    arrays = [np.random.default_rng(i).normal(size=(40, 50 + i)) for i in range(5)]
    for number, array in enumerate(arrays):
        net.weight(f"a_weight_with_a_name_as_long_as_those_of_real_models_have_{number}", array)
    content = encode(net.model(net.call("ReLU", net.input("x", (2,)))))
    (tmp_path / "net.mindir").write_bytes(content)
    own = read(*open_mindir(tmp_path / "net.mindir").load(), is_own=True).graph.parameters
    callers = bytearray(content)
    kept = read(memoryview(callers)).graph.parameters
    assert callers == content
    for found in (own, kept):
        for weight, array in zip(found, arrays, strict=True):
            np.testing.assert_array_equal(weight.numpy(), array)
    assert {weight.numpy().ctypes.data % ALIGNMENT for weight in own} == {0}
