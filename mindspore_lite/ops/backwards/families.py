"""Imports every family, which fills the table."""

from mindspore_lite.ops.backwards import (  # noqa: F401
    compare,
    elementwise,
    index,
    matmul,
    reduce,
    shape,
    slice,
)
