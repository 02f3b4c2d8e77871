"""Imports every family, which fills the table."""

from mindspore_lite.ops.to_mindir import (  # noqa: F401
    activation,
    compare,
    conv,
    create,
    elementwise,
    image,
    index,
    loss,
    matmul,
    norm,
    pad,
    patches,
    pool,
    recurrent,
    reduce,
    resize,
    scatter,
    shape,
    slice,
    sort,
)
