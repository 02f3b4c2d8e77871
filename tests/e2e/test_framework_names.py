"""Weights of a UNet by the names of all kinds of files, in all ways of export, as PyTorch has them.

The modules have the names of diffusers' UNet, of which this is one attention block with what lies
around it. Answers are compared with PyTorch's own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.updates import named

import mindspore_lite as mslite
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.weights.resolve import resolve

torch = pytest.importorskip("torch", exc_type=ImportError)

nn = torch.nn
WIDTH, TEXT = 8, 6
BLOCK = "down_blocks.1.attentions.0.transformer_blocks.0"
ORIGINAL = "input_blocks.4.1.transformer_blocks.0"  # the same block in the original's numbers
TO_Q, TO_K, TO_OUT = f"{BLOCK}.attn1.to_q", f"{BLOCK}.attn1.to_k", f"{BLOCK}.attn1.to_out.0"
CONV = "conv_in"
MODULES = (TO_Q, TO_K, TO_OUT, CONV)  # square; wide; in a row; a convolution


class Part(nn.Module):  # type: ignore[misc]
    """A module that calls the modules it has, one after the other."""

    def __init__(self, **inner: Any) -> None:
        super().__init__()
        for name, module in inner.items():
            self.add_module(name, module)

    def forward(self, *inputs: Any) -> Any:
        for module in self.children():
            inputs = (module(*inputs), *inputs[1:])
        return inputs[0]


class Row(nn.ModuleList):  # type: ignore[misc]
    def forward(self, *inputs: Any) -> Any:
        return self[-1](*inputs)


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.to_q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.to_k = nn.Linear(TEXT, WIDTH, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Dropout(0.0)])

    def forward(self, x: Any, text: Any) -> Any:
        scores = torch.softmax(self.to_q(x) @ self.to_k(text).transpose(1, 2), dim=-1)
        return x + self.to_out[0](scores @ self.to_k(text))


class UNet(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.conv_in = nn.Conv2d(4, WIDTH, 3, padding=1)
        self.down_blocks = nn.ModuleList(
            Part(
                attentions=Row(
                    [Part(transformer_blocks=Row([Part(attn1=Attention())]))] if level else []
                )
            )
            for level in (0, 1)
        )

    def forward(self, sample: Any, text: Any) -> Any:
        x = self.conv_in(sample).flatten(2).transpose(1, 2)
        return self.down_blocks[1](x, text)


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal((2, 4, 4, 4), np.float32), rng.standard_normal((2, 3, TEXT), "f")]


@pytest.fixture(scope="module")
def unet() -> Any:
    torch.manual_seed(1)
    return UNet().eval().requires_grad_(False)


@pytest.fixture(scope="module", params=["legacy", "wrapped", "dynamo", "dynamo wrapped"])
def exported(request: pytest.FixtureRequest, unet: Any, tmp_path_factory: Any) -> Path:
    """The same network as model.onnx and model.mindir."""
    folder = Path(tmp_path_factory.mktemp("exported"))
    given = Wrapper(unet) if "wrapped" in request.param else unet
    dynamo = "dynamo" in request.param
    more = {"external_data": False} if dynamo else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = tuple(map(torch.from_numpy, inputs()))
        torch.onnx.export(
            given, example, folder / "model.onnx", dynamo=dynamo, verbose=False, **more
        )
    mslite.Converter().convert(
        mslite.FmkType.ONNX, str(folder / "model.onnx"), str(folder / "model")
    )
    return folder


class Wrapper(nn.Module):  # type: ignore[misc]
    def __init__(self, unet: Any) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, sample: Any, text: Any) -> Any:
        return self.unet(sample, text) * 1.0


def built(path: Path, names: list[str], **more: str) -> mslite.Model:
    kind = mslite.ModelType.ONNX if path.suffix == ".onnx" else mslite.ModelType.MINDIR
    settings = {"common_context": {"variable_weights_list": ",".join(names), **more}}
    model = mslite.Model()
    model.build_from_file(str(path), kind, config_dict=settings)
    return model


def answer(model: Any) -> np.ndarray:
    (output,) = model.predict(inputs())
    return np.asarray(output.get_data_to_numpy())


def wanted(unet: Any, weights: dict[str, np.ndarray]) -> np.ndarray:
    """What PyTorch computes with other weights, by the names of its state_dict."""
    state = {**unet.state_dict(), **{k: torch.from_numpy(v) for k, v in weights.items()}}
    found = torch.func.functional_call(unet, state, tuple(map(torch.from_numpy, inputs())))
    return np.asarray(found)


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers small enough for a softmax to stay smooth."""
    return rng.standard_normal(shape, np.float32) * np.float32(0.3)


