"""Imports every family, which fills the table."""

from mindspore_lite.ops import (  # noqa: F401
    activation,
    conv,
    create,
    diag,
    elementwise,
    index,
    linalg,
    matmul,
    norm,
    pad,
    reduce,
    resize,
    scatter,
    segment,
    shape,
    slice,
    split,
)
