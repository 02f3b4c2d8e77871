"""passes/opset_steps.py: no operator changed its form between opset 7 and 21 without a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from mindspore_lite.passes.opset import OLDEST, TARGET
from mindspore_lite.passes.opset_steps import STEPS

ABSENT = (OpSchema.FormalParameterOption.Optional, OpSchema.FormalParameterOption.Variadic)
# same inputs and outputs under other names, or an attribute that merely became optional
ALIKE = {("Constant", 11)}
# the signature is the same and the meaning is not
SILENT = {
    ("GroupNormalization", 21): "scale and bias per channel, no longer per group",
    ("RoiAlign", 16): "a new attribute whose default is not the old meaning",
    ("Split", 18): "one of split and num_outputs has to be there",
    ("Resize", 13): "a way to map coordinates was dropped",
    ("Dropout", 10): "the mask became boolean",
}


def changes() -> Iterator[tuple[OpSchema, OpSchema]]:
    versions: dict[str, dict[int, OpSchema]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name][schema.since_version] = schema
    for history in versions.values():
        numbers = sorted(history)
        for old, new in pairwise(numbers):
            if OLDEST < new <= TARGET:
                yield history[old], history[new]


def differences(old: OpSchema, new: OpSchema) -> list[str]:
    """What a node of the old form would find amiss."""
    found = ["deprecated"] if new.deprecated else []
    for side in ("inputs", "outputs"):
        was, now = getattr(old, side), getattr(new, side)
        if [p.name for p in was] != [p.name for p in now[: len(was)]]:
            found.append(f"other {side}")
        if any(p.option not in ABSENT for p in now[len(was) :]):
            found.append(f"more {side}")
    for name, attribute in old.attributes.items():
        later = new.attributes.get(name)
        if later is None:
            found.append(f"{name} is gone")
        elif (attribute.required, attribute.default_value) != (later.required, later.default_value):
            found.append(f"{name} has another default")
    return found


@pytest.mark.parametrize("pair", list(changes()), ids=lambda p: f"{p[0].name}-{p[1].since_version}")
def test_an_operator_that_changed_its_form_has_a_step(pair: tuple[OpSchema, OpSchema]) -> None:
    old, new = pair
    key = (new.name, new.since_version)
    amiss = differences(old, new)
    assert bool(amiss) == ((key in STEPS and key not in SILENT) or key in ALIKE), amiss


def test_every_step_is_one_that_onnx_took() -> None:
    known = {(new.name, new.since_version) for _, new in changes()}
    assert STEPS.keys() <= known
    assert SILENT.keys() <= STEPS.keys()
