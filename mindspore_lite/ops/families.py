"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    adaptive_pool,
    conv,
    conv_transpose,
    deformable,
    detection,
    elementwise,
    image,
    index,
    matmul,
    norm,
    patches,
    pool,
    reduce,
    resize,
    shape,
)
