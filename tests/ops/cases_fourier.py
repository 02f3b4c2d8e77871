"""Rows for ops/fourier.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.cases_complex import complexes
from support.op_case import Case, K, numbers

NORMS = {0: "backward", 1: "forward", 2: "ortho"}
X, C = numbers(3, 6), complexes(3, 6)
C64 = np.complex64


def narrow(found: np.ndarray) -> np.ndarray:
    """NumPy transforms in double precision."""
    return found.astype(C64 if found.dtype.kind == "c" else np.float32)


def one(
    name: str, x: np.ndarray, n: Any = None, dim: int = -1, norm: Any = None, **more: Any
) -> Case:
    function = getattr(np.fft, name.lower())
    return Case(name, [x, K(n), K(dim), K(norm)],
                lambda x: narrow(function(x, n, dim, NORMS.get(norm))), **more)  # fmt: skip


def many(name: str, x: np.ndarray, s: Any = None, dim: Any = None, norm: Any = None) -> Case:
    function = getattr(np.fft, name.lower())
    return Case(name, [x, K(s), K(dim), K(norm)],
                lambda x: narrow(function(x, s, dim, NORMS.get(norm))))  # fmt: skip


def hermitian(x: np.ndarray) -> np.ndarray:
    return narrow(np.fft.hfft(np.fft.fft(x, axis=-2)))


def hermitian_back(x: np.ndarray) -> np.ndarray:
    return narrow(np.fft.ifft(np.fft.ihfft(x), axis=-2))


def sized(x: np.ndarray, wants: Any, sizes: Any = (), **init: Any) -> Case:
    order = {"signal_ndim": 1, "inverse": False, "real": False, "norm": 0, "onesided": True}
    return Case("FFTWithSize", [x], lambda x: narrow(wants(x)),
                {**order, **init, "signal_sizes": sizes})  # fmt: skip


def stft(x: np.ndarray, w: np.ndarray, hop: int) -> np.ndarray:
    size = len(w)
    frames = [x[..., at : at + size] * w for at in range(0, x.shape[-1] - size + 1, hop)]
    return narrow(np.moveaxis(np.fft.rfft(np.stack(frames)), 0, -1))


SHORT_TIME = {"n_fft": 8, "hop_length": 3, "win_length": 8, "normalized": False, "onesided": True,
              "return_complex": True}  # fmt: skip

ONE_AXIS = [
    one("FFT", X, dynamic=True), one("FFT", C, dynamic=True), one("FFT", C, 4), one("FFT", X, 9),
    one("FFT", C, dim=0), one("FFT", C, norm=2, dynamic=True), one("FFT", X, norm=1, dynamic=True),
    one("FFT", numbers(2, 3, high=5, dtype=np.int32)), one("FFT", numbers(2, 1024)),
    one("FFT", complexes(1024)), one("FFT", complexes(3, 2048), norm=2),
    one("IFFT", C, dynamic=True), one("IFFT", C, norm=1, dynamic=True), one("IFFT", X, 8, 0, 2),
    one("IFFT", complexes(2, 512), norm=2), one("RFFT", X, dynamic=True), one("RFFT", X, 5, norm=2),
    one("RFFT", numbers(7, 2, 3), dim=0), one("RFFT", numbers(2, 512)),
    one("IRFFT", complexes(3, 4)), one("IRFFT", complexes(3, 4), 7, norm=2), one("IRFFT", X, 4),
    one("HFFT", complexes(3, 4)), one("HFFT", complexes(3, 4), 5, 0, 1), one("IHFFT", X),
    Case("FFT", [complexes(2, 5, dtype=np.complex128), K(None), K(-1), K(None)], np.fft.fft),
]  # fmt: skip

MANY_AXES = [
    many("FFT2", complexes(2, 3, 4), dim=(-2, -1)), many("FFT2", X, (2, 5), (0, 1), 2),
    many("IFFT2", complexes(2, 3, 4), dim=(-2, -1)), many("RFFT2", X, dim=(-2, -1)),
    many("IRFFT2", complexes(2, 3, 4), (3, 5), (-2, -1), 1),
    many("FFTN", complexes(2, 3, 4)), many("FFTN", numbers(2, 3, 4), (2, 6), (1, 2)),
    many("FFTN", complexes(2, 3, 4), dim=(0, 2)), many("IFFTN", complexes(2, 3, 4), norm=2),
    many("RFFTN", numbers(2, 3, 4)), many("IRFFTN", complexes(2, 3, 4)),
    Case("FFTN", [numbers(2, 3, 4), K((2, 6)), K(None), K(None)],
         lambda x: narrow(np.fft.fftn(x, (2, 6), (1, 2)))),
    Case("HFFT2", [complexes(2, 3, 4), K(None), K((-2, -1)), K(None)], hermitian),
    Case("IHFFT2", [numbers(2, 3, 4), K(None), K((-2, -1)), K(None)], hermitian_back),
    Case("HFFTN", [complexes(3, 4), K(None), K(None), K(None)], hermitian),
    Case("IHFFTN", [numbers(3, 4), K(None), K(None), K(None)], hermitian_back),
    sized(C, np.fft.fft), sized(C, np.fft.ifft, inverse=True), sized(X, np.fft.rfft, real=True),
    sized(X, np.fft.fft, real=True, onesided=False),
    sized(complexes(2, 4), lambda x: np.fft.irfft(x, 7), (7,), inverse=True, real=True),
    sized(C, lambda x: np.fft.ifft(x).real, inverse=True, real=True, onesided=False),
    sized(C, lambda x: np.fft.fft2(x, norm="ortho"), signal_ndim=2, norm=2),
]  # fmt: skip


def cosine(x: np.ndarray, inverse: bool = False) -> np.ndarray:
    n = x.shape[-1]
    steps = np.arange(n)
    matrix = np.sqrt(2 / n) * np.cos(np.pi * steps[:, None] * (steps + 0.5) / n)
    matrix[0] /= np.sqrt(2)
    return (x @ (matrix if inverse else matrix.T)).astype(np.float32)


def cosine_2(x: np.ndarray, inverse: bool = False) -> np.ndarray:
    return cosine(cosine(x, inverse).swapaxes(0, 1), inverse).swapaxes(0, 1)


COSINE = [
    Case("DCT", [X, K(2), K(None), K(-1), K("ortho")], cosine),
    Case("DCT", [X, K(2), K(4), K(-1), K(2)], lambda x: cosine(x[:, :4])),
    Case("DCT", [X, K(2), K(8), K(1), K(None)], lambda x: cosine(np.pad(x, ((0, 0), (0, 2))))),
    Case("IDCT", [X, K(2), K(None), K(0), K("ortho")], lambda x: cosine(x.T, True).T),
    Case("DCTN", [X, K(2), K(None), K(None), K("ortho")], cosine_2),
    Case("IDCTN", [X, K(2), K(None), K((0, 1)), K("ortho")], lambda x: cosine_2(x, True)),
]

OTHERS = [
    Case("FFTShift", [numbers(3, 4), K(None)], np.fft.fftshift, dynamic=True),
    Case("FFTShift", [complexes(5, 4), K((0,))], lambda x: np.fft.fftshift(x, 0)),
    Case("IFFTShift", [numbers(5, 4), K((0, 1))], np.fft.ifftshift, dynamic=True),
    Case("FFTFreq", [K(5), K(0.5), K(None)], lambda: np.fft.fftfreq(5, 0.5).astype(np.float32)),
    Case("RFFTFreq", [K(5), K(1.0), K(44)], lambda: np.fft.rfftfreq(5)),
    Case("STFT", [numbers(2, 20), numbers(8)], lambda x, w: stft(x, w, 3), attributes=SHORT_TIME,
         dynamic=True),
    Case("STFT", [numbers(20), numbers(6)],
         lambda x, w: stft(x, np.pad(w, 1), 3) / np.sqrt(np.float32(8)),
         attributes={**SHORT_TIME, "win_length": 6, "normalized": True}),
    Case("STFT", [numbers(2, 20), numbers(8)],
         lambda x, w: stft(x, w, 3)[..., None].view(np.float32),
         attributes={**SHORT_TIME, "return_complex": False}),
]  # fmt: skip

CASES = [*ONE_AXIS, *MANY_AXES, *COSINE, *OTHERS]
