"""Slices."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
_END = np.iinfo(np.int64).max


def _slice(
    cuts: dict[int, tuple[int, int, int]], constant: str = "starts ends", **options: object
) -> OnnxCase:
    """One Slice; `constant` says which of its bounds are known before."""
    starts, ends, steps = (np.asarray(column) for column in zip(*cuts.values(), strict=True))
    inputs = [_X, starts, ends, np.asarray(list(cuts)), steps]
    known = [i for i, name in ((1, "starts"), (2, "ends")) if name in constant]
    note = f"{cuts} {constant}".replace(str(_END), "end")
    return OnnxCase("Slice", inputs, constants=[*known, 3, 4], note=note, **options)  # type: ignore[arg-type]


_CUTS: list[dict[int, tuple[int, int, int]]] = [
    {0: (1, 3, 1)},
    {2: (1, _END, 1)},
    {-1: (0, -1, 1)},
    {1: (-2, _END, 1), 0: (0, 2, 1)},
    {1: (0, 5, 2)},
    {1: (3, 0, -1)},
    {1: (-1, -_END, -1)},
    {2: (_END, -_END, -2), 0: (1, 3, 1)},
    {0: (-9, 9, 3)},
    {1: (3, 1, 1)},
]
_BELOW = {1: (-9, -_END, -1)}  # ONNX takes the first element

CASES = [
    *[_slice(cuts, open_dims=open_dims) for cuts in _CUTS for open_dims in (False, True)],
    *[
        _slice(cuts, constant)
        for constant in ("", "starts", "ends")
        for cuts in (
            {0: (1, 3, 1)},
            {2: (1, 4, 2)},
            {1: (-3, _END, 1)},
            {2: (1, 3, 1), 0: (1, 3, 1)},
        )
    ],
    _slice({1: (1, 3, 1)}, "", open_dims=True),
    _slice(_BELOW),
    _slice(_BELOW, open_dims=True, custom="runs backwards"),
    _slice({1: (3, 1, -1)}, "", custom="runs backwards"),
    OnnxCase("Slice", [_X, np.asarray([1, 0]), np.asarray([3, 2])], constants=[1, 2]),
    OnnxCase("Slice", [_X, np.asarray([1, 0]), np.asarray([3, 2])], note="computed"),
]
