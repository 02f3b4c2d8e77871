"""converter_lite's recurrent layers, which are laid out as ONNX has them."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


@op("GRU")
def gru(
    t: Tape,
    x: Val,
    w: Val,
    r: Val,
    b: Val,
    h: Val,
    lengths: Val = None,
    *,
    bidirectional: bool = False,
) -> Val:
    """-> (y [time, direction, batch, hidden], last h); gates and layout are ONNX's."""
    direction = "bidirectional" if bidirectional else "forward"
    hidden = t.shape(r)[-1]
    if t.rank(h) == 2:  # the axis of directions may be missing
        h = t.op("Unsqueeze", [h, np.asarray([0])])
    if lengths is not None:
        lengths = t.cast(lengths, np.dtype(np.int32))
    inputs = [x, w, r, b, lengths, h]
    return t.op("GRU", inputs, outputs=2, direction=direction, hidden_size=hidden)
