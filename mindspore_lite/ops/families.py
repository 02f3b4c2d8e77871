"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    conv,
    elementwise,
    index,
    lite_activation,
    lite_conv,
    lite_math,
    lite_norm,
    lite_quant,
    lite_recurrent,
    lite_shape,
    matmul,
    norm,
    reduce,
    resize,
    shape,
)
