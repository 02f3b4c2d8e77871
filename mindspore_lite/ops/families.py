"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    attention,
    complex,
    conv,
    elementwise,
    fourier,
    index,
    language,
    matmul,
    norm,
    quant,
    recurrent,
    reduce,
    resize,
    shape,
)
