"""Image sampling, cropping, and moving pixels between space and channels."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import padded

_MODES = {"linear": "bilinear", "cubic": "bicubic"}  # which torch calls so in any number of dims


@kernel("GridSample", half="wide")
def grid_sample(
    x: torch.Tensor,
    grid: torch.Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> torch.Tensor:
    """x at the places that the grid names, from -1 to 1 along each dim."""
    grid = grid.to(x.dtype)
    return F.grid_sample(x, grid, _MODES.get(mode, mode), padding_mode, bool(align_corners))


@kernel("AffineGrid", numbers=("size",), half="wide")
def affine_grid(theta: torch.Tensor, size: list[int], *, align_corners: int = 0) -> torch.Tensor:
    """The grid of an image of this size, turned and moved by theta."""
    return F.affine_grid(theta, size, bool(align_corners))


@kernel("CenterCropPad", numbers=("shape",))
def center_crop_pad(
    x: torch.Tensor, shape: list[int], *, axes: list[int] | None = None
) -> torch.Tensor:
    """x cut or padded with zeros to a shape, its middle in the middle."""
    begins, ends = [0] * x.dim(), [0] * x.dim()
    for axis, wanted in zip(axes or range(x.dim()), shape, strict=True):
        more = wanted - x.shape[axis]
        begins[axis] = more // 2 if more > 0 else -(-more // 2)
        ends[axis] = more - begins[axis]
    return padded(x, begins, ends)


@kernel("DepthToSpace")
def depth_to_space(x: torch.Tensor, *, blocksize: int, mode: str = "DCR") -> torch.Tensor:
    """Blocks of pixels, taken from the channels."""
    batch, channels, height, width = x.shape
    rest = channels // blocksize**2
    if mode == "DCR":
        y = x.reshape(batch, blocksize, blocksize, rest, height, width).permute(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(batch, rest, blocksize, blocksize, height, width).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(batch, rest, height * blocksize, width * blocksize)


@kernel("SpaceToDepth")
def space_to_depth(x: torch.Tensor, *, blocksize: int, mode: str = "DCR") -> torch.Tensor:
    """The pixels of each block, as channels."""
    batch, channels, height, width = x.shape
    high, wide = height // blocksize, width // blocksize
    y = x.reshape(batch, channels, high, blocksize, wide, blocksize)
    y = y.permute(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.permute(0, 1, 3, 5, 2, 4)
    return y.reshape(batch, channels * blocksize**2, high, wide)
