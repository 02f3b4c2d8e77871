"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    complex,
    conv,
    elementwise,
    fourier,
    index,
    matmul,
    norm,
    recurrent,
    reduce,
    resize,
    shape,
)
