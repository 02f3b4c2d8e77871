"""Imports every family, which fills the table."""

from mindspore_lite.ops.backwards import (  # noqa: F401
    activation,
    compare,
    conv,
    create,
    elementwise,
    index,
    matmul,
    norm,
    pad,
    pool,
    reduce,
    resize,
    scatter,
    shape,
    slice,
    sort,
)
