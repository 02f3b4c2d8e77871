"""Imports every family, which fills the table."""

from mindspore_lite.kernels import (  # noqa: F401
    activation,
    arithmetic,
    attention,
    compare,
    conv,
    conv_transpose,
    deformable,
    elementwise,
    image,
    loss,
    matmul,
    norm,
    pad,
    pool,
    quant,
    reduce,
    resize,
    shape,
)
