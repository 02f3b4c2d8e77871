"""Windows of convolutions and pooling: pads and output sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from mindspore_lite.errors import UnsupportedOpError

Ints = Sequence[int]


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial dims of a tensor."""

    sizes: tuple[int, ...]  # of what they slide over
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def rank(self) -> int:
        """How many dims they have."""
        return len(self.sizes)

    @property
    def spans(self) -> list[int]:
        """How far each reaches."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def symmetric(self) -> bool:
        """Whether the pads of both ends are the same, which torch pads by itself."""
        return self.begins == self.ends and min(self.begins, default=0) >= 0

    def counts(self, ceil_mode: int = 0) -> list[int]:
        """How many there are; with `ceil_mode` the last may reach beyond the end."""
        found = []
        for at, span in enumerate(self.spans):
            stride, begin = self.strides[at], self.begins[at]
            room = self.sizes[at] + begin + self.ends[at] - span
            count = (room + stride - 1 if ceil_mode else room) // stride + 1
            if ceil_mode and (count - 1) * stride >= self.sizes[at] + begin:
                count -= 1
            found.append(count)
        return found

    def beyond(self, counts: Ints) -> list[int]:
        """How far the last of so many windows reaches beyond what is padded."""
        return [
            max(0, (n - 1) * s + span - size - b - e)
            for n, s, span, size, b, e in zip(
                counts, self.strides, self.spans, self.sizes, self.begins, self.ends, strict=True
            )
        ]


def windows(
    x: torch.Tensor,
    kernel: Ints,
    strides: Ints | None,
    dilations: Ints | None,
    pads: Ints | None,
    auto_pad: str,
) -> Windows:
    """The windows that the attributes of a node describe.

    Raises:
        UnsupportedOpError: More than three spatial dims.
    """
    rank = x.dim() - 2
    if not 1 <= rank <= 3:
        raise UnsupportedOpError(
            f"windows over {rank} spatial dims (input of shape {list(x.shape)}); "
            "the torch engine has 1 to 3"
        )
    sizes = tuple(x.shape[2:])
    steps = tuple(strides or [1] * rank)
    apart = tuple(dilations or [1] * rank)
    begins, ends = (0,) * rank, (0,) * rank
    if auto_pad.startswith("SAME"):
        total = [
            max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
            for size, k, s, d in zip(sizes, kernel, steps, apart, strict=True)
        ]
        less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        begins, ends = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
    elif auto_pad != "VALID" and pads:
        begins, ends = tuple(pads[:rank]), tuple(pads[rank:])
    return Windows(sizes, tuple(kernel), steps, apart, begins, ends)


def padded(x: torch.Tensor, begins: Ints, ends: Ints, value: float = 0) -> torch.Tensor:
    """x with more at the ends of its last dims, or with less where a number is negative."""
    if not any(begins) and not any(ends):
        return x
    pairs = [n for pair in zip(reversed(begins), reversed(ends), strict=True) for n in pair]
    return F.pad(x, pairs, value=value)
