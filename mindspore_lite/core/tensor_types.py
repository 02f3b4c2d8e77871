"""DataType and Format: what the public API says of a tensor besides its name and shape."""

from __future__ import annotations

from enum import Enum


class DataType(Enum):
    """The type of the elements of a tensor; BFLOAT16 is an addition of mslite.

    Examples:
        >>> from mindspore_lite.tensor import DataType
        >>> print(DataType.FLOAT32)
        DataType.FLOAT32
    """

    UNKNOWN = 0
    BOOL = 30
    INT8 = 32
    INT16 = 33
    INT32 = 34
    INT64 = 35
    UINT8 = 37
    UINT16 = 38
    UINT32 = 39
    UINT64 = 40
    FLOAT16 = 42
    FLOAT32 = 43
    FLOAT64 = 44
    BFLOAT16 = 45
    INVALID = 2147483647


class Format(Enum):
    """What the dims of a tensor stand for; kept with the data and never interpreted.

    Examples:
        >>> from mindspore_lite.tensor import Format
        >>> print(Format.NHWC)
        Format.NHWC
    """

    DEFAULT = -1
    NCHW = 0
    NHWC = 1
    NHWC4 = 2
    HWKC = 3
    HWCK = 4
    KCHW = 5
    CKHW = 6
    KHWC = 7
    CHWK = 8
    HW = 9
    HW4 = 10
    NC = 11
    NC4 = 12
    NC4HW4 = 13
    NCDHW = 15  # 14 is not used
    NWC = 16
    NCW = 17
    NDHWC = 18
    NC8HW8 = 19
