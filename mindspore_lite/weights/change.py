"""Works out which arrays replace which weights in an update, and checks them.

Nothing is changed here: everything is checked before the first array is made, so that an update
happens as a whole or not at all. The arrays are new ones; the caller's memory is read, not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.errors import InputError
from mindspore_lite.weights.names import Near, shortened
from mindspore_lite.weights.records import Variable
from mindspore_lite.weights.rename import collapsed, node_path

Arrays = Mapping[str, np.ndarray]  # by the names of initializers
Group = Sequence[tuple[str, np.ndarray]]  # what callers call a weight, or "", and its new value

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def changed(
    variables: Sequence[Variable], groups: Sequence[Group], mode: str, present: Arrays
) -> dict[str, np.ndarray]:
    """The arrays of all weights that differ from their first ones after an update.

    The groups are applied in turn, so that of a weight's several values the last one counts. A
    weight that none of them names stays as `present` has it. No groups at all: all weights are as
    they were first. An array without a name is for the variable at its place in the group. In mode
    delta, arrays are added to the first weights.

    Raises:
        InputError: A name, shape or type does not fit; everything that does not, at once.
    """
    if not groups:
        return {}
    directory = _Directory(variables)
    wanted: dict[str, tuple[Variable, np.ndarray]] = {}
    problems: list[str] = []
    for at, group in enumerate(groups):
        where = f"list {at}, " if len(groups) > 1 else ""
        if not group:
            problems.append(f"list {at} is empty; leave it out")
        named: dict[str, tuple[Variable, np.ndarray]] = {}
        for place, (name, array) in enumerate(group):
            found = directory.find(name, place)
            if isinstance(found, str):
                problems.append(f"{where}{found}")
                continue
            if found.name in named:
                problems.append(f"{where}weight {found.name!r} is given twice")
            if problem := _misfit(found, array, mode):
                problems.append(f"{where}weight {name or found.name!r} {problem}")
            named[found.name] = found, array
        wanted |= named
    if problems:
        may = shortened([repr(variable.name) for variable in variables])
        raise InputError(f"{shortened(problems, '; ')}. The weights that may change are {may}")
    return {**present, **{name: _value(*pair, mode) for name, pair in wanted.items()}}


class _Directory:
    """Finds a variable by what a caller calls it."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables
        self.near = Near(name for v in variables for name in (v.name, *v.aliases))
        self.names = {alias: v for v in variables for alias in v.aliases}
        self.names |= {v.name: v for v in variables}
        self.paths: dict[str, Variable | None] = {}  # None: of several, so of no use
        for name, variable in self.names.items():
            path = collapsed(node_path(name) or name)
            known = self.paths.setdefault(path, variable)
            self.paths[path] = variable if known is variable else None

    def find(self, name: str, place: int) -> Variable | str:
        """The variable, or what is wrong with the name or the place."""
        if not name:
            if place < len(self.variables):
                return self.variables[place]
            return (
                f"the tensor at place {place} has no name, and the list of weights that may change "
                f"ends at place {len(self.variables) - 1}"
            )
        found = self.names.get(name) or self.paths.get(collapsed(node_path(name) or name))
        if found:
            return found
        return f"no weight {name!r} may change{self.near(name)}"


def _misfit(variable: Variable, array: np.ndarray, mode: str) -> str:
    """Why an array cannot take the place of a weight; "" if it can."""
    if array.shape != variable.shape:
        return f"has shape {list(variable.shape)}, but got {list(array.shape)}"
    if array.dtype != variable.dtype and not _widens(array.dtype, variable.dtype):
        return f"is of type {variable.dtype}, but got {array.dtype}; convert it with astype()"
    if mode == "delta" and variable.dtype.name not in _FLOATS:
        return f"is of type {variable.dtype}, to which no delta can be added; use mode replace"
    return ""


def _widens(given: np.dtype, wanted: np.dtype) -> bool:
    """Whether it is we who made another type of a weight: bfloat16 of a MindIR becomes float32."""
    return (given.name, wanted.name) == ("bfloat16", "float32")


def _value(variable: Variable, array: np.ndarray, mode: str) -> np.ndarray:
    if mode != "delta":
        return np.array(array, variable.dtype, order="C")
    row = dtypes.from_numpy(variable.dtype)
    narrow = row is not None and row.item_bytes == 2
    dtype = np.dtype(np.float32) if narrow else variable.dtype
    first, delta = (part.astype(dtype, copy=False) for part in (variable.first, array))
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes an infinity
        return np.asarray(np.add(first, delta, order="C").astype(variable.dtype, copy=False))
