"""Maps precision names of a Context to torch's half types.

Whether float32 products on NVIDIA cards may round their operands to 10 bits (TF32) is a switch of
the whole process in torch. It is set while a model is lowered, compiled and captured, and put back:
captured kernels keep what they were captured with. Graphs that cannot be captured run with whatever
the process has set.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# of a context, or of Ascend's settings; enforce_origin is as the model says
HALVES: dict[str, torch.dtype | None] = {
    "enforce_fp32": None,
    "preferred_fp32": None,
    "enforce_origin": None,
    "preferred_fp16": torch.float16,
    "enforce_fp16": torch.float16,
    "preferred_optimal": torch.float16,
    "preferred_bf16": torch.bfloat16,
}


def half_of(precision: str) -> torch.dtype | None:
    """The type in which products are computed instead of float32."""
    if precision not in HALVES:
        raise ValueError(f"precision is {precision!r}, wanted one of {', '.join(HALVES)}")
    return HALVES[precision]


@contextmanager
def switched(allow_tf32: bool, benchmark: bool) -> Iterator[None]:
    """Set torch's switches for the block, in which no other thread of ours may set them.

    benchmark: let cuDNN measure its convolutions when they are first met.
    """
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.fp32_precision, cudnn.allow_tf32
    measured = cudnn.benchmark
    words = ("high", "tf32") if allow_tf32 else ("highest", "ieee")
    cudnn.benchmark = benchmark
    _set(*words, allow_tf32)
    try:
        yield
    finally:
        _set(*before)
        cudnn.benchmark = measured


def _set(matmul: str, cudnn: str, allowed: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are two ways to say it, of which both count
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.fp32_precision = cudnn  # read by the compiler alone
        torch.backends.cudnn.allow_tf32 = allowed
