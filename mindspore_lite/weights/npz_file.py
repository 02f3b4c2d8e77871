"""Reads .npz files safely: nothing pickled, and no size trusted.

NumPy makes room for an array before it has read it, and unpacks whatever is packed. So the sizes
that an archive states are compared with each other, and with what its packing can make of its
bytes, before a member is read.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from mindspore_lite.core.files import open_file
from mindspore_lite.errors import ModelFileError

_SUFFIX = ".npy"
_PACKINGS = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}  # and how many bytes become of one
# Weights do not pack that well, but for zeros: so many bytes, from one each, are a claim
_MOST_BYTES, _MOST_RATIO = 256 << 20, 500
_ENCRYPTED = 1  # a bit of a member's flags
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and arrays in the order in which they lie in the file."""
    with open_file(path) as file:
        stream, size = file.stream(), file.size
    try:
        with stream, zipfile.ZipFile(stream) as archive:
            members = sorted(archive.infolist(), key=lambda info: info.header_offset)
            _check_members(members, size)
            for info in members:
                with archive.open(info) as member:
                    array = read_npy(info.filename, info.file_size, member)
                    member.read(1)  # at the end, the checksum is compared
                    yield info.filename.removesuffix(_SUFFIX), array
    except ModelFileError:
        raise
    except Exception as exc:  # the readers of archives and headers raise many kinds on bad bytes
        raise ModelFileError(f"it is no .npz file that can be read: {exc}") from exc


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    names = set()
    packed = 0
    for info in members:
        name = repr(info.filename)
        if not info.filename.endswith(_SUFFIX):
            raise ModelFileError(f"member {name} is no array; np.savez() writes such files")
        if info.filename in names:
            raise ModelFileError(f"member {name} is there twice")
        if info.compress_type not in _PACKINGS or info.flag_bits & _ENCRYPTED:
            raise ModelFileError(f"member {name} is packed in a way that NumPy does not use")
        if info.file_size > info.compress_size * _PACKINGS[info.compress_type]:
            raise ModelFileError(
                f"member {name} claims {info.file_size} bytes, but holds {info.compress_size}, "
                "which cannot become as many"
            )
        names.add(info.filename)
        packed += info.compress_size
    if packed > size:  # members that share bytes: the way of small files that grow without bound
        raise ModelFileError(f"its members claim {packed} bytes, and the file has {size}")
    unpacked = sum(info.file_size for info in members)
    if unpacked > max(_MOST_BYTES, _MOST_RATIO * size):
        raise ModelFileError(
            f"its members claim {unpacked} bytes once unpacked, and the file has {size}; if they "
            "shall be nearly all zeros, write them with np.savez(), which does not pack"
        )


def read_npy(name: str, size: int, stream: IO[bytes]) -> np.ndarray:
    """The array in a stream of so many bytes; what numpy.save wrote, and nothing pickled.

    Raises:
        ModelFileError: It holds objects, or claims more than there is.
        ValueError: It is something else.
    """
    version = npy.read_magic(stream)
    if version not in _HEADERS:
        raise ModelFileError(f"array {name!r} has fields or an unknown version {version}")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise ModelFileError(
            f"array {name!r} holds Python objects, which are pickled, and pickles are "
            "never read: they may run code; save plain arrays of numbers"
        )
    held, claimed = size - stream.tell(), math.prod(shape) * dtype.itemsize
    if held != claimed or min(shape, default=0) < 0:
        raise ModelFileError(
            f"array {name!r} of shape {list(shape)} and type {dtype} takes {claimed} "
            f"bytes, but holds {held}"
        )
    stream.seek(0)
    array: np.ndarray = npy.read_array(stream, allow_pickle=False)
    return array
