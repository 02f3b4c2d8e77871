"""Conversions to other input sizes than the file has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.conversion import job, save
from support.models import arrays, built
from support.running import DATA

from mindspore_lite.conversion.convert import check, convert
from mindspore_lite.errors import LiteError, ShapeError

RANDOM = np.random.default_rng(3)
DENSE = RANDOM.normal(size=(48, 40)).astype(np.float32)


def classifier(path: Path) -> Path:
    """A network of batch 2, whose flattening is a Reshape to numbers as exporters write it."""
    port = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Reshape", ["a", "rows"], ["b"], name="flatten"),
        helper.make_node("MatMul", ["b", "w"], ["y"], name="dense"),
    ]
    weights = [
        numpy_helper.from_array(np.array([2, 48]), "rows"),
        numpy_helper.from_array(DENSE, "w"),
    ]
    return save(
        path,
        helper.make_graph(
            nodes,
            "net",
            [port("x", onnx.TensorProto.FLOAT, [2, 3, 4, 4])],
            [port("y", onnx.TensorProto.FLOAT, [2, 40])],
            weights,
        ),
    )


@pytest.mark.parametrize("kind", ["ONNX", "MINDIR"])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_batch_that_the_file_fixed_is_replaced(tmp_path: Path, kind: str, batch: int) -> None:
    model = classifier(tmp_path / "net.onnx")
    if kind == "MINDIR":
        model = convert(job(tmp_path, model=model, output=tmp_path / "two.mindir")).files[0]
    report = convert(job(tmp_path, framework=kind, model=model, shapes={"x": (batch, 3, 4, 4)}))
    assert report.done["sizes of inputs replaced"] == 1
    assert report.done["constants that followed them"] == 1
    assert check(report).relative < 1e-5
    x = RANDOM.normal(size=(batch, 3, 4, 4)).astype(np.float32)
    with built(report.files[0]) as result:
        (y,) = arrays(result.predict([x]))
    np.testing.assert_allclose(y, np.maximum(x, 0).reshape(batch, 48) @ DENSE, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["WEIGHT_QUANT", "DYNAMIC_QUANT"])
def test_quantisation_sees_the_new_sizes(tmp_path: Path, kind: str) -> None:
    model = classifier(tmp_path / "net.onnx")
    settings = {"common_quant_param": {"quant_type": kind, "min_quant_weight_size": "0"}}
    if kind == "WEIGHT_QUANT":
        settings["common_quant_param"]["bit_num"] = "8"
    report = convert(job(tmp_path, model=model, shapes={"x": (1, 3, 4, 4)}, settings=settings))
    assert report.quantised is not None and report.quantised.quantised == 1
    x = RANDOM.normal(size=(1, 3, 4, 4)).astype(np.float32)
    with built(report.files[0]) as result:
        assert result.get_inputs()[0].shape == [1, 3, 4, 4]
        (y,) = arrays(result.predict([x]))
    want = np.maximum(x, 0).reshape(1, 48) @ DENSE
    assert np.abs(y - want).max() < 0.05 * np.abs(want).max()


def test_a_quantised_mindir_takes_other_sizes(tmp_path: Path) -> None:
    model = classifier(tmp_path / "net.onnx")
    settings = {"common_quant_param": {"quant_type": "WEIGHT_QUANT", "bit_num": "8"}}
    first = convert(job(tmp_path, model=model, output=tmp_path / "small.mindir", settings=settings))
    report = convert(
        job(tmp_path, framework="MINDIR", model=first.files[0], shapes={"x": (3, 3, 4, 4)})
    )
    with built(report.files[0]) as result:
        assert arrays(result.predict([np.ones((3, 3, 4, 4), np.float32)]))[0].shape == (3, 40)


def test_a_layer_that_cannot_take_a_size_is_named(tmp_path: Path) -> None:
    model = classifier(tmp_path / "net.onnx")
    with pytest.raises(ShapeError, match="dense"):
        convert(job(tmp_path, model=model, shapes={"x": (2, 3, 4, 5)}))
    assert not (tmp_path / "net.mindir").exists()


def test_pads_of_a_mode_are_found_for_the_new_size(tmp_path: Path) -> None:
    """The exporter wrote down pads of mode 'same', which count for its own size alone."""
    source = DATA / "models" / "mobilenet_v3_mini.mindir"
    with built(source) as model:
        dims = tuple(model.get_inputs()[0].shape)
        other = (3, *dims[1:])
        x = RANDOM.normal(size=other).astype(np.float32)
        model.resize(model.get_inputs(), [list(other)])
        want = arrays(model.predict([x]))
    name = "x"
    with built(source) as model:
        name = model.get_inputs()[0].name
    report = convert(job(tmp_path, framework="MINDIR", model=source, shapes={name: other}))
    with built(report.files[0]) as result:
        got = arrays(result.predict([x]))
    for one, two in zip(got, want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_what_inference_does_not_see_is_tried(tmp_path: Path) -> None:
    """The first state of an LSTM is a constant for the exported batch."""
    source = DATA / "nets" / "lstm.mindir"
    with built(source) as model:
        names = [(i.name, i.shape) for i in model.get_inputs()]
    shapes = {name: (5, *dims[1:]) for name, dims in names}
    with pytest.raises(LiteError, match=r"the result does not run: .*LSTM"):
        convert(job(tmp_path, framework="MINDIR", model=source, shapes=shapes))
    assert not (tmp_path / "net.mindir").exists()
