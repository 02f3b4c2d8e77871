"""The classification extension: the best classes of an output as texts, and how BYTES are laid out.

[0.1, 0.7, 0.2], 2 best  ->  "0.700000:1", "0.200000:2"     value, index, and the label if known
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from mindspore_lite.server.errors import Kind, RequestError

MOST_ELEMENTS = 1_000_000  # of an output that classes are taken from; as in Triton
_TYPES = "iuf"
_HALVES = 2  # bytes of types that the extension leaves out: FP16 and BF16


def classes(
    array: np.ndarray, count: int, labels: Sequence[str] = (), *, batched: bool = False
) -> tuple[tuple[int, ...], list[bytes]]:
    """The `count` largest values of each row (of all, where there are no rows), in order.

    Raises:
        RequestError: The type has no classes, or there are too many values.
    """
    if array.dtype.kind not in _TYPES or (array.dtype.kind == "f" and array.itemsize == _HALVES):
        raise RequestError(Kind.INVALID, f"there are no classes of {array.dtype} values")
    if array.size > MOST_ELEMENTS:
        raise RequestError(
            Kind.INVALID,
            f"classes are taken of at most {MOST_ELEMENTS} values, the output has {array.size}",
        )
    rows = array.reshape(len(array), -1) if batched else array.reshape(1, -1)
    kept = min(count, rows.shape[1])
    best = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, :kept]
    texts = [
        _text(row[index], int(index), labels)
        for row, order in zip(rows, best, strict=True)
        for index in order
    ]
    return ((len(rows), kept) if batched else (kept,)), texts


def _text(value: np.generic, index: int, labels: Sequence[str]) -> bytes:
    number = f"{float(value):f}" if value.dtype.kind == "f" else str(int(value))
    label = f":{labels[index]}" if index < len(labels) else ""
    return f"{number}:{index}{label}".encode()


def joined(texts: Sequence[bytes]) -> bytes:
    """The binary form of strings: each with its length in front, as four little-endian bytes."""
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
