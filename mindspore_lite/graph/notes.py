"""What our own files say beyond MindIR: an attribute of the main graph that MindSpore ignores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

NOTES = "mslite"  # the attribute's name; its value is JSON

DimNames = Mapping[str, Sequence[int | str | None]]


@dataclass(frozen=True)
class Notes:
    """What MindIR has no field for."""

    writer: str = ""
    dims: DimNames = field(
        default_factory=dict
    )  # of inputs and outputs with open dims: their names
    border: str = ""  # the metadata about element types that only the model's border has


def write_notes(notes: Notes) -> str:
    """The attribute's value."""
    return json.dumps(asdict(notes), sort_keys=True)


def read_notes(text: Any) -> Notes:
    """What the attribute says; one that makes no sense says nothing, for nothing depends on it."""
    try:
        found = json.loads(text)
        return Notes(str(found["writer"]), dict(found["dims"]), str(found["border"]))
    except (TypeError, ValueError, LookupError):
        return Notes()
