"""Rows for ops/conv_transpose.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.windows import conv_transposed
from support.op_case import Case, K, S, T, W, numbers

X, WEIGHT = (2, 3, 4, 5), W(numbers(3, 4, 3, 3))
NONE2, NONE3 = ((0, 0),) * 2, ((0, 0),) * 3


def attrs(mode: str, pads: Any = (0, 0, 0, 0), stride: Any = 1, **more: Any) -> dict[str, Any]:
    """What MindSpore 2 writes at a Conv2DTranspose."""
    four = stride if isinstance(stride, tuple) else (1, 1, stride, stride)
    found = {"stride": four, "dilation": (1, 1, 1, 1), "group": 1}
    return {**found, "pad_mode": mode, "pad_list": pads, "format": "NCHW", **more}


def sizes(*numbers: int) -> T:
    """A size of which height and width are known only at run time."""
    return T(*(K(n) if i < 2 else S(n) for i, n in enumerate(numbers)))


TWO = [
    Case("Conv2DTranspose", [X, WEIGHT, K((2, 4, 6, 7))],
         lambda x, w: conv_transposed(x, w, (1, 1), NONE2), attributes=attrs("VALID")),
    Case("Conv2DTranspose", [X, WEIGHT, K((2, 4, 7, 9))],
         lambda x, w: conv_transposed(x, w, (2, 2), ((1, 1), (1, 1))),
         attributes=attrs("PAD", (1, 1, 1, 1), 2), dynamic=True),
    Case("Conv2DTranspose", [X, WEIGHT, K((2, 4, 8, 9))],  # a row more: output_padding
         lambda x, w: conv_transposed(x, w, (2, 2), ((1, 0), (1, 1)), (8, 9)),
         attributes=attrs("PAD", (1, 1, 1, 1), 2), dynamic=True),
    Case("Conv2DTranspose", [X, WEIGHT, K((2, 4, 8, 10))],
         lambda x, w: conv_transposed(x, w, (2, 2), ((0, 1), (0, 1))),
         attributes=attrs("SAME", (0, 1, 0, 1), 2), dynamic=True),
    Case("Conv2DBackpropInput", [X, W(numbers(3, 4, 2, 2)), K((2, 4, 12, 15))],
         lambda x, w: conv_transposed(x, w, (3, 3), NONE2, (12, 15)),
         attributes=attrs("SAME", (0, 0, 0, 0), 3)),
    Case("Conv2DBackpropInput", [X, WEIGHT, sizes(2, 4, 8, 10)],
         lambda x, w, _: conv_transposed(x, w, (2, 2), ((0, 1), (0, 1))),
         attributes=attrs("SAME", (0, 1, 0, 1), 2), dynamic=True),
    Case("Conv2DBackpropInput", [X, WEIGHT, sizes(2, 4, 10, 12)],
         lambda x, w, _: conv_transposed(x, w, (2, 2), NONE2, (10, 12)),
         attributes=attrs("VALID", stride=2), dynamic=True),
    Case("Conv2DTranspose", [X, WEIGHT, sizes(2, 4, 8, 9)],
         lambda x, w, _: conv_transposed(x, w, (2, 2), ((1, 0), (1, 1)), (8, 9)),
         attributes=attrs("PAD", (1, 1, 1, 1), 2), dynamic=True),
    Case("Conv2DTranspose", [(2, 4, 4, 5), W(numbers(4, 3, 3, 3)), K((2, 6, 6, 7))],
         lambda x, w: conv_transposed(x, w, (1, 1), NONE2, group=2),
         attributes=attrs("VALID", group=2)),
    Case("Conv2DTranspose", [X, WEIGHT, K((2, 4, 8, 9))],
         lambda x, w: conv_transposed(x, w, (1, 1), NONE2, dilation=(2, 2)),
         attributes=attrs("VALID", dilation=(1, 1, 2, 2))),
    Case("Conv2DTranspose", [(2, 4, 5, 3), W(numbers(3, 3, 2, 4)), K((2, 9, 6, 4))],
         lambda x, w: conv_transposed(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2), (2, 1),
                                      NONE2).transpose(0, 2, 3, 1),
         attributes=attrs("VALID", format="NHWC", stride=(1, 2, 1, 1))),
    Case("Conv2DTranspose", [numbers(1, 2, 3, 3, dtype=np.float64),
                             W(numbers(2, 3, 2, 2, dtype=np.float64)), K((1, 3, 4, 4))],
         lambda x, w: conv_transposed(x, w, (1, 1), NONE2), attributes=attrs("VALID")),
]  # fmt: skip

THREE = [
    Case("Conv3DTranspose", [(1, 2, 3, 4, 3), W(numbers(2, 3, 2, 2, 2))],
         lambda x, w: conv_transposed(x, w, (1, 2, 1), NONE3),
         attributes={"pad_mode": "valid", "strides": (1, 1, 1, 2, 1)}, dynamic=True),
    Case("Conv3DTranspose", [(1, 2, 3, 4, 3), W(numbers(2, 3, 3, 3, 3))],
         lambda x, w: conv_transposed(x, w, (2, 2, 2), ((1, 0), (0, 0), (1, 1)), (6, 9, 5)),
         attributes={"pad_mode": "pad", "pad_list": (1, 1, 0, 0, 1, 1), "strides": (1, 1, 2, 2, 2),
                     "output_padding": (0, 0, 1, 0, 0)}),
    Case("ConvTranspose2D", [X, (3, 4, 3, 3), (4,), K((2,)), K((1,)), K((1,)), K(1), K((1,))],
         lambda x, w, b: conv_transposed(x, w, (2, 2), ((1, 0), (1, 0)),
                                         (8, 10)) + b.reshape(4, 1, 1)),
    Case("ConvTranspose2D", [(3, 4, 5), (3, 2, 3, 3), K(None), K(1), K(0), K(0), K(1), K(1)],
         lambda x, w: conv_transposed(x[None], w, (1, 1), NONE2)[0]),
]  # fmt: skip

CASES = [*TWO, *THREE]
