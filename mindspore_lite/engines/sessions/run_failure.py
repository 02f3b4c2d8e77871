"""The error of a run that failed inside a runtime, in words about the request where it is to blame.

It costs a shape inference, after a failure only: what a model takes is looked up when it did not
take something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore_lite.core.boundary import engine_failure
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.engines.sessions.io_types import inner_shape
from mindspore_lite.errors import EngineError, LiteError, ResourceError, ShapeError


def run_failure(
    text: str,
    exc: BaseException,
    infos: Sequence[TensorInfo],
    skeleton: bytes,
    inputs: Sequence[Any],
) -> LiteError:
    """What to raise from `exc`: ShapeError, ResourceError, or EngineError with the text."""
    found = engine_failure(text, exc)
    shapes = {info.name: list(one.shape) for info, one in zip(infos, inputs, strict=False)}
    if isinstance(found, ResourceError):
        return ResourceError(f"{found}; the inputs have shapes {shapes}")
    if type(found) is EngineError and any(-1 in info.shape for info in infos):
        return _misfit(infos, skeleton, inputs) or found
    return found


def _misfit(
    infos: Sequence[TensorInfo], skeleton: bytes, inputs: Sequence[Any]
) -> ShapeError | None:
    """The error for shapes that the graph cannot have; None where they are not to blame."""
    from mindspore_lite.passes.shapes import output_shapes  # most sessions never need it

    if any(info.shape == ANY_RANK for info in infos) or len(infos) != len(inputs):
        return None
    inside = {
        info.name: inner_shape(info, tuple(one.shape))
        for info, one in zip(infos, inputs, strict=True)
    }
    try:
        output_shapes(skeleton, inside)
    except ShapeError as problem:
        return problem
    return None
