"""core/paths.py and checks.path: paths of every kind, and those that lead nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.models import MINDIR, conv_onnx, dense_net, written

import mindspore_lite as mslite
from mindspore_lite.core import checks
from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import LiteError


def test_the_folder_and_the_nearest_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "resnet50.mindir").touch()
    found = nowhere(tmp_path / "resnet5O.mindir")
    assert f"there is no 'resnet5O.mindir' in {str(tmp_path)!r}" in found
    assert "did you mean 'resnet50.mindir'?" in found
    assert "did you mean" not in nowhere(tmp_path / "other")


def test_a_missing_folder_on_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    found = nowhere(tmp_path / "model" / "net.mindir")
    assert f"there is no 'model' in {str(tmp_path)!r}; did you mean 'models'?" in found


def test_the_working_directory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nowhere("net.mindir") == f"'net.mindir'; there is no 'net.mindir' in {str(tmp_path)!r}"


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 5000])
def test_what_is_no_path_at_all_is_still_told(path: str) -> None:
    assert nowhere(path).startswith("'")
    assert len(nowhere(path)) < 1500
    assert "did you mean" not in nowhere(path)


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert checks.path("path", "~/net.mindir") == f"{tmp_path}/net.mindir"
    (tmp_path / "~odd").touch()
    assert checks.path("path", "~odd") == "~odd"
    assert checks.path("path", Path("net.mindir")) == "net.mindir"


def by_model(path: os.PathLike[str] | str, config: os.PathLike[str] | str) -> None:
    with mslite.Model() as model:
        model.build_from_file(path, MINDIR, config_path=config)


def by_runner(path: os.PathLike[str] | str, config: os.PathLike[str] | str) -> None:
    context = mslite.Context()
    context.parallel.workers_num = 1
    context.parallel.config_path = config  # type: ignore[assignment]
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(path, context)


def by_group(path: os.PathLike[str] | str, config: os.PathLike[str] | str) -> None:
    group = mslite.ModelGroup()
    group.add_model([path])
    group.cal_max_size_of_workspace(MINDIR, mslite.Context())


@pytest.mark.parametrize("use", [by_model, by_runner, by_group])
@pytest.mark.parametrize("kind", [Path, str, lambda path: f"~/{path.name}"])
def test_paths_of_every_kind_are_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[..., None],
    kind: Callable[[Path], os.PathLike[str] | str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path, config = written(tmp_path / "dense.mindir", dense_net()), tmp_path / "settings.cfg"
    config.write_text("[common_context]\nengine=onnxruntime\n")
    use(kind(path), kind(config))


def test_files_of_conversions_and_weights_may_be_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    source = conv_onnx(tmp_path / "conv.onnx")
    mslite.Converter().convert(mslite.FmkType.ONNX, source, Path("~/out.mindir"))
    assert (tmp_path / "out.mindir").exists()
    np.savez(tmp_path / "w.npz", w=np.zeros(2, np.float32))
    assert [tensor.name for tensor in mslite.load_weights("~/w.npz")] == ["w"]


def test_a_path_may_be_a_value_of_a_configuration(tmp_path: Path) -> None:
    found = checks.sections("config_dict", {"model_file": {"mindir_path": tmp_path}})
    assert found == {"model_file": {"mindir_path": str(tmp_path)}}


@pytest.mark.parametrize(("value", "text"), [(4, "'4'"), (0.5, "'0.5'"), (True, "'true'")])
def test_a_number_in_a_configuration_is_told_how_to_write_it(value: object, text: str) -> None:
    words = f"config_dict_value_value must be str, .*\\. For parallel.workers_num write {text}"
    with pytest.raises(TypeError, match=words):
        checks.sections("config_dict", {"parallel": {"workers_num": value}})


def test_every_build_names_the_nearest_file(tmp_path: Path) -> None:
    written(tmp_path / "dense.mindir", dense_net())
    wrong = tmp_path / "dence.mindir"
    for build in (
        lambda: mslite.Model().build_from_file(wrong, MINDIR),
        lambda: mslite.ModelParallelRunner().build_from_file(wrong),
        lambda: mslite.MultiDeviceRunner().build_from_file(wrong),
        lambda: mslite.Converter().convert(mslite.FmkType.MINDIR, wrong, tmp_path / "out"),
    ):
        with pytest.raises(LiteError, match=r"does not exist.*did you mean 'dense\.mindir'\?"):
            build()


def test_a_kind_of_file_is_no_context(tmp_path: Path) -> None:
    path = written(tmp_path / "dense.mindir", dense_net())
    for runner in (mslite.ModelParallelRunner(), mslite.MultiDeviceRunner()):
        with pytest.raises(TypeError, match=r"context must be Context, but got ModelType\.MINDIR"):
            runner.build_from_file(path, MINDIR)  # type: ignore[arg-type]
