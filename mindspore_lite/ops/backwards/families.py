"""Imports every family, which fills the table."""

from mindspore_lite.ops.backwards import (  # noqa: F401
    activation,
    conv,
    elementwise,
    matmul,
    norm,
    pad,
    pool,
    recurrent,
    resize,
)
