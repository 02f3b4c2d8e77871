"""Prints tensors in the format of the original's quick start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindspore_lite.cli.console import say
from mindspore_lite.tensor import Tensor

SHOWN_VALUES = 50  # as many as the quick start prints


def show_outputs(outputs: Sequence[Tensor]) -> None:
    """Name, size in bytes, number of elements and first values of each output."""
    for output in outputs:
        say(
            f"tensor's name is:{output.name} data size is:{output.data_size} "
            f"tensor elements num is:{output.element_num}"
        )
        values = output.get_data_to_numpy().reshape(-1)
        shown = " ".join(str(v) for v in values[:SHOWN_VALUES])
        more = " ..." if values.size > SHOWN_VALUES else ""
        say(f"output data is: {shown}{more}")


def show_top(outputs: Sequence[Tensor], count: int) -> None:
    """The largest values along the last axis of each output, with their places."""
    for output in outputs:
        data = output.get_data_to_numpy()
        if data.ndim == 0 or data.size == 0:
            continue
        rows = data.reshape(-1, data.shape[-1])
        for number, row in enumerate(rows):
            best = np.argsort(row, kind="stable")[::-1][:count]
            where = f" row {number}" if len(rows) > 1 else ""
            listed = ", ".join(f"{i}: {float(row[i]):.6g}" for i in best)
            say(f"top {len(best)} of {output.name}{where}: {listed}")
