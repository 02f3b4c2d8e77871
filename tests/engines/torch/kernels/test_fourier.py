"""engines/torch/kernels/fourier.py, against ONNX Runtime, and create.py's windows."""

from __future__ import annotations

import numpy as np
import pytest
from support.torch_nodes import assert_like_onnxruntime

SIGNAL = np.random.default_rng(1).normal(size=(2, 12, 3, 2)).astype(np.float32)


@pytest.mark.parametrize("length", [None, 8, 15])
@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_signals_are_cut_or_filled_to_a_length(length: int | None, axis: int, inverse: int) -> None:
    given = None if length is None else np.array(length)
    assert_like_onnxruntime("DFT", SIGNAL, given, np.array(axis), inverse=inverse)


def test_one_half_is_enough_for_real_signals() -> None:
    real = SIGNAL[..., :1]
    assert_like_onnxruntime("DFT", real, None, np.array(1), onesided=1)
    assert_like_onnxruntime("DFT", real, np.array(9), np.array(1))


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [True, False])
def test_frames_of_a_signal_are_transformed(onesided: int, window: bool) -> None:
    signal = SIGNAL[:, :, 0, :1]
    weights = np.hanning(6).astype(np.float32) if window else None
    length = None if window else np.array(6)
    assert_like_onnxruntime("STFT", signal, np.array(2), weights, length, onesided=onesided)


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_are_what_they_are_called(op_type: str, periodic: int) -> None:
    assert_like_onnxruntime(op_type, np.array(10), periodic=periodic)
