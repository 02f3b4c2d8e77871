"""ScaledDotProductAttention in NumPy, and models that hold it run by onnx's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class ScaledDotProductAttention(OpRun):
    """softmax(scale * q @ k^T + mask) @ v, as fuse_attention.py says it."""

    op_domain = "mslite"

    def _run(self, q, k, v, mask=None, scale=None, is_causal=None):  # type: ignore[no-untyped-def]
        scores = scale * (q.astype(np.float64) @ np.swapaxes(k, -1, -2).astype(np.float64))
        if is_causal:
            assert mask is None
            mask = np.where(np.tri(*scores.shape[-2:], dtype=bool), 0, -np.inf)
        if mask is not None:
            assert mask.dtype == q.dtype or is_causal
            scores = scores + mask
        high = scores.max(axis=-1, keepdims=True)
        raised = np.exp(scores - np.where(np.isfinite(high), high, 0))
        total = raised.sum(axis=-1, keepdims=True)
        weights = np.divide(raised, total, out=np.zeros_like(raised), where=total != 0)
        return ((weights @ v).astype(q.dtype),)


def evaluated(made: ir.Model, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs by name."""
    proto = ir.to_proto(made)
    found = ReferenceEvaluator(proto, new_ops=[ScaledDotProductAttention]).run(None, dict(feeds))
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, map(np.asarray, found), strict=True))
