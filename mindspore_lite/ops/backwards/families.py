"""Imports every family, which fills the table."""

from mindspore_lite.ops.backwards import (  # noqa: F401
    activation,
    conv,
    elementwise,
    image,
    loss,
    matmul,
    norm,
    pad,
    patches,
    pool,
    recurrent,
    resize,
)
