"""Finds weights by the names of modules: whole names, their ends, and Kohya's way to write them.

A network that was exported inside another module has that module's name in front of all of its
own: `conv_in` is `unet.conv_in`. So the end of a name will do, where it means one weight only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from mindspore_lite.weights.rename import kohya_module, module_names

_MAX_PARTS = 32  # of a module's name whose ends are looked at; networks of people have ten or so

Weights = frozenset[str]
_NONE: Weights = frozenset()


class ModuleIndex:
    """Weights by the modules that use them."""

    def __init__(
        self, weights: Mapping[str, Iterable[str]], least: Mapping[str, int] | None = None
    ) -> None:
        """Takes the weights of each module.

        Args:
            weights: The names of the weights, by the modules' names.
            least: How many parts the end of a module's name must have at least; 1 if not given.
        """
        self.exact: dict[str, set[str]] = defaultdict(set)
        self.ends: dict[str, set[str]] = defaultdict(set)
        self.flat: dict[str, set[str]] = defaultdict(set)  # both of the above in Kohya's form
        self.flat_ends: dict[str, set[str]] = defaultdict(set)
        for module, found in weights.items():
            if not (names := set(found)):
                continue
            self.exact[module] |= names
            self.flat[_flat(module)] |= names
            for count, end in _ends(module):
                if count >= (least or {}).get(module, 1):
                    self.ends[end] |= names
                    self.flat_ends[_flat(end)] |= names

    def find(self, name: str) -> Weights:
        """The weights that a name may mean: one, or several where it is not clear, or none."""
        modules, flat = module_names(name), kohya_module(name)
        for exact, flats in ((self.exact, self.flat), (self.ends, self.flat_ends)):
            for module in modules:
                if module in exact:
                    return frozenset(exact[module])
            if flat in flats:
                return frozenset(flats[flat])
        return _NONE

    def least(self, module: str) -> int:
        """The fewest parts of the end of a module's name that mean what the whole name means."""
        for count, end in _ends(module):
            if self.ends[end] == self.exact[module]:
                return count
        return module.count(".") + 1


def _ends(module: str) -> Iterator[tuple[int, str]]:
    """The ends of a module's name, the shortest first; a number is no beginning."""
    parts = module.split(".")
    if len(parts) > _MAX_PARTS:
        return
    for count in range(1, len(parts) + 1):
        if not parts[-count].isdecimal():
            yield count, ".".join(parts[-count:])


def _flat(module: str) -> str:
    return module.replace(".", "_")
