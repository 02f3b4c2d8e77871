"""Works out which arrays replace which weights in an update, and checks them.

Nothing is changed here: everything is checked before the first array is made, so that an update
happens as a whole or not at all. The arrays are new ones; the caller's memory is read, not kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.errors import InputError
from mindspore_lite.weights.layout import SETTING, is_doubtful, oriented
from mindspore_lite.weights.modules import ModuleIndex
from mindspore_lite.weights.names import Near, clipped, shortened
from mindspore_lite.weights.records import Variable
from mindspore_lite.weights.rename import is_delta, module_names

Arrays = Mapping[str, np.ndarray]  # by the names of initializers
Group = Sequence[tuple[str, np.ndarray]]  # what callers call a weight, or "", and its new value

_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class _Wanted:
    """What an update asks of one weight."""

    variable: Variable
    arrays: tuple[np.ndarray, ...]  # several: LoRAs whose products are added up
    is_delta: bool


def changed(
    variables: Sequence[Variable],
    groups: Sequence[Group],
    mode: str,
    present: Arrays,
    layout: str = "graph",
) -> dict[str, np.ndarray]:
    """The arrays of all weights that differ from their first ones after an update.

    The groups are applied in turn, so that of a weight's several values the last one counts. A
    weight that none of them names stays as `present` has it. No groups at all: all weights are as
    they were first. An array without a name is for the variable at its place in the group. In mode
    delta, arrays are added to the first weights; so are the products of LoRAs in any mode, and a
    group of these alone leaves no trace of what was changed before.

    Raises:
        InputError: A name, shape or type does not fit; everything that does not, at once.
    """
    if not groups:
        return {}
    directory = _Directory(variables)
    wanted: dict[str, _Wanted] = {}
    problems: list[str] = []
    doubtful: list[str] = []
    for at, group in enumerate(groups):
        if not group:
            problems.append(f"list {at} is empty; leave it out")
        where = f"list {at}, " if len(groups) > 1 else ""
        reading = _Reading(directory, mode, layout)
        for place, (name, array) in enumerate(group):
            if problem := reading.add(name, array, place):
                problems.append(f"{where}{problem}")
        if group and all(is_delta(name) for name, _ in group):
            present, wanted = {}, {}
        wanted |= reading.found
        doubtful += reading.doubtful
        problems += directory.halves([name for name, _ in group], reading.found)
    if problems:
        may = shortened([clipped(variable.name) for variable in variables], room=400)
        raise InputError(f"{shortened(problems, '; ')}. The weights that may change are {may}")
    if doubtful:
        _warn(doubtful)
    return {**present, **{name: _value(one) for name, one in wanted.items()}}


def _warn(names: Sequence[str]) -> None:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    warnings.warn(
        f"weight {clipped(names[0])}{more} is square and was given by its parameter's name: it is "
        "taken to lie as in the graph, which may be transposed from how the training framework has "
        f"it. Set [common_context] {SETTING}=framework if it lies as the framework has it, or "
        f"{SETTING}=graph and the name of the graph's weight if not",
        stacklevel=2,
    )


class _Reading:
    """One group, as far as it was read."""

    def __init__(self, directory: _Directory, mode: str, layout: str) -> None:
        self.directory, self.mode, self.layout = directory, mode, layout
        self.found: dict[str, _Wanted] = {}
        self.doubtful: list[str] = []

    def add(self, name: str, array: np.ndarray, place: int) -> str:
        """Take one array; returns what is wrong with it, or ""."""
        variable = self.directory.find(name, place)
        if isinstance(variable, str):
            return variable
        from_lora = is_delta(name)
        before = self.found.get(variable.name)
        adds = before is not None and from_lora and before.is_delta
        problem = ""
        if before is not None and not adds:
            problem = f"weight {clipped(variable.name)} is given twice"
        layout = "framework" if from_lora else self.layout
        turned = oriented(variable, name, array, layout)
        misfit = turned if isinstance(turned, str) else _misfit(variable, array, name, self.mode)
        if isinstance(turned, str) or misfit or problem:
            return problem or f"weight {clipped(name or variable.name)} {misfit}"
        if is_doubtful(variable, name, layout):
            self.doubtful.append(name)
        arrays = (*before.arrays, turned) if before is not None else (turned,)
        self.found[variable.name] = _Wanted(variable, arrays, from_lora or self.mode == "delta")
        return ""


class _Directory:
    """Finds a variable by what a caller calls it."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables
        known = (n for v in variables for n in (v.name, *v.aliases, v.parameter.name) if n)
        self.near = Near(known)
        self.names = {v.parameter.name: v for v in variables if v.parameter.name}
        self.names |= {alias: v for v in variables for alias in v.aliases}
        self.names |= {v.name: v for v in variables}
        modules: dict[str, set[str]] = {}
        least: dict[str, int] = {}
        for name, variable in self.names.items():
            for module in module_names(name)[:1]:
                modules.setdefault(module, set()).add(variable.name)
                # of the parameter's name it is known which ends no other weight of the model has
                whole = module.count(".") + 1
                enough = variable.least if name == variable.parameter.name else whole
                least[module] = min(enough, least.get(module, whole))
        self.modules = ModuleIndex(modules, least)

    def halves(self, names: Sequence[str], found: Mapping[str, object]) -> Iterator[str]:
        """Names of parameters that several weights share, and not all of these are given."""
        for name in names:
            sharing = [v.name for v in self.variables if name and v.parameter.name == name]
            left = [clipped(one) for one in sharing if one not in found]
            if len(sharing) > 1 and left:
                yield (
                    f"the parameter {clipped(name)} is in several weights, give "
                    f"{shortened(left)} in the same list, as it lies in the graph"
                )

    def find(self, name: str, place: int) -> Variable | str:
        """The variable, or what is wrong with the name or the place."""
        if not name:
            if place < len(self.variables):
                return self.variables[place]
            return (
                f"the tensor at place {place} has no name, and the list of weights that may change "
                f"ends at place {len(self.variables) - 1}"
            )
        if found := self.names.get(name):
            return found
        hits = self.modules.find(name)
        if len(hits) == 1:
            return self.names[next(iter(hits))]
        return f"no weight {clipped(name)} may change{self.near(name)}"


def _misfit(variable: Variable, array: np.ndarray, name: str, mode: str) -> str:
    """Why the type of an array does not fit that of a weight; "" if it does."""
    adds = mode == "delta" or is_delta(name)
    if adds and variable.dtype.name not in _FLOATS:
        return f"is of type {variable.dtype}, to which no delta can be added; use mode replace"
    if is_delta(name) and array.dtype.name in _FLOATS:  # it is added in float32
        return ""
    if array.dtype != variable.dtype and not _widens(array.dtype, variable.dtype):
        return f"is of type {variable.dtype}, but got {array.dtype}; convert it with astype()"
    return ""


def _widens(given: np.dtype, wanted: np.dtype) -> bool:
    """Whether it is we who made another type of a weight: bfloat16 of a MindIR becomes float32."""
    return (given.name, wanted.name) == ("bfloat16", "float32")


def _value(wanted: _Wanted) -> np.ndarray:
    variable = wanted.variable
    if not wanted.is_delta:
        return np.array(wanted.arrays[0], variable.dtype, order="C")
    row = dtypes.from_numpy(variable.dtype)
    narrow = row is not None and row.item_bytes == 2
    dtype = np.dtype(np.float32) if narrow else variable.dtype
    total = variable.first.astype(dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes an infinity
        for array in wanted.arrays:
            total = np.add(total, array.astype(dtype, copy=False), order="C")
        return np.asarray(total.astype(variable.dtype, copy=False), order="C")
