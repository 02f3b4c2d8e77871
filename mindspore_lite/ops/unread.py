"""A tensor of a graph whose bytes are in a file until somebody wants its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.core.snapshot import Unread


class UnreadTensor(ir.LazyTensor):
    """Knows its type and shape; its elements have at least 8 bits."""

    def __init__(
        self, unread: Unread, dtype: ir.DataType, dims: Sequence[int], **words: Any
    ) -> None:
        def read() -> ir.Tensor:
            return ir.Tensor(np.frombuffer(unread.read(), dtype.numpy()).reshape(dims), dtype)

        super().__init__(read, dtype, ir.Shape(dims), cache=True, **words)
        self.unread = unread
