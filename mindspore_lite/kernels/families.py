"""Imports every family, which fills the table."""

from mindspore_lite.kernels import (  # noqa: F401
    activation,
    arithmetic,
    matmul,
    shape,
)
