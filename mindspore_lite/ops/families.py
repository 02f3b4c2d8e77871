"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    conv,
    elementwise,
    index,
    matmul,
    norm,
    reduce,
    resize,
    scalar,
    shape,
)
