"""settings/formats.py: the kind of a model file by its name, or by its first bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.conversion import dense_onnx
from support.models import dense_net, written

import mindspore_lite as mslite
from mindspore_lite.cli.benchmark_reading import _type_of
from mindspore_lite.cli.run import model_type
from mindspore_lite.conversion.sources import framework_of
from mindspore_lite.inspection.examine import examine
from mindspore_lite.settings.formats import looks_like, model_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.onnx", "ONNX"), ("A.ONNX", "ONNX"), ("a.mindir", "MINDIR"), ("a.MindIR", "MINDIR"),
        ("a.ms", "MINDIR_LITE"), ("a.MS", "MINDIR_LITE"), ("a", "MINDIR"), ("a.bin", "MINDIR"),
        ("a.pt", "MINDIR"),
    ],
)  # fmt: skip
def test_the_name_says_the_kind(name: str, kind: str) -> None:
    assert model_kind(Path("nowhere") / name) == kind


def test_an_onnx_file_of_another_name_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    onnx = dense_onnx(tmp_path / "net.onnx")
    assert looks_like("ONNX", onnx.read_bytes()[:8])
    assert model_kind(onnx.rename(tmp_path / "net.bin")) == "ONNX"
    assert model_kind(written(tmp_path / "mindir.bin", dense_net())) == "MINDIR"
    assert model_kind(tmp_path) == "MINDIR"


def test_capitals_work_everywhere(tmp_path: Path) -> None:
    path = dense_onnx(tmp_path / "net.onnx").rename(tmp_path / "NET.ONNX")
    assert model_type(path) is mslite.ModelType.ONNX
    assert (_type_of(path), framework_of(path)) == ("ONNX", "ONNX")
    assert examine(path).facts is not None
    for runner in (mslite.ModelParallelRunner(), mslite.MultiDeviceRunner()):
        with runner:
            runner.build_from_file(str(path))
            (x,) = runner.get_inputs()
            (y,) = runner.predict([np.ones([max(d, 1) for d in x.shape], np.float32)])
            assert y.get_data_to_numpy().size
