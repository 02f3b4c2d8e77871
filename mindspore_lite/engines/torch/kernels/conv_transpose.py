"""Transposed convolutions and Col2Im."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import padded
from mindspore_lite.errors import UnsupportedOpError

_SPREAD: tuple[Any, ...] = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
Ints = list[int]


@kernel("ConvTranspose", half="narrow", layouts={"w": "channels_last"})
def conv_transpose(
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """What a convolution with w would have made x of, and b added."""
    rank = x.dim() - 2
    ones = [1] * rank
    steps, apart, more = strides or ones, dilations or ones, output_padding or [0] * rank
    full = [
        (size - 1) * s + d * (k - 1) + 1
        for size, s, d, k in zip(x.shape[2:], steps, apart, w.shape[2:], strict=True)
    ]
    if auto_pad.startswith("SAME") and not output_shape:
        output_shape = [size * s for size, s in zip(x.shape[2:], steps, strict=True)]
    if output_shape:
        total = [f + m - out for f, m, out in zip(full, more, output_shape[-rank:], strict=True)]
        less, rest = [t // 2 for t in total], [t - t // 2 for t in total]
        begins, ends = (less, rest) if auto_pad == "SAME_UPPER" else (rest, less)
    elif auto_pad == "VALID" or not pads:
        begins, ends = [0] * rank, [0] * rank
    else:
        begins, ends = pads[:rank], pads[rank:]
    cut = [e - m for e, m in zip(ends, more, strict=True)]
    return spread(x, w, b, (begins, cut), steps, apart, group)


def spread(
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None,
    cuts: tuple[Sequence[int], Sequence[int]],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> torch.Tensor:
    """A transposed convolution, with so much cut off its begins and ends (or added).

    Raises:
        UnsupportedOpError: More than three spatial dims.
    """
    rank = x.dim() - 2
    if not 1 <= rank <= 3:
        raise UnsupportedOpError(
            f"a transposed convolution over {rank} spatial dims; the torch engine has 1 to 3"
        )
    compute, (begins, ends) = _SPREAD[rank - 1], cuts
    more = [begin - end for begin, end in zip(begins, ends, strict=True)]
    own = all(0 <= m < max(s, d) for m, s, d in zip(more, strides, dilations, strict=True))
    if own and min(begins) >= 0:  # torch cuts the same at both ends, and adds at the end
        return compute(x, w, b, strides, begins, more, group, dilations)
    y = compute(x, w, None, strides, [0] * rank, [0] * rank, group, dilations)
    y = padded(y, [-begin for begin in begins], [-end for end in ends])
    return y if b is None else y + b.reshape([-1] + [1] * rank)


@kernel("Col2Im", numbers=("image_shape", "block_shape"))
def col2im(
    x: torch.Tensor,
    image_shape: Ints,
    block_shape: Ints,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """Blocks in columns, added where they lie in an image: each is spread by a kernel."""
    rank = len(image_shape)
    steps, apart = strides or [1] * rank, dilations or [1] * rank
    edges = pads or [0] * (2 * rank)
    spans = [d * (k - 1) + 1 for k, d in zip(block_shape, apart, strict=True)]
    room = [i + b + e for i, b, e in zip(image_shape, edges, edges[rank:], strict=False)]
    counts = [(r - span) // s + 1 for r, span, s in zip(room, spans, steps, strict=True)]
    block = math.prod(block_shape)
    channels = x.shape[1] // block
    kernel = torch.eye(block, dtype=x.dtype, device=x.device).reshape(block, 1, *block_shape)
    kernel = kernel.repeat(channels, *[1] * (rank + 1))
    reached = [(n - 1) * s + span for n, s, span in zip(counts, steps, spans, strict=True)]
    ends = [e - (r - got) for e, r, got in zip(edges[rank:], room, reached, strict=True)]
    columns = x.reshape(x.shape[0], x.shape[1], *counts)
    return spread(columns, kernel, None, (edges[:rank], ends), steps, apart, channels)
