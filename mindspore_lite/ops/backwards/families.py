"""Imports every family, which fills the table."""

from mindspore_lite.ops.backwards import (  # noqa: F401
    activation,
    compare,
    conv,
    elementwise,
    index,
    matmul,
    norm,
    pad,
    pool,
    reduce,
    resize,
    shape,
    slice,
)
