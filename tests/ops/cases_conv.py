"""Rows for ops/conv.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.windows import NONE2, conv, conv_transposed, nhwc
from support.op_case import Case, K, W, numbers

F16, I32, F64 = np.float16, np.int32, np.float64


def attrs(
    mode: str,
    pad_list: Any = None,
    stride: Any = (1, 1),
    dilation: Any = (1, 1),
    group: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """What MindSpore 2 writes at a Conv2D."""
    found = {
        "pad_mode": mode,
        "stride": (1, 1, *stride),
        "dilation": (1, 1, *dilation),
        "group": group,
        "format": "NCHW",
        "pad": (0, 0, 0, 0),
        **more,
    }
    return found if pad_list is None else {**found, "pad_list": pad_list}


IMG = (2, 4, 7, 8)

CONVOLUTIONS = [
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2),
         attributes=attrs("valid", (0, 0, 0, 0)), dynamic=True),
    Case("Conv2D", [IMG, W(numbers(3, 4, 3, 2))], lambda x, w: conv(x, w, (2, 1), NONE2),
         attributes=attrs("valid", stride=(2, 1))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 2), ((1, 2), (0, 3))),
         attributes=attrs("pad", (1, 2, 0, 3), stride=(1, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), ((1, 1), (2, 2))),
         attributes=attrs("pad", pad=(1, 1, 2, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 4)], lambda x, w: conv(x, w, (2, 3), "same"),
         attributes=attrs("same", (-1, -1, -1, -1), stride=(2, 3)), dynamic=True),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (2, 2), "same"),
         attributes=attrs("same", (1, 1, 0, 1), stride=(2, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), "same"),
         attributes=attrs("same")),
    Case("Conv2D", [IMG, (6, 2, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, group=2),
         attributes=attrs("valid", group=2)),
    Case("Conv2D", [IMG, (4, 1, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, group=4),
         attributes=attrs("VALID", group=4)),
    Case("Conv2D", [IMG, (3, 4, 2, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, (3, 2)),
         attributes=attrs("valid", dilation=(3, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (2, 2), NONE2),
         attributes={"pad_mode": 2, "stride": (2, 2), "dilation": (1, 1), "group": 1}),
    Case("Conv2D", [(2, 7, 8, 4), (3, 3, 2, 4)],
         lambda x, w: nhwc(lambda x: conv(x, w.transpose(0, 3, 1, 2), (1, 1), NONE2))(x),
         attributes=attrs("valid", format="NHWC")),
    Case("Conv2D", [(2, 7, 8, 4), (3, 3, 3, 4)],
         lambda x, w: nhwc(lambda x: conv(x, w.transpose(0, 3, 1, 2), (2, 2), "same"))(x),
         attributes=attrs("same", stride=(2, 2), format="NHWC")),
    Case("Conv3D", [(1, 2, 4, 5, 6), (3, 2, 2, 3, 3)],
         lambda x, w: conv(x, w, (1, 2, 1), ((0, 1), (1, 0), (1, 2))),
         attributes={"pad_mode": "pad", "pad_list": (0, 1, 1, 0, 1, 2), "strides": (1, 1, 1, 2, 1),
                     "dilations": (1, 1, 1, 1, 1), "group": 1}),
    Case("Conv3D", [(1, 2, 4, 5, 6), (4, 1, 2, 2, 2)],
         lambda x, w: conv(x, w, (2, 2, 2), "same", group=2),
         attributes={"pad_mode": "same", "strides": (1, 1, 2, 2, 2), "group": 2}),
]  # fmt: skip

BIASES = [
    Case("BiasAdd", [(2, 3, 4, 4), (3,)], lambda x, b: x + b.reshape(3, 1, 1), {"data_format": 0},
         dynamic=True),
    Case("BiasAdd", [(2, 4, 4, 3), (3,)], np.add, {"data_format": 1}),
    Case("BiasAdd", [(2, 3), (3,)], np.add, {"data_format": 0}),
    Case("BiasAdd", [(2, 3, 4), (3,)], lambda x, b: x + b.reshape(3, 1), {"data_format": 0}),
    Case("BiasAdd", [(1, 3, 2, 2, 2), (3,)], lambda x, b: x + b.reshape(3, 1, 1, 1),
         {"data_format": 14}),
    Case("BiasAdd", [numbers(2, 3, 4, 4, dtype=F16), numbers(3, dtype=F16)],
         lambda x, b: x + b.reshape(3, 1, 1), {"data_format": 0}),
]  # fmt: skip


def close_to_half(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return conv(x.astype(np.float32), w.astype(np.float32), (1, 1), NONE2).astype(x.dtype)


WIDER = [
    Case("Conv2D", [IMG, W(numbers(3, 4, 3, 2))],
         lambda x, w: conv(x, w, (1, 1), "same", (2, 3)),
         attributes=attrs("same", (-1, -1, -1, -1), dilation=(2, 3)), dynamic=True),
    Case("Conv2D", [IMG, W(numbers(3, 4, 3, 2))],
         lambda x, w: conv(x, w, (2, 3), "same", (2, 2)),
         attributes=attrs("same", (-1, -1, -1, -1), (2, 3), (2, 2)), dynamic=True),
    Case("Conv2D", [numbers(1, 2, 5, 5, dtype=F16), numbers(3, 2, 3, 3, dtype=F16)], close_to_half,
         attributes=attrs("valid")),
    Case("Conv2D", [numbers(1, 2, 5, 5, dtype=F64), numbers(3, 2, 3, 3, dtype=F64)],
         lambda x, w: conv(x, w, (1, 1), NONE2), attributes=attrs("valid")),
    Case("Conv3D", [(1, 2, 4, 5, 6), (3, 2, 2, 2, 2)],
         lambda x, w: conv(x, w, (1, 1, 1), ((0, 0),) * 3, (1, 2, 2)),
         attributes={"pad_mode": "valid", "dilations": (1, 1, 1, 2, 2)}, dynamic=True),
    Case("DepthwiseConv2dNative", [IMG, (1, 4, 3, 3)],
         lambda x, w: conv(x, w.reshape(4, 1, 3, 3), (2, 2), "same", group=4),
         attributes={"pad_mode": "same", "stride": (1, 1, 2, 2)}),
    Case("DepthwiseConv2dNative", [IMG, W(numbers(2, 4, 3, 3))],
         lambda x, w: conv(x, w.transpose(1, 0, 2, 3).reshape(8, 1, 3, 3), (1, 1),
                           ((1, 2), (0, 1)), group=4),
         attributes={"pad_mode": "pad", "pad": (1, 2, 0, 1)}),
]  # fmt: skip


def biased(x: np.ndarray, w: np.ndarray, b: np.ndarray, *how: Any, **more: Any) -> np.ndarray:
    return conv(x, w, *how, **more) + b.reshape(-1, *[1] * (x.ndim - 2))


EXT = [
    Case("Conv1DExt", [(2, 4, 9), (3, 4, 3), (3,), K((2,)), K((1,)), K((1,)), K(1)],
         lambda x, w, b: biased(x, w, b, (2,), ((1, 1),)), dynamic=True),
    Case("Conv2DExt", [IMG, (6, 2, 3, 3), K(None), K((1, 2)), K((1, 0)), K((2, 1)), K(2)],
         lambda x, w: conv(x, w, (1, 2), ((1, 1), (0, 0)), (2, 1), 2)),
    Case("Conv2DExt", [IMG, (3, 4, 3, 3), K(None), K(1), K(0), K(1), K(1)],
         lambda x, w: conv(x, w, (1, 1), NONE2), dynamic=True),
    Case("Conv2DExt", [(4, 7, 8), (3, 4, 3, 3), (3,), K((2,)), K((1,)), K((1,)), K(1)],
         lambda x, w, b: biased(x[None], w, b, (2, 2), ((1, 1), (1, 1)))[0]),
    Case("Conv3DExt", [(1, 2, 4, 5, 6), (3, 2, 2, 2, 2), K(None), K((1,)), K((0,)), K((1,)), K(1)],
         lambda x, w: conv(x, w, (1, 1, 1), ((0, 0),) * 3)),
    Case("Conv1DPadding", [(2, 4, 9), (3, 4, 4), K(None), K((1,)), K(1), K((1,)), K(1)],
         lambda x, w: conv(x, w, (1,), ((1, 2),))),
    Case("Conv2DPadding", [IMG, (3, 4, 3, 2), (3,), K((1,)), K(1), K((2, 1)), K(1)],
         lambda x, w, b: biased(x, w, b, (1, 1), ((2, 2), (0, 1)), (2, 1)), dynamic=False),
    Case("Conv2DPadding", [IMG, (3, 4, 3, 2), K(None), K((2,)), K(2), K((1,)), K(1)],
         lambda x, w: conv(x, w, (2, 2), NONE2), dynamic=True),
    Case("Conv3DPadding", [(1, 2, 4, 5, 6), (3, 2, 3, 3, 3), K(None), K((1,)), K("same"), K((1,)),
                           K(1)],
         lambda x, w: conv(x, w, (1, 1, 1), ((1, 1),) * 3)),
    Case("Convolution", [IMG, (3, 4, 3, 3), (3,), K((1, 1)), K((1, 1)), K((1, 1)), K(False),
                         K((0, 0)), K(1)],
         lambda x, w, b: biased(x, w, b, (1, 1), ((1, 1), (1, 1)))),
    Case("Convolution", [IMG, (4, 3, 3, 3), (3,), K((2, 2)), K((1, 1)), K((1, 1)), K(True),
                         K((1, 0)), K(1)],
         lambda x, w, b: b.reshape(3, 1, 1) + conv_transposed(
             x, w, (2, 2), ((1, 1), (1, 1)), (14, 15))),
    Case("ConvolutionStr", [IMG, (3, 4, 3, 3), K(None), K((1, 1)), K(1), K((1, 1)), K(False),
                            K((0, 0)), K(1)],
         lambda x, w: conv(x, w, (1, 1), "same")),
    Case("ConvTbc", [(9, 2, 4), (3, 4, 5), (5,), K(1)],
         lambda x, w, b: biased(x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, (1,), ((1, 1),))
         .transpose(2, 0, 1)),
]  # fmt: skip

CASES = [*CONVOLUTIONS, *BIASES, *WIDER, *EXT]
