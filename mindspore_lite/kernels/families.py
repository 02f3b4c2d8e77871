"""Imports every family, which fills the table."""

from mindspore_lite.kernels import (  # noqa: F401
    activation,
    arithmetic,
    cast,
    create,
    cumulative,
    detection,
    fourier,
    index,
    language,
    linalg,
    matmul,
    random,
    recurrent,
    scatter,
    sequence,
    shape,
    slice,
    sort,
)
