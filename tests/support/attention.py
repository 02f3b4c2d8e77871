"""ScaledDotProductAttention in NumPy, and models that hold it run by onnx's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def attend(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    scale: float,
    is_causal: int = 0,
) -> np.ndarray:
    """softmax(scale * q @ k^T + mask) @ v; rows without a key are 0."""
    wide = (x.astype(np.float64) for x in (q, np.swapaxes(k, -1, -2)))
    scores = scale * np.matmul(*wide)
    if is_causal:
        assert mask is None
        mask = np.where(np.tri(*scores.shape[-2:], dtype=bool), 0, -np.inf)
    if mask is not None:
        scores = scores + mask
    high = scores.max(axis=-1, keepdims=True)
    raised = np.exp(scores - np.where(np.isfinite(high), high, 0))
    total = raised.sum(axis=-1, keepdims=True)
    weights = np.divide(raised, total, out=np.zeros_like(raised), where=total != 0)
    return (weights @ v).astype(q.dtype)


class ScaledDotProductAttention(OpRun):
    """The operator for onnx's evaluator."""

    op_domain = "mslite"

    def _run(self, q: Any, k: Any, v: Any, mask: Any = None, **attributes: Any) -> Any:
        assert mask is None or mask.dtype == q.dtype
        return (attend(q, k, v, mask, **attributes),)


def evaluated(made: ir.Model, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs by name."""
    proto = ir.to_proto(made)
    found = ReferenceEvaluator(proto, new_ops=[ScaledDotProductAttention]).run(None, dict(feeds))
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, map(np.asarray, found), strict=True))
