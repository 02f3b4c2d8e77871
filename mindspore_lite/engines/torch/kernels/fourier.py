"""Fourier transforms; complex numbers are pairs along a last axis of 2, real ones have 1."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel


@kernel("DFT", numbers=("dft_length", "axis"), half="wide")
def dft(
    x: torch.Tensor,
    dft_length: Numbers = None,
    axis: Numbers = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> torch.Tensor:
    """The discrete Fourier transform along an axis, or back; of real numbers one half is enough."""
    at, length = single(axis, -2) % x.dim(), single(dft_length)
    signal = _complex(x)
    if inverse and onesided:
        return torch.fft.irfft(signal, length, at).unsqueeze(-1)
    found = (torch.fft.ifft if inverse else torch.fft.fft)(signal, length, at)
    if onesided:
        found = found.narrow(at, 0, found.shape[at] // 2 + 1)
    return torch.view_as_real(found)


def _complex(x: torch.Tensor) -> torch.Tensor:
    """Pairs as complex numbers; real numbers as they are."""
    if x.shape[-1] == 1:
        return x.squeeze(-1)
    return torch.complex(x[..., 0], x[..., 1])


@kernel("STFT", numbers=("frame_step", "frame_length"), half="wide")
def stft(
    signal: torch.Tensor,
    frame_step: Numbers,
    window: torch.Tensor | None = None,
    frame_length: Numbers = None,
    *,
    onesided: int = 1,
) -> torch.Tensor:
    """The Fourier transforms of frames of a signal, each weighted by a window."""
    length = window.shape[0] if window is not None else single(frame_length)
    x = _complex(signal) if signal.dim() == 3 else signal
    frames = x.unfold(1, length, single(frame_step))
    if window is not None:
        frames = frames * window
    found = torch.fft.fft(frames)
    if onesided and not frames.is_complex():
        found = found[..., : length // 2 + 1]
    return torch.view_as_real(found)
