"""Reductions, places of extremes, running sums."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(2).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
_TIES = np.asarray([[2, 1, 2, 1], [0, 0, 0, 0]], np.float32)
_REDUCTIONS = [
    "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
]  # fmt: skip


def _axes(*axes: int) -> np.ndarray:
    return np.asarray(axes, np.int64)


CASES = [
    *[
        OnnxCase(op_type, [_X, _axes(*axes)], {"keepdims": keep}, constants=[1], note=f"{axes}")
        for op_type in _REDUCTIONS
        for axes, keep in (((1,), 1), ((-1, 0), 0))
    ],
    *[OnnxCase(op_type, [_X], {"keepdims": 0}) for op_type in _REDUCTIONS],
    *[
        OnnxCase(op_type, [_X, _axes()], {"noop_with_empty_axes": 1}, constants=[1])
        for op_type in ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL1", "ReduceSumSquare")
    ],
    OnnxCase("ReduceSum", [_X, _axes()], constants=[1], note="no axes"),
    OnnxCase("ReduceSum", [_X, _axes(1)], custom="a setting known only at run time"),
    OnnxCase("ReduceMean", [_X, _axes(2)], constants=[1], open_dims=True),
    OnnxCase("ReduceLogSumExp", [_X * 100, _axes(1)], constants=[1], note="large"),
    OnnxCase("ReduceLogSumExp", [np.asarray(2, np.float32)], {"keepdims": 0}, note="of one number"),
    OnnxCase("ReduceLogSumExp", [np.full((2, 3), -np.inf, np.float32)], note="infinite"),
    *[
        OnnxCase(op_type, [(_X * 4).astype(kind), _axes(1)], constants=[1], note=kind)
        for op_type in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
        for kind in ("int32", "int64")
    ],
    *[
        OnnxCase(op_type, [_X > 1, _axes(1)], {"keepdims": 0}, constants=[1], note="bool")
        for op_type in ("ReduceMax", "ReduceMin")
    ],
    *[
        OnnxCase(op_type, [_TIES], {"axis": axis, "keepdims": keep, "select_last_index": last})
        for op_type in ("ArgMax", "ArgMin")
        for axis, keep, last in ((0, 1, 0), (1, 0, 0), (-1, 1, 1), (0, 0, 1))
    ],
    OnnxCase("ArgMax", [_TIES], {"axis": 1, "select_last_index": 1}, open_dims=True),
    *[
        OnnxCase("CumSum", [_X, np.asarray(axis)], options, constants=[1])
        for axis, options in ((0, {}), (-1, {"exclusive": 1}), (1, {"reverse": 1}))
    ],
    OnnxCase("CumSum", [_X, np.asarray(1)], custom="a setting known only at run time"),
    OnnxCase("CumProd", [_X, np.asarray(1)], {"reverse": 1}, constants=[1], opset=26),
    OnnxCase("CumProd", [_X, np.asarray(0)], constants=[1], opset=26),
]
