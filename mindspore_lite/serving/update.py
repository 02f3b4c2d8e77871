"""Turns the Tensors of an update into the weights that a model has after it."""

from __future__ import annotations

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.engines.prepare.alignment import aligned
from mindspore_lite.errors import EngineError, InputError
from mindspore_lite.serving.build import Built
from mindspore_lite.tensor import Tensor
from mindspore_lite.weights.change import changed

FAILED = "update weight failed! Error is "


def checked(weights: object) -> list[list[Tensor]]:
    """The argument of update_weights, which must be lists of Tensors."""
    return [
        [
            checks.instance("weights element", tensor, Tensor)
            for tensor in checks.sequence("weight", group)
        ]
        for group in checks.sequence("weights", weights)
    ]


def replacements(built: Built, groups: list[list[Tensor]]) -> dict[str, np.ndarray]:
    """All weights that differ from the file's after an update; no groups restore the file's."""
    variables = built.session.info.variables
    if not variables:
        raise fixed()
    if not groups:
        return {}
    pairs = [[(tensor.name, data(tensor)) for tensor in group] for group in groups]
    settings = built.weights
    found = changed(variables, pairs, settings.mode, built.replaced, settings.layout)
    return {name: aligned(array) for name, array in found.items()}  # as kernels want them


def fixed() -> EngineError:
    """The error of a model that was built without a word about weights that may change."""
    return EngineError(
        "no weight of this model may change; name those that may in a text file, one on a "
        "line, and build with 'variable_weights_file' of section [ascend_context] set to it"
    )


def data(tensor: Tensor) -> np.ndarray:
    """What a Tensor of an update holds."""
    found = tensor._filled()
    if found is None:
        raise InputError(f"weight {tensor.name!r} holds no data; fill it by set_data_from_numpy()")
    return found
