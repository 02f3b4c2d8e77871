"""Decides how an array of an update lies: as the graph has a weight, or as the framework has it.

PyTorch keeps the matrix of a Linear as (out, in); in a graph it is often (in, out). The shape tells
which of the two an array is, unless it is square; then the setting decides.
"""

from __future__ import annotations

import numpy as np

from mindspore_lite.weights.records import Variable
from mindspore_lite.weights.rename import is_delta, is_lora, module_names

SETTING = "variable_weights_layout"


def oriented(variable: Variable, name: str, array: np.ndarray, layout: str) -> np.ndarray | str:
    """The array as the graph has the weight, or why there is none.

    Args:
        variable: The weight.
        name: What the caller calls it.
        array: Its new value.
        layout: `graph` or `framework`: how arrays lie where their shapes do not tell.
    """
    if is_delta(name):
        array = _of_rank(array, len(variable.shape))
    if array.shape == variable.shape:
        if not _is_square(variable.shape) or layout == "graph":
            return array
        if variable.parameter.transposed is None and name != variable.name:
            return (
                "is square, and nothing in the model tells how it lies in the training framework; "
                f"give it as it lies in the graph, with [common_context] {SETTING}=graph"
                + (" and without load_lora" if is_delta(name) else "")
            )
        return array.T if variable.parameter.transposed else array
    if array.ndim != 2 or array.shape != variable.shape[::-1]:
        return f"{_wanted(variable, array)}{_hint(name)}"
    by_parameter = layout == "framework" or _is_parameter(variable, name)
    if by_parameter and variable.parameter.transposed is not False:
        return array.T
    return f"{_wanted(variable, array)}: transposed?"


def is_doubtful(variable: Variable, name: str, layout: str) -> bool:
    """Whether a caller may well have meant the framework's layout, and none is set."""
    return (
        layout == "graph"
        and _is_square(variable.shape)
        and variable.parameter.transposed is not False
        and _is_parameter(variable, name)
    )


def _is_parameter(variable: Variable, name: str) -> bool:
    """Whether a name is that of a framework's parameter, not one of the graph."""
    return name != variable.name and not name.startswith("/") and bool(module_names(name))


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _of_rank(array: np.ndarray, rank: int) -> np.ndarray:
    """A LoRA's product for a Conv of size 1 as one for a Linear, and the other way round."""
    if array.ndim > rank == 2 and set(array.shape[2:]) == {1}:
        return array.reshape(array.shape[:2])
    if array.ndim == 2 < rank:
        return array.reshape(*array.shape, *[1] * (rank - 2))
    return array


def _wanted(variable: Variable, array: np.ndarray) -> str:
    return f"has shape {list(variable.shape)}, but got {list(array.shape)}"


def _hint(name: str) -> str:
    if is_lora(name) and not is_delta(name):
        return ": a factor of a LoRA? mslite.load_lora() reads such files"
    return ""
