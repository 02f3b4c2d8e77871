"""Moves the big weights of a file in memory to addresses from which kernels may load them.

Kernels want multiples of 64 bytes, and a protobuf file has its weights anywhere. A copy of each
would take as much memory again. In memory of our own a weight is moved down by a few bytes instead,
over the tags before it, which nobody reads any more.
"""

from __future__ import annotations

import ctypes

from mindspore_lite.mindir.scan import Span

ALIGNMENT = 64  # bytes, as in engines/prepare/alignment.py


def realigned(data: memoryview, spans: dict[int, Span]) -> dict[int, Span]:
    """Move weights in place; returns where they are now.

    A weight stays where it is if another one lies too close before it. Whatever else `data` held
    is lost.
    """
    base = ctypes.addressof(ctypes.c_char.from_buffer(data))
    moved: dict[int, Span] = {}
    taken = 0  # where the weight before ends
    for index, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        place = start - (base + start) % ALIGNMENT
        if place < taken:
            place = start
        if place < start:
            data[place : place + end - start] = data[start:end]  # they overlap, which is fine
        taken = place + end - start
        moved[index] = (place, taken)
    return moved