def new_weights(unet: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(6)
    state = unet.state_dict()
    return {f"{module}.weight": random(rng, *state[f"{module}.weight"].shape) for module in MODULES}


def close(found: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("suffix", [".onnx", ".mindir"])
def test_a_state_dict_is_taken_as_it_is(exported: Path, unet: Any, suffix: str) -> None:
    weights = new_weights(unet)
    path = exported / f"model{suffix}"
    with built(path, list(weights), variable_weights_layout="framework") as model:
        model.update_weights([[named(name, array) for name, array in weights.items()]])
        close(answer(model), wanted(unet, weights))


@pytest.mark.parametrize("suffix", [".onnx", ".mindir"])
def test_without_the_setting_a_square_weight_brings_one_warning(
    exported: Path, unet: Any, suffix: str
) -> None:
    weights = new_weights(unet)
    with built(exported / f"model{suffix}", list(weights)) as model:
        with pytest.warns(UserWarning, match="variable_weights_layout=framework") as caught:
            model.update_weights([[named(name, array) for name, array in weights.items()]])
        assert len(caught) == 1
        assert f"{TO_Q}.weight" in str(caught[0].message)
        turned = {name: w.T if w.shape == (WIDTH, WIDTH) else w for name, w in weights.items()}
        close(answer(model), wanted(unet, turned))  # taken as the graph has it, as in the original


FORMS: dict[str, Callable[[str], str]] = {
    "state_dict": lambda module: f"{module}.weight",
    "pipeline": lambda module: f"unet.{module}.weight",
    "PEFT": lambda module: f"base_model.model.{module}.lora_A.weight",
    "PEFT of a pipeline": lambda module: f"base_model.model.unet.{module}.lora_B.default.weight",
    "diffusers": lambda module: f"unet.{module}.lora.up.weight",
    "older diffusers": lambda module: (
        f"unet.{module.replace('attn1.', 'attn1.processor.').removesuffix('.0')}_lora.down.weight"
    ),
    "Kohya": lambda module: f"lora_unet_{module.replace('.', '_')}.lora_down.weight",
    "Kohya, original": lambda module: f"lora_unet_{original(module).replace('.', '_')}.alpha",
    "SGM": lambda module: f"model.diffusion_model.{original(module)}.weight",
    "SGM LoRA": lambda module: f"diffusion_model.{original(module)}.lora_up.weight",
}


def original(module: str) -> str:
    return "input_blocks.0.0" if module == CONV else module.replace(BLOCK, ORIGINAL)


@pytest.mark.parametrize("suffix", [".onnx", ".mindir"])
def test_every_form_of_a_name_is_found(exported: Path, unet: Any, suffix: str) -> None:
    weights = new_weights(unet)
    listed = [f"{module}.weight" for module in MODULES]
    path = exported / f"model{suffix}"
    forms = {form: [name_of(module) for module in MODULES] for form, name_of in FORMS.items()}
    arrays = [weights[name] for name in listed]
    with built(path, listed, variable_weights_layout="framework") as model:
        for names in forms.values():  # of tensors
            model.update_weights([list(map(named, names, arrays))])
            close(answer(model), wanted(unet, weights))
            model.update_weights([])
    found = source_of(ModelInput("ONNX" if suffix == ".onnx" else "MINDIR", path)).translate()
    for form, names in forms.items():  # of a list
        known = [one.parameter.name for one in resolve(found, [(name, "") for name in names])]
        assert [name.removeprefix("unet.") for name in known] == listed, form


def save_lora(path: Path, unet: Any, form: str) -> dict[str, np.ndarray]:
    """Write a LoRA; returns the merged weights at a scale of 0.5."""
    rng = np.random.default_rng(7)
    tensors, merged = {}, {}
    for module in MODULES:
        weight = unet.state_dict()[f"{module}.weight"].numpy()
        down = random(rng, 2, *weight.shape[1:])
        up = random(rng, weight.shape[0], 2, *[1] * (weight.ndim - 2))
        start, first, second = {
            "PEFT": (f"base_model.model.{module}", "lora_A", "lora_B"),
            "diffusers": (f"unet.{module}", "lora.down", "lora.up"),
            "Kohya": (f"lora_unet_{original(module).replace('.', '_')}", "lora_down", "lora_up"),
        }[form]
        tensors |= {f"{start}.{first}.weight": down, f"{start}.{second}.weight": up}
        if form == "Kohya":
            tensors[f"{start}.alpha"] = np.array(2, np.float32)
        delta = up.reshape(-1, 2) @ down.reshape(2, -1)
        merged[f"{module}.weight"] = weight + np.float32(0.5) * delta.reshape(weight.shape)
    save_file(tensors, path)
    return merged


@pytest.mark.parametrize("suffix", [".onnx", ".mindir"])
@pytest.mark.parametrize("form", ["PEFT", "diffusers", "Kohya"])
def test_a_lora_needs_no_setting_but_the_names(
    exported: Path, unet: Any, suffix: str, form: str, tmp_path: Path
) -> None:
    merged = save_lora(tmp_path / "lora.safetensors", unet, form)
    tensors = mslite.load_lora(tmp_path / "lora.safetensors", scale=0.5)
    with built(exported / f"model{suffix}", [tensor.name for tensor in tensors]) as model:
        model.update_weights([tensors])
        close(answer(model), wanted(unet, merged))
        convolution = [tensor for tensor in tensors if len(tensor.shape) == 4]
        model.update_weights([convolution])  # a set of its own: the others are as in the file
        close(answer(model), wanted(unet, {f"{CONV}.weight": merged[f"{CONV}.weight"]}))


ONE_EXPORT = pytest.mark.parametrize("exported", ["dynamo wrapped"], indirect=True)


@ONE_EXPORT
def test_a_compiled_model_knows_the_layout_without_the_file(
    exported: Path, unet: Any, tmp_path: Path
) -> None:
    path = tmp_path / "model.mindir"
    path.write_bytes((exported / "model.mindir").read_bytes())
    merged = save_lora(tmp_path / "lora.safetensors", unet, "PEFT")
    tensors = mslite.load_lora(tmp_path / "lora.safetensors", scale=0.5)
    names = [tensor.name for tensor in tensors]
    built(path, names).close()
    with built(path, names) as model:  # from the compile cache
        os.remove(path)
        model.update_weights([tensors])
        close(answer(model), wanted(unet, merged))


@ONE_EXPORT
@pytest.mark.parametrize("kind", [mslite.ModelParallelRunner, mslite.MultiDeviceRunner])
def test_runners_take_loras_and_the_setting(
    kind: Any, exported: Path, unet: Any, tmp_path: Path
) -> None:
    merged = save_lora(tmp_path / "lora.safetensors", unet, "Kohya")
    context = mslite.Context()
    context.parallel.config_info = {
        "common_context": {
            "variable_weights_list": ",".join(merged),
            "variable_weights_layout": "framework",
        }
    }
    with kind() as runner:
        runner.build_from_file(str(exported / "model.mindir"), context)
        runner.update_weights([mslite.load_lora(tmp_path / "lora.safetensors", scale=0.5)])
        close(answer(runner), wanted(unet, merged))
        runner.update_weights([])
        runner.update_weights([[named(name, array) for name, array in merged.items()]])
        close(answer(runner), wanted(unet, merged))


@ONE_EXPORT
def test_processes_hand_the_warning_on(exported: Path, unet: Any) -> None:
    weights = new_weights(unet)
    tensors = [named(name, array) for name, array in weights.items()]
    context = mslite.Context()
    context.parallel.config_info = {"common_context": {"variable_weights_list": ",".join(weights)}}
    with mslite.MultiDeviceRunner() as runner:
        runner.build_from_file(str(exported / "model.mindir"), context)
        with pytest.warns(UserWarning, match="variable_weights_layout=framework") as caught:
            runner.update_weights([tensors])
        assert len(caught) == 1
        assert caught[0].filename == __file__


@pytest.mark.parametrize("suffix", [".onnx", ".mindir"])
def test_errors_about_names_fit_on_a_screen_and_show_the_nearest(
    exported: Path, suffix: str
) -> None:
    wrong = [f"lora_unet_{TO_Q.replace('.', '_')}_{i}.lora_up.weight" for i in range(500)]
    with pytest.raises(RuntimeError) as caught:
        built(exported / f"model{suffix}", wrong)
    assert len(str(caught.value)) < 80 * 24
    assert "attn1.to_q" in str(caught.value).split("but", 1)[1]
    with built(exported / f"model{suffix}", [f"{TO_Q}.weight"]) as model:
        with pytest.raises(RuntimeError) as caught:
            model.update_weights([[named(name, np.ones((2, 2), "f")) for name in wrong]])
        assert len(str(caught.value)) < 80 * 24
        with pytest.raises(RuntimeError, match=r"but got \[2, 2\]"):
            model.update_weights([[named(f"{TO_Q}.weight", np.ones((2, 2), "f"))]])
