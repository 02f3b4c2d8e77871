"""Files with open sizes: resize() tells the outputs' shapes, and they turn out so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archives import cases, content
from support.running import fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.mindir.read import read
from mindspore_lite.mindir.records import SequenceType, TensorType, Type


def has_open_sizes(case: str) -> bool:
    model = read(memoryview(content(f"{case}.mindir")))
    return any(-1 in dims for i in model.graph.inputs for dims in shapes(i.type))


def shapes(kind: Type) -> Iterator[tuple[int, ...]]:
    if isinstance(kind, TensorType):
        yield (-1,) if kind.shape is None else kind.shape
    elif isinstance(kind, SequenceType):
        for item in kind.items:
            yield from shapes(item)


CASES = [
    case
    for case in cases()
    if not case.startswith(("container/", "nets/enc_", "nets/split_")) and has_open_sizes(case)
]


def test_there_are_many() -> None:
    assert len(CASES) > 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace("/", "-"))
def test_the_shapes_after_a_resize_are_those_of_the_outputs(
    case: str, case_path: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    path = case_path(case)
    inputs, _ = fixture_arrays(path.with_suffix(".npz"))
    with mslite.Model() as model:
        model.build_from_file(str(path), mslite.ModelType.MINDIR)
        model.resize(model.get_inputs(), [list(array.shape) for array in inputs])
        told = [output.shape for output in model.get_outputs()]
        found = [output.shape for output in model.predict(list(inputs))]
    for before, after in zip(told, found, strict=True):
        assert len(before) == len(after)
        assert all(b in (-1, a) for b, a in zip(before, after, strict=True))
