"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    conv,
    elementwise,
    index,
    lite_activation,
    lite_blocks,
    lite_conv,
    lite_detection,
    lite_math,
    lite_norm,
    lite_quant,
    lite_recurrent,
    lite_shape,
    matmul,
    norm,
    old_names,
    reduce,
    resize,
    scalar,
    shape,
)
