"""conversion/quant_settings.py: every key, every check, all problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.conversion.quant_settings import (
    DataSettings,
    ImageSteps,
    QuantSettings,
    settings_of,
)
from mindspore_lite.errors import SettingsError

DATA = {"calibrate_path": "x:/data", "input_type": "BIN"}


def problems(**sections: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        settings_of(sections)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return list(caught.value.problems)


def full(**data: str) -> QuantSettings:
    found = settings_of(
        {"common_quant_param": {"quant_type": "FULL_QUANT"}, "data_preprocess_param": DATA | data}
    )
    assert found is not None
    return found


# --- good -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"registry": {"disable_fusion": "on"}},
        {"common_quant_param": {"bit_num": "8"}},
        {"weight_quant_param": {"per_channel": "false"}},
    ],
)
def test_without_a_type_nothing_is_quantised(config: dict[str, dict[str, str]]) -> None:
    assert settings_of(config) is None


def test_the_defaults_are_those_of_the_original() -> None:
    found = settings_of({"common_quant_param": {"quant_type": "WEIGHT_QUANT"}})
    assert found == QuantSettings(
        kind="WEIGHT_QUANT",
        per_channel=True,
        bias_correction=True,
        min_weight_size=0,
        min_weight_channels=16,
        skip=frozenset(),
        data=None,
        debug_folder=None,
    )


def test_settings_of_weights_are_read() -> None:
    found = settings_of(
        {
            "common_quant_param": {
                "quant_type": "WEIGHT_QUANT",
                "bit_num": "8",
                "min_quant_weight_size": "5000",
                "min_quant_weight_channel": "5",
                "skip_quant_node": "conv_1, fc",
                "debug_info_save_path": "/tmp/debug",
                "enable_encode": "False",
                "workspace": "/tmp",
            },
            "weight_quant_param": {
                "per_channel": "FALSE",
                "bias_correction": "False",
                "quant_strategy": "MAX_MIN",
                "update_mindir": "true",
                "max_segments": "4",
            },
            "mixed_bit_weight_quant_param": {"init_scale": "0.02", "max_iterations": "40"},
        }
    )
    assert found == QuantSettings(
        kind="WEIGHT_QUANT",
        per_channel=False,
        bias_correction=False,
        min_weight_size=5000,
        min_weight_channels=5,
        skip=frozenset({"conv_1", "fc"}),
        debug_folder=Path("/tmp/debug"),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MAX_MIN", "MAX_MIN"),
        ("KL", "KL"),
        ("REMOVAL_OUTLIER", "REMOVAL_OUTLIER"),
        ("RemovalOutlier", "REMOVAL_OUTLIER"),
    ],
)
def test_settings_of_full_quantisation_are_read(written: str, meant: str) -> None:
    found = settings_of(
        {
            "common_quant_param": {"quant_type": "FULL_QUANT"},
            "full_quant_param": {
                "activation_quant_method": written,
                "bias_correction": "false",
                "per_channel": "false",
                "target_device": "CPU",
                "enable_smooth_shift": "false",
            },
            "weight_quant_param": {"per_channel": "true"},
            "data_preprocess_param": DATA,
        }
    )
    assert found is not None
    assert (found.method, found.per_channel, found.bias_correction) == (meant, False, False)


def test_dynamic_quantisation_needs_no_more_than_its_type() -> None:
    found = settings_of(
        {
            "common_quant_param": {"quant_type": "DYNAMIC_QUANT"},
            "dynamic_quant_param": {"quant_strategy": "ALWC"},
            "transform_quant_param": {"export_precision_mode": "QUANT"},
        }
    )
    assert found is not None
    assert found.kind == "DYNAMIC_QUANT"


def test_every_image_step_is_read() -> None:
    found = full(
        input_type="IMAGE",
        calibrate_size="100",
        image_to_format="RGB",
        normalize_mean="[127.5, 127.5,127.5]",
        normalize_std="[1,2,-3e1]",
        resize_width="256",
        resize_height="250",
        resize_method="CUBIC",
        center_crop_width="224",
        center_crop_height="220",
    )
    image = ImageSteps("RGB", (127.5, 127.5, 127.5), (1, 2, -30), (256, 250), "CUBIC", (224, 220))
    assert found.data == DataSettings((("x", Path("/data")),), "IMAGE", 100, image)


def test_a_size_without_a_method_is_resized_linearly() -> None:
    assert full(resize_width="8", resize_height="9").data.image.method == "LINEAR"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in:/a", {"in": "/a"}),
        (" in : /a , in2:/b ", {"in": "/a", "in2": "/b"}),
        ("in:0:/a", {"in:0": "/a"}),
        ("in:'/a:b,c'", {"in": "/a:b,c"}),
        ("'in,0':/a,y:b", {"in,0": "/a", "y": "b"}),
        ("in:0:'C:/x',y:'d'", {"in:0": "C:/x", "y": "d"}),
    ],
)
def test_folders_of_inputs(text: str, found: dict[str, str]) -> None:
    data = full(calibrate_path=text).data
    assert data is not None
    assert {name: str(folder) for name, folder in data.folders} == found


# --- wrong ----------------------------------------------------------------------------------------

UNKNOWN = {
    "common_quant_param": "quant_typ",
    "weight_quant_param": "bit_num",
    "mixed_bit_weight_quant_param": "scale",
    "full_quant_param": "method",
    "dynamic_quant_param": "per_channel",
    "transform_quant_param": "precision_mode",
}


@pytest.mark.parametrize(("section", "key"), UNKNOWN.items())
def test_an_unknown_key_is_told_as_the_original_does(section: str, key: str) -> None:
    assert problems(**{section: {key: "1"}}) == [
        f"INPUT ILLEGAL: `{key}` is not supported in [{section}]"
    ]


def test_an_unknown_key_of_the_data_is_told_too() -> None:
    found = problems(data_preprocess_param=DATA | {"mean": "1"})
    assert found == ["INPUT ILLEGAL: `mean` is not supported in [data_preprocess_param]"]


WRONG = [
    ("common_quant_param", "quant_type", "weight_quant", "WEIGHT_QUANT or FULL_QUANT or DYNAMIC_"),
    ("common_quant_param", "bit_num", "17", "a whole number from 0 to 16"),
    ("common_quant_param", "bit_num", "8bit", "a whole number from 0 to 16"),
    ("common_quant_param", "bit_num", "-1", "a whole number from 0 to 16"),
    ("common_quant_param", "min_quant_weight_size", "65536", "a whole number from 0 to 65535"),
    ("common_quant_param", "min_quant_weight_channel", "", "a whole number from 0 to 65535"),
    ("common_quant_param", "enable_encode", "on", "true or false"),
    ("weight_quant_param", "per_channel", "1", "true or false"),
    ("weight_quant_param", "bias_correction", "no", "true or false"),
    ("weight_quant_param", "dequant_strategy", "LATER", "ON_THE_FLY"),
    ("weight_quant_param", "quant_strategy", "KL", "MAX_MIN or GPTQ"),
    ("weight_quant_param", "max_segments", "0", "a whole number from 1 to 65535"),
    ("mixed_bit_weight_quant_param", "init_scale", "1", "a number between 0 and 1"),
    ("mixed_bit_weight_quant_param", "init_scale", "x", "a number between 0 and 1"),
    ("mixed_bit_weight_quant_param", "auto_tune", "x", "true or false"),
    ("mixed_bit_weight_quant_param", "use_cv_data", "x", "true or false"),
    ("mixed_bit_weight_quant_param", "max_iterations", "39", "a whole number from 40 to 65535"),
    ("full_quant_param", "activation_quant_method", "kl", "MAX_MIN or KL or REMOVAL_OUTLIER"),
    ("full_quant_param", "target_device", "GPU", "CPU or KIRIN or NVGPU or DSP or ASCEND"),
    ("full_quant_param", "smooth_alpha", "nan", "a number"),
    ("dynamic_quant_param", "quant_strategy", "ALWL", "ALWC or ACWL"),
    ("transform_quant_param", "export_precision_mode", "INT8", "QUANT or FLOAT32"),
]
WRONG_DATA = [
    ("calibrate_path", "/data", "input:folder, several"),
    ("calibrate_path", "x:", "input:folder, several"),
    ("calibrate_path", ":/data", "input:folder, several"),
    ("calibrate_path", "x:/a,", "input:folder, several"),
    ("calibrate_path", "x:'/a", "input:folder, several"),
    ("calibrate_path", "x:/a,x:/b", "one folder for each input, 'x' has two"),
    ("calibrate_size", "0", "a whole number from 1 to 65535"),
    ("input_type", "NPY", "IMAGE or BIN"),
    ("image_to_format", "YUV", "RGB or GRAY or BGR"),
    ("normalize_mean", "1,2,3", "numbers such as [0.485, 0.456, 0.406]"),
    ("normalize_mean", "[1,,3]", "numbers such as [0.485, 0.456, 0.406]"),
    ("normalize_std", "[1,0,3]", "numbers other than 0: they divide"),
    ("resize_method", "AREA", "LINEAR or NEAREST or CUBIC"),
]


@pytest.mark.parametrize(("section", "key", "value", "wanted"), WRONG)
def test_a_wrong_value_says_got_and_wanted(section: str, key: str, value: str, wanted: str) -> None:
    (found,) = problems(**{section: {key: value}})
    assert found.startswith(f"[{section}] {key} is {value!r}, wanted {wanted}")


@pytest.mark.parametrize(("key", "value", "wanted"), WRONG_DATA)
def test_wrong_data_say_got_and_wanted(key: str, value: str, wanted: str) -> None:
    found = problems(data_preprocess_param=DATA | {key: value})[0]
    assert found.startswith(f"[data_preprocess_param] {key} is {value!r}, wanted {wanted}")


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("common_quant_param", "bit_num", "4"),
        ("common_quant_param", "bit_num", "16"),
        ("weight_quant_param", "dequant_strategy", "ON_THE_FLY"),
        ("weight_quant_param", "quant_strategy", "GPTQ"),
        ("weight_quant_param", "update_mindir", "false"),
        ("full_quant_param", "target_device", "KIRIN"),
        ("full_quant_param", "target_device", "NVGPU"),
        ("full_quant_param", "target_device", "DSP"),
        ("full_quant_param", "target_device", "ASCEND"),
        ("full_quant_param", "smooth_alpha", "0.5"),
        ("full_quant_param", "enable_smooth_shift", "true"),
        ("dynamic_quant_param", "quant_strategy", "ACWL"),
        ("transform_quant_param", "export_precision_mode", "FLOAT32"),
    ],
)
def test_a_legal_wish_that_is_not_carried_out_is_no_secret(
    section: str, key: str, value: str
) -> None:
    (found,) = problems(**{section: {key: value}})
    assert found.startswith(f"[{section}] {key}={value} is not carried out here; ")


def test_mixed_bits_are_not_carried_out() -> None:
    common = {"quant_type": "WEIGHT_QUANT", "bit_num": "0"}
    (found,) = problems(common_quant_param=common)
    assert "mixed bits (bit_num=0) are not carried out here; WEIGHT_QUANT uses 8 bits" in found


def test_full_quantisation_needs_data() -> None:
    assert problems(common_quant_param={"quant_type": "FULL_QUANT"}) == [
        "[data_preprocess_param] calibrate_path is missing",
        "[data_preprocess_param] input_type is missing",
    ]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ({"resize_width": "8"}, "resize_height is missing: both sides are needed"),
        ({"center_crop_height": "8"}, "center_crop_width is missing: both sides are needed"),
        ({"resize_method": "CUBIC"}, "resize_method needs resize_width and resize_height"),
        ({"normalize_mean": "[1]"}, "normalize_mean has 1 numbers, wanted 3: one for each channel"),
        (
            {"normalize_std": "[1,2,3]", "image_to_format": "GRAY"},
            "normalize_std has 3 numbers, wanted 1: one for each channel of GRAY",
        ),
    ],
)
def test_steps_that_do_not_go_together_are_told(steps: dict[str, str], words: str) -> None:
    (found,) = problems(data_preprocess_param=DATA | steps)
    assert words in found


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        common_quant_param={"quant_type": "FULL", "bits": "8", "bit_num": "99"},
        full_quant_param={"target_device": "DSP"},
        data_preprocess_param={"input_type": "IMAGE", "resize_width": "7"},
    )
    assert len(found) == 6
