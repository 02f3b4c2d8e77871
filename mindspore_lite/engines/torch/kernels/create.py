"""Tensors made from given numbers."""

from __future__ import annotations

import math
from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type


@kernel("ConstantOfShape", numbers=("shape",))
def constant_of_shape(
    shape: list[int], *, value: torch.Tensor | None = None, device: torch.device
) -> torch.Tensor:
    """A tensor of one number."""
    if value is None:
        return torch.zeros(shape, dtype=torch.float32, device=device)
    return value.to(device).reshape(()).expand(shape).contiguous()


@kernel("Range")
def range_(start: torch.Tensor, limit: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """start, start + delta, ... before limit."""
    first, last, step = (x.reshape(()).item() for x in (start, limit, delta))
    count = max(0, math.ceil((last - first) / step))
    return first + torch.arange(count, dtype=start.dtype, device=start.device) * step


@kernel("EyeLike")
def eye_like(x: torch.Tensor, *, dtype: int | None = None, k: int = 0) -> torch.Tensor:
    """Ones on a diagonal of a matrix as large as x."""
    rows, columns = (torch.arange(size, device=x.device) for size in x.shape)
    found = rows.unsqueeze(1) + k == columns
    return found.to(x.dtype if dtype is None else torch_type(dtype))


# a0 - a1 cos(t) + a2 cos(2t), t from 0 to 2 pi
_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


def _window(weights: tuple[float, float, float]) -> Any:
    def compute(
        size: Numbers, *, periodic: int = 1, output_datatype: int = 1, device: torch.device
    ) -> torch.Tensor:
        """A window function."""
        length = int(single(size))
        steps = torch.arange(length, dtype=torch.float32, device=device)
        t = steps * (2 * math.pi / (length if periodic else max(length - 1, 1)))
        found = weights[0] - weights[1] * torch.cos(t) + weights[2] * torch.cos(2 * t)
        return found.to(torch_type(output_datatype))

    return compute


for op_type, weights in _WINDOWS.items():
    kernel(op_type, numbers=("size",))(_window(weights))


@kernel(
    "MelWeightMatrix",
    numbers=(
        "num_mel_bins",
        "dft_length",
        "sample_rate",
        "lower_edge_hertz",
        "upper_edge_hertz",
    ),
)
def mel_weight_matrix(
    num_mel_bins: Numbers,
    dft_length: Numbers,
    sample_rate: Numbers,
    lower_edge_hertz: Numbers,
    upper_edge_hertz: Numbers,
    *,
    output_datatype: int = 1,
    device: torch.device,
) -> torch.Tensor:
    """Triangles over the bins of a spectrum, their corners at equal distances on the mel scale."""
    rate, length, count = single(sample_rate), single(dft_length), single(num_mel_bins)
    edges = single(lower_edge_hertz), single(upper_edge_hertz)
    low, high = (2595 * math.log10(1 + f / 700) for f in edges)
    step = (high - low) / (count + 2)
    corners = [
        int((length + 1) * 700 * (10 ** ((low + at * step) / 2595) - 1) // rate)
        for at in range(count + 2)
    ]
    ends = torch.tensor(corners, dtype=torch.float64, device=device)
    left, top, right = ends[:-2], ends[1:-1], ends[2:]
    bins = torch.arange(length // 2 + 1, dtype=torch.float64, device=device).unsqueeze(1)
    rising = torch.where((bins >= left) & (bins <= top), (bins - left) / (top - left), 0)
    falling = torch.where((bins >= top) & (bins < right), (right - bins) / (right - top), 0)
    found = torch.where((bins >= top) & (right > top), falling, rising)
    found = torch.where((bins == top) & (left == top) & (right <= top), 1.0, found)
    return found.to(torch_type(output_datatype))
