"""settings/ascend_shapes.py: the shapes of [ascend_context], read and held against a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.conversion import dense_onnx, job
from support.models import DIGITS, arrays

import mindspore_lite as mslite
from mindspore_lite.conversion.convert import convert
from mindspore_lite.errors import SettingsError, ShapeError
from mindspore_lite.settings.ascend_shapes import (
    all_shapes,
    dynamic_dims,
    input_shape,
    problems,
)

INPUTS = {"x": (-1, 3, -1), "y": (4,)}


def test_shapes_are_read() -> None:
    assert input_shape("x:[1,-1, 3]; a:b:2;") == (("x", (1, -1, 3)), ("a:b", (2,)))
    assert input_shape("") == ()


@pytest.mark.parametrize(
    "text",
    ["x", "x:", ":[1]", "x:[0]", "x:[-2]", "x:[1", "x:[a]", "x:[1];x:[1]", "x:[1_0]", "x:[1.5]",
     "x:[9999999999]", "x:[]"],
)  # fmt: skip
def test_bad_shapes(text: str) -> None:
    with pytest.raises(ValueError):
        input_shape(text)


def test_sizes_are_read() -> None:
    assert dynamic_dims("[1~4],[8]") == ((((1, 4),), ((8, 8),)),)
    assert dynamic_dims("[1, 2~3] , [4,5];[6],[7]") == (
        (((1, 1), (2, 3)), ((4, 4), (5, 5))),
        (((6, 6),), ((7, 7),)),
    )


@pytest.mark.parametrize(
    "text", ["1", "[]", "[1", "1]", "[0]", "[4~1]", "[-1]", "[a]", "[1][2]", "[1],", "[1~2~3]"]
)
def test_bad_sizes(text: str) -> None:
    with pytest.raises(ValueError):
        dynamic_dims(text)


@pytest.mark.parametrize(
    ("shapes", "profiles", "words"),
    [
        ("z:[1]", "", "input_shape names 'z', which is no input"),
        ("x:[1,3]", "", "input_shape gives 'x' 2 dims, the model has 3"),
        ("x:[-1,4,-1]", "", "says 4 for dim 1 of 'x', which the model fixes to 3"),
        ("x:[1,3,8]", "[1]", "has lists for 1 inputs, wanted one for each input with open sizes"),
        ("x:[-1,3,-1]", "[1]", "has 1 sizes for 'x' in list 0, wanted 2"),
        ("", "[1,2],[1]", "has 1 sizes for 'x' in list 1, wanted 2"),
        ("x:[-1,3,8];y:[-1]", "[1],[2];[4]", "has 1 and 2 lists of sizes, wanted the same number"),
        ("", ",".join(["[1,2]"] * 101), "at most 100"),
        ("", "[1,2];[3]", "has lists for 2 inputs"),
    ],
)
def test_what_does_not_fit(shapes: str, profiles: str, words: str) -> None:
    found = problems(input_shape(shapes), dynamic_dims(profiles), INPUTS)
    assert words in "; ".join(found)


@pytest.mark.parametrize(
    ("shapes", "profiles"),
    [("", ""), ("x:[2,3,8]", ""), ("x:[-1,3,8]", "[1~4],[8]"), ("x:[-1,-1,8]", "[1,3]"),
     ("", "[1,8],[2,16]"), ("y:4", "")],
)  # fmt: skip
def test_what_fits(shapes: str, profiles: str) -> None:
    read = dynamic_dims(profiles)
    assert problems(input_shape(shapes), read, INPUTS) == []


def test_an_input_of_any_rank_takes_any_shape() -> None:
    assert problems(input_shape("x:[1,2,3]"), (), {"x": None}) == []
    assert all_shapes((), dynamic_dims("[1]"), {"x": None}) == []


def test_both_ends_of_every_list_are_tried() -> None:
    shapes, sizes = input_shape("x:[-1,3,8]"), dynamic_dims("[1~4],[4]")
    assert all_shapes(shapes, sizes, INPUTS) == [
        {"x": (1, 3, 8), "y": (4,)},
        {"x": (4, 3, 8), "y": (4,)},
    ]


def build(
    kind: type[Any], entries: dict[str, str], target: str = "ascend", path: Path = DIGITS
) -> Any:
    context = mslite.Context()
    context.target = [target]
    model = kind()
    if kind is mslite.Model:
        model_type = mslite.ModelType.ONNX if path.suffix == ".onnx" else mslite.ModelType.MINDIR
        model.build_from_file(str(path), model_type, context, "", {"ascend_context": entries})
    else:
        context.parallel.config_info = {"ascend_context": entries}
        context.parallel.workers_num = 1
        model.build_from_file(str(path), context)
    return model


@pytest.fixture
def ascend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    monkeypatch.setenv("MSLITE_ASCEND_QUIET", "1")


@pytest.mark.usefixtures("ascend")
@pytest.mark.parametrize("kind", [mslite.Model, mslite.ModelParallelRunner])
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"input_shape": "z:[1,1,8,8]"}, "names 'z', which is no input. Its inputs: x:"),
        ({"input_shape": "x:[1,3,8,8]"}, "the model fixes to 1"),
        ({"input_shape": "x"}, r"\[ascend_context\] input_shape is 'x', wanted shapes such as"),
        ({"dynamic_dims": "[0]"}, r"\[ascend_context\] dynamic_dims is '\[0\]', wanted sizes"),
        ({"dynamic_dims": "[1],[2,3]"}, "has 2 sizes for 'x' in list 1, wanted 1"),
    ],
)
def test_a_build_checks_them(kind: type[Any], entries: dict[str, str], words: str) -> None:
    with pytest.raises(RuntimeError, match=f"(?s)build.*failed! Error is .*({words})"):
        build(kind, entries)


@pytest.mark.usefixtures("ascend")
def test_a_layer_that_cannot_take_a_size_is_named(tmp_path: Path) -> None:
    path = dense_onnx(tmp_path / "net.onnx")
    entries = {"input_shape": "x:[-1,-1]", "dynamic_dims": "[1,16],[1,17]"}
    with pytest.raises(ShapeError, match=r"(?s)\[ascend_context\] dynamic_dims: .*MatMul"):
        build(mslite.Model, entries, path=path)
    build(mslite.Model, {**entries, "dynamic_dims": "[1~9,16]"}, path=path).close()


@pytest.mark.usefixtures("ascend")
@pytest.mark.parametrize("kind", [mslite.Model, mslite.ModelParallelRunner])
def test_a_model_that_fits_runs(kind: type[Any]) -> None:
    entries = {"input_shape": "x:[-1,1,8,8]", "dynamic_dims": "[1~4],[8]"}
    with build(kind, entries) as model:
        x = mslite.Tensor(np.zeros((3, 1, 8, 8), np.float32))
        assert arrays(model.predict([x]))[0].shape == (3, 10)


@pytest.mark.usefixtures("ascend")
def test_other_processes_get_them_as_they_are() -> None:
    entries = {"input_shape": "x:[-1,1,8,8]", "dynamic_dims": "[1~4],[8]"}
    with build(mslite.Model, entries) as model:
        spec = model.get_model_info("spec")
    for name, text in entries.items():
        assert f"ascend_context.{name}={text}\n" in spec


def test_on_other_targets_the_section_has_no_effect() -> None:
    build(mslite.Model, {"input_shape": "z:[1]", "dynamic_dims": "nonsense"}, "cpu").close()


@pytest.mark.parametrize(
    ("entries", "error", "words"),
    [
        ({"input_shape": "z:[-1,16]"}, ShapeError, "names 'z', which is no input"),
        ({"input_shape": "x:[-1,17]"}, ShapeError, "the model fixes to 16"),
        ({"input_shape": "x:[-1,16]", "dynamic_dims": "[1,2]"}, ShapeError, "wanted 1"),
        ({"dynamic_dims": "1"}, SettingsError, r"\[ascend_context\] dynamic_dims is '1', wanted"),
    ],
)
def test_a_conversion_checks_them(
    tmp_path: Path, entries: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        convert(job(tmp_path, settings={"ascend_context": entries}))
