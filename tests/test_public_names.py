"""What `import mindspore_lite` shows, and under which names."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from types import ModuleType

import pytest

import mindspore_lite

PUBLIC = sorted(set(mindspore_lite.__all__) - {"__version__"})


def test_all_is_what_is_visible() -> None:
    visible = {
        name
        for name, value in vars(mindspore_lite).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert visible | {"__version__"} == set(mindspore_lite.__all__)
    assert len(mindspore_lite.__all__) == len(set(mindspore_lite.__all__))


def test_import_star_works() -> None:
    space: dict[str, object] = {}
    exec("from mindspore_lite import *", space)
    assert set(mindspore_lite.__all__) <= space.keys()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_lives_in_the_package(name: str) -> None:
    value = getattr(mindspore_lite, name)
    assert value.__module__ == "mindspore_lite"
    assert repr(value).startswith(("<class 'mindspore_lite.", "<enum ", "<function "))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("context", ["Context"]),
        ("tensor", ["TensorMeta", "DataType", "Format", "Tensor"]),
        (
            "model",
            ["ModelType", "Model", "ModelParallelRunner", "ModelGroup", "ModelGroupFlag"],
        ),
        ("converter", ["Converter", "FmkType"]),
        ("version", ["__version__"]),
    ],
)
def test_the_documented_modules_hold_the_same_objects(module: str, names: list[str]) -> None:
    found = importlib.import_module(f"mindspore_lite.{module}")
    for name in names:
        assert getattr(found, name) is getattr(mindspore_lite, name)


def test_the_maps_of_types_are_where_programs_look_for_them() -> None:
    from mindspore_lite.tensor import ms_to_numpy_data_type_map, numpy_data_type_map

    assert {numpy_data_type_map[scalar] for scalar in ms_to_numpy_data_type_map.values()} == set(
        ms_to_numpy_data_type_map
    )


@pytest.mark.parametrize(
    "value",
    [
        mindspore_lite.DataType.INT8,
        mindspore_lite.ModelType.MINDIR,
        mindspore_lite.Format.HW,
        mindspore_lite.ModelGroupFlag.SHARE_WEIGHT,
        mindspore_lite.FmkType.ONNX,
    ],
)
def test_enums_survive_pickling(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) is value


def test_the_numbers_of_model_types_are_the_documented_ones() -> None:
    assert mindspore_lite.ModelType.MINDIR.value == 0
    assert mindspore_lite.ModelType.MINDIR_LITE.value == 4
    assert str(mindspore_lite.ModelType.MINDIR) == "ModelType.MINDIR"


def test_the_version_is_a_text_of_numbers() -> None:
    assert mindspore_lite.__version__.split(".")[0].isdigit()


def test_dir_shows_public_names_only() -> None:
    assert dir(mindspore_lite) == sorted(mindspore_lite.__all__)


@pytest.mark.parametrize("module", ["errors", "serving.statistics", "remote.devices.report"])
def test_modules_of_public_types_list_them(module: str) -> None:
    found = importlib.import_module(f"mindspore_lite.{module}")
    own = {
        name
        for name, value in vars(found).items()
        if isinstance(value, type) and value.__module__ == found.__name__ and name[0] != "_"
    }
    assert set(found.__all__) <= own
    if module == "errors":
        assert set(found.__all__) == own


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(mindspore_lite.__file__).parent / "py.typed").is_file()
