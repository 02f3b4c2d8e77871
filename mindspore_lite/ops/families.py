"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    arithmetic,
    bessel,
    compare,
    conv,
    cumulative,
    elementwise,
    index,
    inplace,
    loss,
    matmul,
    norm,
    random,
    reduce,
    resize,
    shape,
    sort,
    special,
)
