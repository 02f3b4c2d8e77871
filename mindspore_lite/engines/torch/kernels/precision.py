"""Casts between float32 and half precision."""

from __future__ import annotations

import torch


def narrow(x: torch.Tensor, half: torch.dtype) -> torch.Tensor:
    """float32 as a half precision."""
    return x.to(half)


def widen(x: torch.Tensor) -> torch.Tensor:
    """A half precision as float32."""
    return x.to(torch.float32)
