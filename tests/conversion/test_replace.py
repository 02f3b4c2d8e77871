"""Results that take the place of their model, whole or not at all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.conversion import WEIGHTS, job
from support.models import arrays, built

from mindspore_lite.conversion.convert import convert
from mindspore_lite.conversion.job import Job
from mindspore_lite.errors import ModelFileError

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)
SPLIT = {"net_graph.mindir", "net_variables/data_0"}


def source(folder: Path, split: bool) -> Job:
    """A job whose MindIR is to be converted under its own name."""
    above = 0 if split else 2**30
    made = convert(job(folder, external_above=above))
    (folder / "net.onnx").unlink()
    return replace(
        made.job, framework="MINDIR", model=made.files[0], shapes={"x": (2, 16)}, may_replace=True
    )


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def assert_right(path: Path, dims: list[int]) -> None:
    with built(path) as model:
        assert model.get_inputs()[0].shape == dims
        (y,) = arrays(model.predict([X]))
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHTS, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("infer", [False, True])
def test_a_file_is_replaced_by_its_result(tmp_path: Path, infer: bool) -> None:
    asked = source(tmp_path, split=False)
    convert(replace(asked, infer=infer))
    assert files(tmp_path) == {"net.mindir"}
    assert_right(tmp_path / "net.mindir", [2, 16])


@pytest.mark.parametrize("infer", [False, True])
def test_a_graph_and_its_data_are_replaced_together(tmp_path: Path, infer: bool) -> None:
    asked = source(tmp_path, split=True)
    assert files(tmp_path) == SPLIT
    assert_right(tmp_path / "net_graph.mindir", [-1, 16])
    for name in ("data_1", "data_0"):  # in turns
        report = convert(replace(asked, infer=infer))
        assert report.files[1].name == name
        assert files(tmp_path) == {"net_graph.mindir", f"net_variables/{name}"}
        assert_right(tmp_path / "net_graph.mindir", [2, 16])


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("infer", [False, True])
def test_until_the_last_moment_the_old_model_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: bool, infer: bool
) -> None:
    """A crash just before the graph appears is a stop there, after which nothing is tidied up."""
    asked = source(tmp_path, split)
    moved = os.replace
    seen: list[str] = []

    def stopped(self: Path, target: Path) -> Path:
        seen.append(Path(target).name)
        if Path(target) == asked.model:
            assert_right(asked.model, [-1, 16])
        moved(self, target)
        return Path(target)

    monkeypatch.setattr(Path, "replace", stopped)
    convert(replace(asked, infer=infer))
    assert seen[-1] == asked.model.name
    assert_right(asked.model, [2, 16])


def test_a_failure_leaves_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = source(tmp_path, split=True)

    def full(self: Path, target: Path) -> Path:
        if Path(target) == asked.model:
            raise OSError(28, "No space left on device")
        os.replace(self, target)
        return Path(target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ModelFileError, match="No space left"):
        convert(asked)
    assert_right(asked.model, [-1, 16])
    monkeypatch.undo()
    convert(asked)
    assert_right(asked.model, [2, 16])
    assert len(files(tmp_path)) == 2


def test_a_model_that_was_not_named_as_output_stays(tmp_path: Path) -> None:
    for split in (False, True):
        folder = tmp_path / str(split)
        folder.mkdir()
        asked = replace(source(folder, split), may_replace=False)
        before = {name: (folder / name).read_bytes() for name in files(folder)}
        with pytest.raises(ModelFileError, match="would overwrite the model"):
            convert(asked)
        assert {name: (folder / name).read_bytes() for name in files(folder)} == before


def test_data_of_another_graph_are_never_replaced(tmp_path: Path) -> None:
    asked = job(tmp_path, may_replace=True)
    model = onnx.load(asked.model)
    (tmp_path / "o_variables").mkdir()
    place = "o_variables/data_0"
    onnx.save(model, asked.model, save_as_external_data=True, location=place, size_threshold=0)
    with pytest.raises(ModelFileError, match="would overwrite the model"):
        convert(replace(asked, output=tmp_path / "o.mindir"))


def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path: Path) -> None:
    asked = source(tmp_path, split=False)
    real = asked.model.rename(tmp_path / "real.mindir")
    before = real.read_bytes()
    asked.model.symlink_to(real)
    convert(asked)
    assert real.read_bytes() == before
    assert_right(asked.model, [2, 16])
