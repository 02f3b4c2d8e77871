"""The table of supported primitives for `mslite inspect --ops` and docs/operators.md.

Nothing here is kept by hand: names, signatures and remarks come from the registered functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindspore_lite.graph import functions, sequences  # noqa: F401 - fill the table
from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.lite_forms import FORMS
from mindspore_lite.ops.table import OPS

CALL = "call of a graph"  # what the translator calls a node that has no primitive
# handled by the walk over the graphs, as far as it can; never by a row of a table
CONTROL = frozenset({CALL, "Return"})


@dataclass(frozen=True)
class Row:
    """One primitive; `!` in a signature marks arguments that old files keep as attributes."""

    primitive: str
    signature: str
    family: str
    remark: str


def rows() -> list[Row]:
    """Every supported primitive, sorted by family and name."""
    found = [
        Row(name, row.signature, row.family, _first_line(row.meaning)) for name, row in OPS.items()
    ]
    found += [Row(name, name, "structure", _first_line(fn)) for name, fn in STRUCTURE.items()]
    return sorted(found, key=lambda row: (row.family, row.primitive))


def family_of(primitive: str) -> str | None:
    """The family of a primitive, or None where it is in no table."""
    if primitive in OPS:
        return OPS[primitive].family
    if primitive in STRUCTURE:
        return "structure"
    if primitive in FORMS:
        return "lite_forms"
    return "control" if primitive in CONTROL else None


def writes_in_place(primitive: str) -> bool:
    """Whether the primitive changes its first input; unknown ones are judged by their names."""
    if primitive in OPS:
        return OPS[primitive].writes
    return primitive.startswith(("Inplace", "Assign"))


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
