"""Losses of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand


@back("NegativeLogLikelihoodLoss")
def nll_loss(
    p: MindirWriter,
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Made:
    """What the logarithm of each target's probability lacks, by weights of classes."""
    return _picked(p, x, x, target, weight, ignore_index, reduction)


@back("SoftmaxCrossEntropyLoss")
def cross_entropy(
    p: MindirWriter,
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """-> (loss, logarithms of the probabilities)."""
    logs = p.call("LogSoftmax", x, 1)
    return _picked(p, x, logs, target, weight, ignore_index, reduction), logs


def _picked(
    p: MindirWriter,
    x: Operand,
    logs: Any,
    target: Operand,
    weight: Operand | None,
    ignored: int | None,
    reduction: str,
) -> Made:
    """Gathered along the classes, which are axis 1."""
    index: Any = target
    counted: Any = None  # what each element weighs
    one, zero = np.ones((), x.dtype), np.zeros((), x.dtype)
    if ignored is not None:
        valid = p.call("NotEqual", target, np.asarray(ignored, target.dtype))
        index = p.call("Select", valid, target, np.zeros((), target.dtype))
        counted = p.call("Select", valid, one, zero)
    if weight is not None:
        each = p.call("Gather", weight, index, 0, 0)
        counted = each if counted is None else p.call("Mul", each, counted)
    found = p.call("Neg", p.call("GatherD", logs, 1, p.call("ExpandDims", index, 1)))
    loss = p.call("Squeeze", found, (1,))
    if counted is not None:
        loss = p.call("Mul", loss, counted)
    if reduction == "none":
        return loss
    if reduction == "mean" and counted is None:
        return p.call("ReduceMean", loss, (), False)
    total = p.call("ReduceSum", loss, (), False, False)
    if reduction == "sum":
        return total
    return p.call("Div", total, p.call("ReduceSum", counted, (), False, False))
