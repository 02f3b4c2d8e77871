"""Files with open sizes: resize() tells the outputs' shapes, and they turn out so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import DATA, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.records import SequenceType, TensorType, Type


def has_open_sizes(path: Path) -> bool:
    return any(-1 in dims for i in read_file(path).graph.inputs for dims in shapes(i.type))


def shapes(kind: Type) -> Iterator[tuple[int, ...]]:
    if isinstance(kind, TensorType):
        yield (-1,) if kind.shape is None else kind.shape
    elif isinstance(kind, SequenceType):
        for item in kind.items:
            yield from shapes(item)


FILES = [
    path
    for path in sorted(DATA.glob("*/*.mindir"))
    if path.parent.name != "container" and not path.stem.startswith("enc_") and has_open_sizes(path)
]


def test_there_are_many() -> None:
    assert len(FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_shapes_after_a_resize_are_those_of_the_outputs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    inputs, _ = fixture_arrays(path.with_suffix(".npz"))
    with mslite.Model() as model:
        model.build_from_file(str(path), mslite.ModelType.MINDIR)
        model.resize(model.get_inputs(), [list(array.shape) for array in inputs])
        told = [output.shape for output in model.get_outputs()]
        found = [output.shape for output in model.predict(list(inputs))]
    for before, after in zip(told, found, strict=True):
        assert len(before) == len(after)
        assert all(b in (-1, a) for b, a in zip(before, after, strict=True))
