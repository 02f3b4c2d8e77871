"""conversion/quantise.py: settings, data, model and report together."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from support.models import DIGITS, SWIN
from support.quant_nets import cnn, mlp, normal
from support.running import DATA, op_types, run_graph

from mindspore_lite.conversion.measure import inputs_of, made_up_inputs
from mindspore_lite.conversion.quant_report import TopOne
from mindspore_lite.conversion.quant_settings import ANY, DataSettings
from mindspore_lite.conversion.quantise import QuantSettings, quantise, settings_of
from mindspore_lite.errors import InputError, SettingsError
from mindspore_lite.graph.source import ModelInput, source_of

KINDS = ["WEIGHT_QUANT", "DYNAMIC_QUANT", "FULL_QUANT"]


@pytest.fixture
def rows(tmp_path: Path) -> DataSettings:
    (tmp_path / "data").mkdir()
    for at in range(5):
        np.save(tmp_path / f"data/{at}.npy", normal(3, 64, seed=at))
    return DataSettings((("x", tmp_path / "data"),), "BIN")


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_says_what_was_done(kind: str, rows: DataSettings) -> None:
    model, steps = mlp(), list[str]()
    made, report = quantise(model, QuantSettings(kind, data=rows), steps.append)
    assert (report.kind, report.quantised, report.skipped) == (kind, 2, {})
    assert report.bytes_before == 4 * (64 * 48 + 48 + 48 * 24)
    assert report.bytes_after < 0.32 * report.bytes_before
    assert 0 < report.largest_difference < 0.03
    assert 0.999 < report.cosine < 1
    assert report.compared_on == "calibration data"
    assert steps[0] == "quantising"
    assert steps[-2:] == ["comparing", "looking for the layers that lose most"]
    assert op_types(model) == ["Gemm", "Relu", "MatMul"]  # the original is untouched
    worst = scale = 0.0
    for at in range(5):
        x = normal(3, 64, seed=at)
        (got,), (want,) = run_graph(made.clone(), x), run_graph(mlp(), x)
        worst, scale = max(worst, np.abs(got - want).max()), max(scale, np.abs(want).max())
    assert report.largest_difference == pytest.approx(worst / scale, rel=0.05)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_without_data_random_inputs_are_compared(kind: str) -> None:
    _, report = quantise(mlp(), QuantSettings(kind))
    assert report.compared_on == "random inputs"
    assert report.top_one is None  # of noise
    assert {one.name for one in report.layers} == {"fc1", "fc2"}
    assert 0 < report.largest_difference < 0.03


def test_constants_inside_of_nodes_are_weights_too() -> None:
    model = mlp()
    for name in ("w1", "w2"):
        value = model.graph.initializers.pop(name)
        tensor = value.const_value
        assert tensor is not None
        node = ir.node("Constant", [], {"value": tensor})
        node.outputs[0].name = f"{name}_constant"
        value.replace_all_uses_with(node.outputs[0])
        model.graph.insert_before(model.graph[0], node)
    _, report = quantise(model, QuantSettings("WEIGHT_QUANT"))
    assert report.quantised == 2


def test_settings_come_from_a_configuration(rows: DataSettings) -> None:
    settings = settings_of(
        {
            "common_quant_param": {"quant_type": "FULL_QUANT", "skip_quant_node": "fc2"},
            "data_preprocess_param": {
                "calibrate_path": f"x:{rows.folders[0][1]}",
                "calibrate_size": "4",
                "input_type": "BIN",
            },
        }
    )
    assert settings is not None
    _, report = quantise(mlp(), settings)
    assert (report.quantised, report.skipped) == (1, {"named in skip_quant_node": 1})


# --- wrong ----------------------------------------------------------------------------------------


def test_names_of_nodes_that_do_not_exist_are_told() -> None:
    settings = QuantSettings("WEIGHT_QUANT", skip=frozenset({"fc1", "fc3", "cf2"}))
    with pytest.raises(SettingsError) as caught:
        quantise(mlp(), settings)
    cf2, fc3 = caught.value.problems
    assert cf2.startswith("skip_quant_node names 'cf2', which is no node of the model")
    assert fc3.startswith("skip_quant_node names 'fc3', which is no node of the model")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            QuantSettings("WEIGHT_QUANT", min_weight_channels=100),
            "WEIGHT_QUANT found no weight to quantise: "
            "2 no more channels than min_quant_weight_channel",
        ),
        (QuantSettings("FULL_QUANT"), "needs calibration data"),
    ],
)
def test_nothing_to_do_is_told(settings: QuantSettings, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        quantise(mlp(), settings)


def test_a_model_without_weights_is_told(rows: DataSettings) -> None:
    model = mlp()
    for name in ("w1", "w2"):
        model.graph.inputs.append(model.graph.initializers[name])
    with pytest.raises(SettingsError, match="no constant weights in float32"):
        quantise(model, QuantSettings("DYNAMIC_QUANT"))


def test_data_for_another_input_are_told(rows: DataSettings) -> None:
    wrong = DataSettings((("z", rows.folders[0][1]),), "BIN")
    with pytest.raises(SettingsError, match="no folder for the input 'x'"):
        quantise(mlp(), QuantSettings("FULL_QUANT", data=wrong))


def test_a_bad_file_is_told(rows: DataSettings) -> None:
    (rows.folders[0][1] / "3.npy").write_bytes(b"bad")
    with pytest.raises(InputError, match=r"3\.npy is no array"):
        quantise(mlp(), QuantSettings("FULL_QUANT", data=rows))


# --- reports for the curious ----------------------------------------------------------------------


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", KINDS)
def test_three_tables_are_written(kind: str, rows: DataSettings, tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    _, report = quantise(mlp(), QuantSettings(kind, data=rows, debug_folder=folder))
    names = ["output_summary.csv", "quant_param.csv", "round_0.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    (output,) = table(folder / "output_summary.csv")
    assert (output["Round"], output["TensorName"]) == ("0", "y")
    assert float(output["CosineSimilarity"]) == report.cosine
    scales = [row for row in table(folder / "quant_param.csv") if row["TensorName"] == "w1"]
    assert len(scales) == 48
    first = scales[0]
    assert (first["NodeName"], first["NodeType"], first["Dims"]) == ("fc1", "Gemm", "64 48")
    assert (first["ElementsNum"], first["Bits"], first["ZeroPoint"]) == ("3072", "8", "0")
    assert float(first["CorrectionMean"]) == 0  # the numbers themselves are corrected
    rounds = table(folder / "round_0.csv")
    origin, restored = (
        next(row for row in rounds if row["TensorName"] == "w1" and row["DataTypeFlag"] == flag)
        for flag in ("Origin", "Dequant")
    )
    weight = normal(64, 48, scale=0.2)
    assert float(origin["Min"]) == pytest.approx(weight.min())
    assert float(origin["MAX"]) == pytest.approx(weight.max())
    assert float(origin["Median"]) == pytest.approx(np.median(weight))
    assert float(restored["Var"]) == pytest.approx(weight.var(), rel=1e-2)
    assert 0.999 < float(restored["CosineSimilarity"]) < 1
    activations = [row for row in rounds if row["TensorTypeFlag"] == "Activation"]
    wanted = {"x", "r", "y"} if kind == "FULL_QUANT" else set()
    assert {row["TensorName"] for row in activations} == wanted


def test_a_folder_that_cannot_be_made_is_told(rows: DataSettings, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    settings = QuantSettings("WEIGHT_QUANT", debug_folder=tmp_path / "file/sub")
    with pytest.raises(SettingsError, match=r"debug_info_save_path .* cannot be written"):
        quantise(mlp(), settings)


# --- a trained net --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / "digits_reference.npz") as file:
        return (file["images"] / 16).astype(np.float32), file["labels"]


@pytest.fixture
def right(digits: tuple[np.ndarray, np.ndarray]) -> Callable[[ir.Model], int]:
    def count(model: ir.Model) -> int:
        (probabilities,) = run_graph(model.clone(), digits[0])
        return int((probabilities.argmax(1) == digits[1]).sum())

    return count


@pytest.mark.parametrize("kind", KINDS)
def test_digits_are_still_recognised(
    kind: str,
    digits: tuple[np.ndarray, np.ndarray],
    right: Callable[[ir.Model], int],
    tmp_path: Path,
) -> None:
    model = source_of(ModelInput("MINDIR", DIGITS)).translate()
    for at in range(20):  # of 360
        np.save(tmp_path / f"{at:02}.npy", digits[0][at : at + 1])
    data = DataSettings((("x", tmp_path),), "BIN")
    made, report = quantise(model, QuantSettings(kind, data=data))
    before, after = right(model), right(made)
    print(f"{kind}: {before} of 360 digits right before, {after} after")  # noqa: T201
    assert before >= 350
    assert after >= before - 4
    assert report.cosine > 0.999


@pytest.mark.parametrize("kind", KINDS)
def test_a_transformer_with_slices_between_its_products_stays_near(
    kind: str, tmp_path: Path
) -> None:
    model = source_of(ModelInput("MINDIR", SWIN)).translate()
    (info,) = inputs_of(model)
    for seed in range(2):
        np.save(tmp_path / f"{seed}.npy", made_up_inputs([info], seed)[0])
    data = DataSettings(((info.name, tmp_path),), "BIN")
    _, report = quantise(model, QuantSettings(kind, data=data))
    assert report.quantised > 10
    assert report.cosine > 0.999


def test_pictures_calibrate_too(tmp_path: Path) -> None:
    from PIL import Image

    for at in range(4):
        pixels = np.random.default_rng(at).integers(0, 256, (20, 24, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{at}.png")
    settings = settings_of(
        {
            "common_quant_param": {"quant_type": "FULL_QUANT"},
            "data_preprocess_param": {
                "calibrate_path": f"x:{tmp_path}",
                "calibrate_size": "4",
                "input_type": "IMAGE",
                "image_to_format": "RGB",
                "normalize_mean": "[127.5, 127.5, 127.5]",
                "normalize_std": "[60, 60, 60]",
                "resize_width": "18",
                "resize_height": "18",
                "center_crop_width": "16",
                "center_crop_height": "16",
            },
        }
    )
    assert settings is not None
    _, report = quantise(cnn(), settings)
    assert report.quantised == 4
    assert report.cosine > 0.99


@pytest.mark.parametrize(
    ("count", "words"), [(5, "1 sample that was"), (10, "2 samples that were")]
)
def test_the_report_is_about_samples_that_did_not_calibrate(
    count: int, words: str, tmp_path: Path
) -> None:
    for at in range(count):
        np.save(tmp_path / f"{at:02}.npy", normal(3, 64, seed=at))
    data = DataSettings((("", tmp_path),), ANY, hold_out=True)
    made, report = quantise(mlp(), QuantSettings("FULL_QUANT", data=data))
    assert report.compared_on == f"{words} held out"
    wanted, found = [], []
    for at in range(4, count, 5):
        x = normal(3, 64, seed=at)
        found += run_graph(made.clone(), x)
        wanted += run_graph(mlp(), x)
    assert report.largest_difference == pytest.approx(
        max(np.abs(w - f).max() for w, f in zip(wanted, found, strict=True))
        / max(np.abs(w).max() for w in wanted),
        rel=0.05,
    )
    agreed = sum((w.argmax(1) == f.argmax(1)).sum() for w, f in zip(wanted, found, strict=True))
    assert report.top_one == TopOne("y", agreed, 3 * count // 5)
    assert {one.operator for one in report.layers} == {"Gemm", "MatMul"}
    assert all(0 < one.loss < 0.05 for one in report.layers)
