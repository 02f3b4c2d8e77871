"""Rows for ops/pool.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ops.windows import NONE2, distinct, nhwc, pool, with_argmax
from support.op_case import Case, K, numbers

IMG = (2, 4, 7, 8)


def pooling(kernel: Any, strides: Any, mode: str, fmt: str = "NCHW") -> dict[str, Any]:
    return {"kernel_size": kernel, "strides": strides, "pad_mode": mode, "format": fmt}


def avg(kernel: Any, strides: Any, mode: int, fmt: int = 0) -> dict[str, Any]:
    return {"kernel_size": kernel, "strides": strides, "pad_mode": mode, "data_format": fmt}


POOLS = [
    Case("MaxPool", [IMG], lambda x: pool(x, (2, 3), (2, 1), NONE2),
         attributes=pooling((1, 1, 2, 3), (1, 1, 2, 1), "VALID"), dynamic=True),
    Case("MaxPool", [IMG], lambda x: pool(x, (3, 3), (2, 2), "same"),
         attributes=pooling((1, 1, 3, 3), (1, 1, 2, 2), "SAME"), dynamic=True),
    Case("MaxPool", [(2, 7, 8, 4)], nhwc(lambda x: pool(x, (3, 2), (2, 2), NONE2)),
         attributes=pooling((1, 3, 2, 1), (1, 2, 2, 1), "VALID", "NHWC")),
    Case("AvgPool", [IMG], lambda x: pool(x, (2, 3), (2, 1), NONE2, "mean"),
         avg((2, 3), (2, 1), 2), dynamic=True),
    Case("AvgPool", [IMG], lambda x: pool(x, (3, 3), (2, 2), "same", "mean"),
         avg((3, 3), (2, 2), 1)),
    Case("AvgPool", [(2, 7, 8, 4)], nhwc(lambda x: pool(x, (3, 2), (2, 2), "same", "mean")),
         avg((3, 2), (2, 2), 1, 1)),
    Case("AvgPool", [IMG], lambda x: pool(x, (2, 2), (2, 2), NONE2, "mean"),  # old files: 4 sizes
         attributes=pooling((1, 1, 2, 2), (1, 1, 2, 2), "VALID")),
]  # fmt: skip


POOLS_3D = [
    Case("MaxPool3DWithArgmax", [distinct(2, 3, 1, 6, 7)],
         lambda x: with_argmax(x, (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (1, 1))),
         attributes={"ksize": (1, 3, 3), "strides": (1, 2, 2), "pads": (0, 1, 1),
                     "dilation": (1, 1, 1), "ceil_mode": False}),
    Case("MaxPool3DWithArgmax", [distinct(1, 2, 3, 4, 6)],
         lambda x: with_argmax(x, (2, 2, 2), (1, 2, 3), ((0, 0),) * 3, dilation=(1, 2, 1))[0],
         attributes={"ksize": (2, 2, 2), "strides": (1, 2, 3), "dilation": (1, 2, 1)}, pick=0),
    Case("MaxPoolWithArgmaxV2", [distinct(2, 3, 6, 7)],
         lambda x: with_argmax(x, (3, 2), (2, 2), ((1, 1), (0, 0))),
         attributes={"kernel_size": (1, 1, 3, 2), "strides": (1, 1, 2, 2), "pads": (1, 1, 1, 0)}),
    Case("MaxPoolWithArgmaxV2", [distinct(2, 3, 6, 7)],
         lambda x: with_argmax(x, (2, 2), (2, 2), NONE2, ceil=True)[0],
         attributes={"kernel_size": (2, 2), "ceil_mode": True}, pick=0),
    Case("AvgPool3D", [(1, 2, 4, 5, 6)],
         lambda x: pool(x, (2, 2, 3), (2, 1, 1), ((0, 0),) * 3, "mean"),
         attributes={"kernel_size": (1, 1, 2, 2, 3), "strides": (1, 1, 2, 1, 1),
                     "pad_mode": "VALID"}),
    Case("AvgPool3D", [(1, 2, 4, 5, 6)],
         lambda x: pool(x, (2, 2, 2), (2, 2, 2), ((0, 1), (1, 0), (1, 1)), "mean0"),
         attributes={"kernel_size": (1, 1, 2, 2, 2), "strides": (1, 1, 2, 2, 2), "pad_mode": "PAD",
                     "pad_list": (0, 1, 1, 0, 1, 1), "count_include_pad": True}),
    Case("AvgPool3D", [(1, 2, 1, 5, 6)],
         lambda x: pool(x, (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (1, 1)), "mean"),
         attributes={"kernel_size": (1, 1, 1, 3, 3), "strides": (1, 1, 1, 2, 2),
                     "pad_mode": "CALCULATED", "pad_list": (0, 0, 1, 1, 1, 1),
                     "count_include_pad": False}),
]  # fmt: skip

SPACE = (1, 2, 4, 5, 6)
ONES = ((1, 1), (1, 1))


def five(kernel: Any, strides: Any, mode: str, **more: Any) -> dict[str, Any]:
    return {"kernel_size": (1, 1, *kernel), "strides": (1, 1, *strides), "pad_mode": mode, **more}


WIDER = [
    Case("MaxPool", [distinct(1, 2, 5, 6).astype(np.int32)],
         lambda x: pool(x.astype(np.float64), (2, 2), (2, 2), NONE2).astype(np.int32),
         attributes=pooling((1, 1, 2, 2), (1, 1, 2, 2), "VALID")),
    Case("MaxPool", [distinct(1, 2, 5, 6).astype(np.float16)],
         lambda x: pool(x, (2, 2), (2, 2), "same"),
         attributes=pooling((1, 1, 2, 2), (1, 1, 2, 2), "SAME")),
    Case("MaxPoolV1", [IMG], lambda x: pool(x, (2, 3), (2, 1), NONE2),
         attributes=pooling((1, 1, 2, 3), (1, 1, 2, 1), "VALID")),
    Case("AvgPoolV1", [IMG], lambda x: pool(x, (3, 3), (2, 2), "same", "mean"),
         attributes=pooling((1, 1, 3, 3), (1, 1, 2, 2), "SAME"), dynamic=True),
    Case("AvgPool", [numbers(1, 2, 5, 6, dtype=np.float64)],
         lambda x: pool(x, (2, 2), (2, 2), NONE2, "mean"), avg((2, 2), (2, 2), 2)),
    Case("MaxPool3D", [SPACE], lambda x: pool(x, (2, 2, 3), (1, 2, 2), ((0, 0),) * 3),
         attributes=five((2, 2, 3), (1, 2, 2), "VALID"), dynamic=True),
    Case("MaxPool3D", [SPACE], lambda x: pool(x, (3, 3, 3), (2, 2, 2), "same"),
         attributes=five((3, 3, 3), (2, 2, 2), "SAME", pad_list=(0,) * 6)),
    Case("MaxPool3D", [SPACE], lambda x: pool(x, (3, 3, 3), (2, 2, 2), ((1, 1),) * 3, ceil=True),
         attributes=five((3, 3, 3), (2, 2, 2), "CALCULATED", pad_list=(1,) * 6, ceil_mode=1)),
    Case("AvgPool3D", [SPACE], lambda x: pool(x, (3, 3, 3), (2, 2, 2), "same", "mean"),
         attributes=five((3, 3, 3), (2, 2, 2), "SAME", count_include_pad=False)),
    Case("AvgPool3D", [SPACE],
         lambda x: pool(x, (2, 2, 2), (1, 1, 1), ((1, 1),) * 3, "mean0") * 8 / 5,
         attributes=five((2, 2, 2), (1, 1, 1), "PAD", pad_list=(1,) * 6, divisor_override=5)),
    Case("AvgPool3D", [SPACE],
         lambda x: pool(x, (3, 3, 3), (2, 2, 2), ((0, 0),) * 3, "mean", ceil=True),
         attributes=five((3, 3, 3), (2, 2, 2), "PAD", ceil_mode=True, count_include_pad=False)),
]  # fmt: skip

SYMMETRIC = [
    Case("AvgPool1D", [(2, 3, 9), K((3,)), K((2,)), K((1,)), K(False), K(True)],
         lambda x: pool(x, (3,), (2,), ((1, 1),), "mean0"), dynamic=True),
    Case("AvgPool1D", [(3, 9), K((3,)), K(None), K((1,)), K(True), K(False)],
         lambda x: pool(x[None], (3,), (3,), ((1, 1),), "mean", ceil=True)[0]),
    Case("AvgPool2D", [IMG, K((3, 2)), K((2, 1)), K((1, 1)), K(False), K(False), K(None)],
         lambda x: pool(x, (3, 2), (2, 1), ONES, "mean"), dynamic=True),
    Case("AvgPool2D", [IMG, K((3,)), K((2,)), K((1,)), K(False), K(True), K(4)],
         lambda x: pool(x, (3, 3), (2, 2), ONES, "mean0") * 9 / 4),
    Case("AvgPool3DExt", [SPACE, K((2,)), K(()), K((0,)), K(False), K(True), K(None)],
         lambda x: pool(x, (2, 2, 2), (2, 2, 2), ((0, 0),) * 3, "mean")),
]  # fmt: skip


def window(kernel: Any, strides: Any, pads: Any, ceil: bool = False) -> dict[str, Any]:
    found = {"kernel_size": kernel, "strides": strides, "pads": pads, "dilation": (1, 1)}
    return {**found, "ceil_mode": ceil, "argmax_type": 35}


def with_int32(*args: Any, **more: Any) -> Any:
    y, index = with_argmax(*args, **more)
    return y, index.astype(np.int32)


INDICES = [
    Case("MaxPoolWithIndices", [distinct(2, 3, 6, 7)],
         lambda x: with_argmax(x, (3, 2), (2, 2), ((1, 1), (0, 0))),
         window((3, 2), (2, 2), (1, 0)), dynamic=True),
    Case("MaxPoolWithIndices", [distinct(3, 6, 7)],
         lambda x: tuple(v[0] for v in with_argmax(x[None], (2, 2), (2, 2), NONE2)),
         window((2, 2), None, 0)),
    Case("MaxPoolWithMask", [distinct(2, 3, 6, 7)], lambda x: pool(x, (3, 3), (2, 2), ONES),
         window((3, 3), (2, 2), (1, 1)), pick=0),
    Case("MaxPoolWithArgmaxV2", [distinct(2, 3, 6, 7)],
         lambda x: with_int32(x, (2, 2), (2, 2), NONE2),
         attributes={"kernel_size": (1, 1, 2, 2), "argmax_type": 3}),
    Case("MaxPool3DWithArgmax", [distinct(1, 2, 3, 4, 6)],
         lambda x: with_int32(x, (2, 2, 2), (1, 2, 3), ((0, 0),) * 3),
         attributes={"ksize": (2, 2, 2), "strides": (1, 2, 3), "argmax_type": "int32"},
         dynamic=True),
    Case("MaxPoolWithArgmax", [distinct(2, 3, 6, 7)],
         lambda x: with_int32(x, (3, 3), (2, 2), "same"),
         attributes=pooling((1, 1, 3, 3), (1, 1, 2, 2), "SAME")),
]  # fmt: skip


def unpooled(x: np.ndarray, index: np.ndarray, size: Any) -> np.ndarray:
    y = np.zeros((*x.shape[:2], math.prod(size)), x.dtype)
    for n, c in np.ndindex(*x.shape[:2]):
        y[n, c, index[n, c].reshape(-1)] = x[n, c].reshape(-1)
    return y.reshape(*x.shape[:2], *size)


PLACES = np.array([[[[1, 3], [8, 14]], [[0, 2], [9, 15]]]])
UNPOOLS = [
    Case("MaxUnpool2D", [(1, 2, 2, 2), PLACES], lambda x, i: unpooled(x, i, (4, 4)),
         attributes={"ksize": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pads": (1, 1, 0, 0),
                     "output_shape": ()}, dynamic=True),
    Case("MaxUnpool2D", [(1, 2, 2, 2), PLACES.astype(np.int32)],
         lambda x, i: unpooled(x, i, (5, 4)),
         attributes={"ksize": (1, 1, 2, 2), "strides": (1, 1, 2, 2),
                     "output_shape": (1, 2, 5, 4)}),
    Case("MaxUnpool3D", [(1, 2, 1, 2, 2), PLACES[:, :, None]],
         lambda x, i: unpooled(x, i, (2, 3, 3)),
         attributes={"ksize": (1, 1, 2, 3, 3), "strides": (1, 1, 2, 2, 2),
                     "pads": (0, 0, 0, 1, 1)}),
    Case("MaxUnpool2DExt", [(1, 2, 2, 2), PLACES, K((2,)), K(None), K((0,)), K(None)],
         lambda x, i: unpooled(x, i, (4, 4))),
    Case("MaxUnpool2DExt", [(2, 2, 2), PLACES[0], K((2, 2)), K((2, 2)), K((0, 0)), K((5, 5))],
         lambda x, i: unpooled(x[None], i[None], (5, 5))[0]),
]  # fmt: skip

CASES = [*POOLS, *POOLS_3D, *WIDER, *SYMMETRIC, *INDICES, *UNPOOLS]
