"""LiteInfer: networks of MindSpore in the same process; its part of it is a stand-in here."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import stand_in
from support.conversion import job
from support.models import DIGITS, arrays, built
from support.stand_in import Cell, Tensor

import mindspore_lite as mslite
from mindspore_lite.conversion.convert import convert

X = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)


@pytest.fixture(autouse=True)
def mindspore(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = stand_in.module()
    monkeypatch.setitem(sys.modules, "mindspore", made)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return made


def infer(**more: Any) -> mslite.LiteInfer:
    return mslite.LiteInfer(Cell(), Tensor(X), **more)


def want() -> np.ndarray:
    with built(DIGITS) as model:
        return arrays(model.predict([X]))[0]


def test_mindspore_finds_the_class_where_it_looks() -> None:
    assert mslite.lite_infer.LiteInfer is mslite.LiteInfer


def test_a_network_runs() -> None:
    with infer() as model:
        (x,) = model.get_inputs()
        x.set_data_from_numpy(X)
        (y,) = model.predict([x])
        assert model.get_outputs()[0].shape[-1] == 10
    np.testing.assert_allclose(y.get_data_to_numpy(), want(), rtol=1e-5, atol=1e-6)


def test_the_network_of_a_model_runs() -> None:
    with mslite.LiteInfer(stand_in.Model(Cell()), Tensor(X)) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], want(), rtol=1e-5, atol=1e-6)


def test_weights_may_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    made = convert(job(tmp_path, external_above=0)).files[0]
    x = np.ones((2, 16), np.float32)
    with mslite.LiteInfer(Cell(made), Tensor(x)) as model, built(made) as plain:
        np.testing.assert_array_equal(*(arrays(m.predict([x]))[0] for m in (model, plain)))


def test_a_network_is_exported_for_inference_and_keeps_its_modes() -> None:
    net, inner = Cell(), Cell()
    net.inner, net.training = [inner], True
    mslite.LiteInfer(net, Tensor(X)).close()
    assert net.seen == [False]
    assert (net.training, inner.training, net.phase) == (True, False, "train")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    model = infer()
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    model.resize(model.get_inputs(), [[3, 1, 8, 8]])  # which may read the file again
    model.close()
    model.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.warns(ResourceWarning):  # as with any folder that nobody removes
        infer()
        gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_resize_changes_the_inputs_in_place() -> None:
    with infer() as model:
        (x,) = model.get_inputs()
        model.resize([x], [[2, 1, 8, 8]])
        assert x.shape == [2, 1, 8, 8]


@pytest.mark.parametrize(
    ("inputs", "dims", "error", "words"),
    [
        (0, [[1, 1, 8, 8]], TypeError, "inputs must be list"),
        ([1, 2], [[1, 1, 8, 8]], TypeError, "inputs element must be Tensor"),
        (None, "8", TypeError, "dims must be list"),
        (None, ["8"], TypeError, "dims element must be list"),
        (None, [[1, 1, "8", 8]], TypeError, "dims element's element must be int"),
        (None, [[1, 1, 8, 8], [1]], ValueError, "inputs' size does not match dims' size"),
    ],
)
def test_what_resize_refuses(inputs: Any, dims: Any, error: type[Exception], words: str) -> None:
    with infer() as model, pytest.raises(error, match=words):
        model.resize(model.get_inputs() if inputs is None else inputs, dims)


@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [(0, TypeError, "inputs must be list"), (["x"], TypeError, "inputs element must be Tensor")],
)
def test_what_predict_refuses(inputs: Any, error: type[Exception], words: str) -> None:
    with infer() as model, pytest.raises(error, match=words):
        model.predict(inputs)


def test_an_empty_array_does_not_fill_an_input() -> None:
    with infer() as model, pytest.raises(RuntimeError, match="data size not equal!"):
        model.get_inputs()[0].set_data_from_numpy(np.array([], np.float32))


def test_an_input_that_was_not_filled_is_named() -> None:
    with infer() as model, pytest.raises(RuntimeError, match="predict failed"):
        model.predict(model.get_inputs())


def test_configurations_are_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "config.ini"
    path.write_text("[common_context]\nengine=openvino\n[build]\nmax_nodes=999\n")
    config = {"configPath": str(path), "common_context": {"engine": "onnxruntime"}}
    with infer(config=config, context=mslite.Context()) as model:
        spec = model.get_model_info("spec")
    assert "openvino" not in spec and "999" in spec


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (1, "config must be dict"),
        ({1: {}}, "config_key must be str"),
        ({"configPath": 1}, "config_value must be str"),
        ({"a": "b"}, "config_value must be dict"),
        ({"a": {1: "b"}}, "config_value_key must be str"),
        ({"a": {"b": 1}}, "config_value_value must be str"),
    ],
)
def test_bad_configurations(config: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        infer(config=config)


def test_models_of_one_number_share_weights() -> None:
    with infer(model_group_id=7) as one, infer(model_group_id=7) as two, infer() as other:
        assert one._group is two._group is not None
        assert other._group is None
        np.testing.assert_array_equal(*(arrays(m.predict([X]))[0] for m in (one, two)))


def test_mindspore_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mindspore", None)
    with pytest.raises(ImportError, match=r"For 'LiteInfer', import mindspore fail\."):
        infer()


@pytest.mark.parametrize("wrong", [None, "net.mindir", 1])
def test_other_things_are_no_networks(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"should be ms\.train\.Model or ms\.nn\.Cell"):
        mslite.LiteInfer(wrong, Tensor(X))


def test_a_context_must_be_one() -> None:
    with pytest.raises(TypeError, match="context must be Context"):
        infer(context=mslite.Context().cpu)


def test_a_network_that_cannot_be_exported_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"build_from_file failed! Error is .*takes one input"):
        mslite.LiteInfer(Cell())
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_network_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    bad = tmp_path / "bad.mindir"
    bad.write_bytes(b"nonsense")
    with pytest.raises(RuntimeError, match="build_from_file failed! Error is "):
        mslite.LiteInfer(Cell(bad), Tensor(X))
    assert list((tmp_path / "tmp").iterdir()) == []
