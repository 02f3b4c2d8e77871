"""weights/lora.py and load_lora: pairs of factors become what is added to weights, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save, save_file

import mindspore_lite as mslite
from mindspore_lite.weights import lora

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(8, dtype=np.float32).reshape(4, 2)
PRODUCT = B @ A


def saved(path: Path, tensors: Mapping[str, np.ndarray], **texts: str) -> Path:
    save_file(dict(tensors), path, metadata=texts or None)
    return path


def loaded(path: Path, **more: Any) -> dict[str, np.ndarray]:
    return {t.name: t.get_data_to_numpy() for t in mslite.load_lora(path, **more)}


def pair(module: str, down: str = "lora_A", up: str = "lora_B") -> dict[str, np.ndarray]:
    return {f"{module}.{down}.weight": A, f"{module}.{up}.weight": B}


@pytest.mark.parametrize(
    ("tensors", "module"),
    [
        (pair("base_model.model.enc.fc"), "base_model.model.enc.fc"),
        (pair("enc.fc", "lora_A.default", "lora_B.default"), "enc.fc"),
        (pair("lora_unet_mid_block_fc", "lora_down", "lora_up"), "lora_unet_mid_block_fc"),
        (pair("unet.fc", "lora.down", "lora.up"), "unet.fc"),
        (pair("te.fc", "lora_linear_layer.down", "lora_linear_layer.up"), "te.fc"),
        (
            {
                "unet.a.processor.to_q_lora.down.weight": A,
                "unet.a.processor.to_q_lora.up.weight": B,
            },
            "unet.a.processor.to_q",
        ),
    ],
)
def test_all_forms_of_names_are_read(
    tensors: dict[str, np.ndarray], module: str, tmp_path: Path
) -> None:
    found = loaded(saved(tmp_path / "x.safetensors", tensors))
    assert found.keys() == {f"{module}.lora_delta.weight"}
    np.testing.assert_array_equal(found[f"{module}.lora_delta.weight"], PRODUCT)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_alpha_counts_by_the_rank_and_scale_as_it_is(shape: Any, tmp_path: Path) -> None:
    tensors = {**pair("fc", "lora_down", "lora_up"), "fc.alpha": np.full(shape, 8, np.float16)}
    path = saved(tmp_path / "x.safetensors", tensors)
    np.testing.assert_array_equal(loaded(path, scale=0.5)["fc.lora_delta.weight"], PRODUCT * 2)


def test_a_convolution_has_its_size_in_the_first_factor(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    down, up = rng.standard_normal((2, 3, 3, 3), np.float32), B[:, :, None, None]
    tensors = {"c.lora_down.weight": down, "c.lora_up.weight": up}
    found = loaded(saved(tmp_path / "x.safetensors", tensors))["c.lora_delta.weight"]
    np.testing.assert_allclose(found, np.einsum("or,rihw->oihw", B, down), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_factors_of_any_float_are_merged_in_float32(dtype: Any, tmp_path: Path) -> None:
    wide = np.full((1, 1), 300, dtype)  # whose square float16 does not hold
    tensors = {"fc.lora_A.weight": wide, "fc.lora_B.weight": wide}
    (tensor,) = mslite.load_lora(saved(tmp_path / "x.safetensors", tensors))
    assert tensor.dtype == mslite.DataType.FLOAT32
    assert tensor.get_data_to_numpy() == np.float32(wide) ** 2


# --- what PEFT says elsewhere ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "factor"),
    [
        ({"lora_alpha": 8, "r": 2}, 4.0),
        ({"lora_alpha": 8, "use_rslora": True}, 8 / np.sqrt(2)),
        ({"lora_alpha": 8, "alpha_pattern": {"fc": 2}}, 1.0),
        ({"lora_alpha": 8, "alpha_pattern": {"^enc.fc": 2, "c": 1}}, 1.0),
        ({"lora_alpha": 8, "alpha_pattern": {"c": 2}}, 4.0),
        ({"lora_alpha": 8, "init_lora_weights": "gaussian"}, 4.0),
        ({"lora_alpha": 8, "init_lora_weights": True, "alora_invocation_tokens": None}, 4.0),
        ({}, 1.0),
    ],
)
def test_the_configuration_next_to_the_file_counts(
    config: Mapping[str, Any], factor: float, tmp_path: Path
) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    path = saved(tmp_path / "adapter_model.safetensors", pair("base_model.model.enc.fc"))
    (found,) = loaded(path).values()
    np.testing.assert_allclose(found, PRODUCT * factor, rtol=1e-6)


@pytest.mark.parametrize(("name", "factor"), [("adapter_model", 4), ("another", 1)])
def test_the_configuration_is_that_of_names_or_of_a_file_of_pefts(
    name: str, factor: float, tmp_path: Path
) -> None:
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 8}')
    (found,) = loaded(saved(tmp_path / f"{name}.safetensors", pair("enc.fc"))).values()
    np.testing.assert_array_equal(found, PRODUCT * factor)


def test_a_parameter_that_lies_turned_round_gets_a_product_that_does(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 2, "fan_in_fan_out": true}')
    path = saved(tmp_path / "x.safetensors", pair("base_model.model.fc"))
    np.testing.assert_array_equal(loaded(path)["base_model.model.fc.lora_delta.weight"], PRODUCT.T)


def test_diffusers_keeps_the_configuration_of_each_part_in_the_file(tmp_path: Path) -> None:
    tensors = {**pair("unet.fc"), **pair("text_encoder.fc")}
    config = json.dumps({"unet.lora_alpha": 4, "text_encoder.lora_alpha": 6})
    path = saved(tmp_path / "x.safetensors", tensors, lora_adapter_metadata=config)
    found = loaded(path)
    np.testing.assert_array_equal(found["unet.fc.lora_delta.weight"], PRODUCT * 2)
    np.testing.assert_array_equal(found["text_encoder.fc.lora_delta.weight"], PRODUCT * 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "adapter_config.json makes no sense"),
        ("[]", "it holds a list, wanted an object"),
        ('{"lora_alpha": "8"}', "alpha is '8', wanted a number"),
        ('{"lora_alpha": NaN}', "alpha is nan, wanted a number"),
        ('{"lora_alpha": 8, "alpha_pattern": {".*(a+)+$": 1}}', "wanted names of modules"),
        ('{"lora_alpha": 8, "use_dora": true}', "DoRA is not merged here"),
        ('{"lora_alpha": 8, "init_lora_weights": "pissa_niter_4"}', "weights that PEFT changed"),
        ('{"lora_alpha": 8, "init_lora_weights": "olora"}', "save it with path_initial_model"),
        ('{"lora_alpha": 8, "alora_invocation_tokens": [1, 2]}', "aLoRA"),
        (" " * (1 << 20) + "{}", "1048578 bytes, wanted at most 1048576"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_an_error(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "adapter_config.json").write_text(text)
    path = saved(tmp_path / "x.safetensors", pair("base_model.model.fc"))
    with pytest.raises(RuntimeError, match=words):
        mslite.load_lora(path)


# --- parts of a pipeline --------------------------------------------------------------------------


def test_a_part_is_taken_without_those_of_others(tmp_path: Path) -> None:
    tensors = {
        **pair("lora_unet_a", "lora_down", "lora_up"),
        **pair("lora_te1_b", "lora_down", "lora_up"),
        **pair("lora_te2_c", "lora_down", "lora_up"),
    }
    path = saved(tmp_path / "x.safetensors", tensors)
    found = {part: [*loaded(path, part=part)] for part in lora.PARTS}
    assert found == {
        "unet": ["lora_unet_a.lora_delta.weight"],
        "text_encoder": ["lora_te1_b.lora_delta.weight"],
        "text_encoder_2": ["lora_te2_c.lora_delta.weight"],
    }
    assert len(loaded(path)) == 3
    only = saved(tmp_path / "y.safetensors", pair("unet.a"))
    with pytest.raises(RuntimeError, match="no pair of LoRA factors for part 'text_encoder'"):
        mslite.load_lora(only, part="text_encoder")


@pytest.mark.parametrize("alpha", [np.array(4), np.array(4, np.uint8), np.array([4.0])])
@pytest.mark.parametrize("scale", [np.float32(0.5), 0.5])
def test_numbers_may_be_of_any_type(alpha: np.ndarray, scale: float, tmp_path: Path) -> None:
    path = saved(
        tmp_path / "x.safetensors", {**pair("fc", "lora_down", "lora_up"), "fc.alpha": alpha}
    )
    np.testing.assert_array_equal(loaded(path, scale=scale)["fc.lora_delta.weight"], PRODUCT)


# --- files that are no LoRA, or a bad one ---------------------------------------------------------


def with_nan(array: np.ndarray) -> np.ndarray:
    return np.where(array == 1, np.nan, array).astype(np.float32)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"fc.lora_A.weight": A}, r"'fc': its factor lora_B \(up\) is missing"),
        ({"fc.lora_up.weight": B}, r"'fc': its factor lora_A \(down\) is missing"),
        ({**pair("fc"), "fc.weight": A}, "'fc.weight' is no name of PEFT's, Kohya's or diffusers'"),
        ({**pair("fc"), "fc.dora_scale": A}, "'fc.dora_scale' belongs to DoRA, which is not"),
        ({"fc.hada_w1_a": A}, "belongs to LoHa"),
        ({"fc.lokr_w1": A}, "belongs to LoKr"),
        ({**pair("c"), "c.lora_mid.weight": A}, "belongs to LoCon"),
        ({"fc.lora_A.weight": A, "fc.lora_B.weight": B.T}, r"ranks differ: \[2, 3\] and \[2, 4\]"),
        ({"fc.lora_A.weight": A[0], "fc.lora_B.weight": B}, "have no product"),
        ({"fc.lora_A.weight": A[:0], "fc.lora_B.weight": B[:, :0]}, "have no product"),
        ({"fc.lora_A.weight": with_nan(A), "fc.lora_B.weight": B}, "that are not finite"),
        ({**pair("fc"), "fc.alpha": np.array([np.inf], np.float32)}, "that are not finite"),
        ({**pair("fc"), "fc.alpha": np.ones(2, np.float32)}, "'fc.alpha' has 2 numbers, wanted 1"),
        ({**pair("fc"), "gc.alpha": np.ones(1, np.float32)}, "'gc.alpha' belongs to no pair"),
        ({"fc.lora_A.weight": A.astype(np.int8), "fc.lora_B.weight": B}, "is of type int8, wanted"),
        ({**pair("fc"), **pair("fc", "lora_A.x", "lora_B.x")}, "there twice, of two adapters"),
        ({"fc.lora_A.weight": A * 1e30, "fc.lora_B.weight": B * 1e30}, "too large for float32"),
        (
            {"c.lora_A.weight": A[..., None, None], "c.lora_B.weight": np.ones((4, 2, 3, 3), "f")},
            "wanted a size of 1",
        ),
        ({}, "holds no pair of LoRA factors"),
    ],
)
def test_what_cannot_be_merged_is_an_error(
    tensors: dict[str, np.ndarray], words: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "x.safetensors", tensors)
    with pytest.raises(RuntimeError, match=words) as caught:
        mslite.load_lora(path)
    assert str(path) in str(caught.value)


def test_a_small_file_cannot_ask_for_vast_products(tmp_path: Path) -> None:
    thin = np.zeros((1, 1 << 17), np.float16)
    path = saved(tmp_path / "x.safetensors", {"a.lora_A.weight": thin, "a.lora_B.weight": thin.T})
    with pytest.raises(RuntimeError, match=r"have 68719476736 bytes, and at most 17179869184"):
        mslite.load_lora(path)


def test_an_error_fits_on_a_screen(tmp_path: Path) -> None:
    tensors = {f"{'very_long_module_name.' * 30}{i}.weight": A for i in range(500)}
    with pytest.raises(RuntimeError) as caught:
        mslite.load_lora(saved(tmp_path / "x.safetensors", tensors))
    text = str(caught.value)
    assert "and 49" in text
    assert len(text) < 80 * 24


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    data = save(pair("fc"))
    for damaged in (b"", data[:-1], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(RuntimeError, match=r"no \.safetensors file|an empty file"):
            mslite.load_lora(path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n")
    with pytest.raises(RuntimeError, match=r"git lfs pull"):
        mslite.load_lora(path)
    pickled = tmp_path / "x.pt"
    pickled.write_bytes(b"")
    with pytest.raises(RuntimeError, match="such a file may be a pickle"):
        mslite.load_lora(pickled)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"scale": "1"}, TypeError, "scale must be float"),
        ({"scale": True}, TypeError, "scale must be float"),
        ({"scale": 10**400}, ValueError, "scale must be finite"),
        ({"scale": float("nan")}, ValueError, "scale must be finite"),
        ({"part": "vae"}, ValueError, "part must be one of unet, text_encoder, text_encoder_2"),
    ],
)
def test_arguments_are_checked(
    more: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "x.safetensors", pair("fc"))
    with pytest.raises(error, match=words):
        mslite.load_lora(path, **more)
    with pytest.raises(TypeError, match="path must be str"):
        mslite.load_lora(3)  # type: ignore[arg-type]
