"""Stable Diffusion from text to picture, with a LoRA that is swapped between two pictures.

Run: python examples/stable_diffusion/main.py

    --networks torch               do without diffusers, which is used where it is installed
    --small                        two levels in the UNet instead of SD 2.1's four
    --target ascend                on Ascend devices; MSLITE_ASCEND=emulate does without a card

Text encoder, UNet and decoder have the structure of SD 2.1, small widths and random weights, so the
pictures are noise. They are exported from PyTorch and converted to MindIR. Each step asks the UNet
twice, with the text and without, and each of two devices computes one of the two rows. One LoRA
is a file in Kohya's form for UNet and text encoder, the other in that of diffusers, for the UNet
alone. Every picture is compared with the one that PyTorch makes from the merged weights.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import sys
import tempfile
import warnings

import numpy as np
import torch
from networks import SIDE, TEXT, TOKENS, WIDTHS, WORDS, Networks, networks
from safetensors.numpy import save_file

import mindspore_lite as mslite

RANK, ALPHA, SCALE, STEPS, GUIDANCE = 4, 2.0, 0.8, 3, 3.0
CONVERTED = ("attn1.to_q", "attn2.to_k", "to_out.0", "ff.net.2", "proj_in", "resnets.0.conv1")
IN_TEXT = ("q_proj", "v_proj")
LORAS = ("sketch", "photo")

Factors = dict[str, tuple[np.ndarray, np.ndarray]]  # of each module: down, up


def main(kind: str, small: bool, target: str) -> None:
    """Three pictures: without a LoRA, and with each of two."""
    made = networks(kind, (8, 16) if small else WIDTHS)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(sys.stderr):  # the converter reports success, too
            export(made)
        factors = {name: (random_factors(made.unet, CONVERTED, seed), random_factors(
            made.text_encoder, IN_TEXT, seed)) for seed, name in enumerate(LORAS)}  # fmt: skip
        save_kohya("sketch.safetensors", *factors["sketch"])
        save_diffusers("photo.safetensors", factors["photo"][0])
        factors["photo"] = factors["photo"][0], {}
        with Pipeline(target) as pipeline:
            show("without a LoRA", pipeline.picture(), made)
            for name in LORAS:
                pipeline.use(f"{name}.safetensors")
                show(name, pipeline.picture(), merged(made, *factors[name]))
            pipeline.reset()
            show("without a LoRA", pipeline.picture(), made)


# --- the models ----------------------------------------------------------------------------------


def export(made: Networks) -> None:
    """Write text_encoder.mindir, unet.mindir and vae.mindir; batches of the UNet stay open."""
    latent = torch.zeros(1, 4, SIDE, SIDE)
    words = torch.zeros(1, TOKENS, dtype=torch.int64)
    text = torch.zeros(2, TOKENS, TEXT)
    unet_inputs = (torch.zeros(2, 4, SIDE, SIDE), torch.zeros(1, dtype=torch.int64), text)
    rows = {"sample": {0: "rows"}, "encoder_hidden_states": {0: "rows"}}
    for name, module, inputs, names, open_dims in (
        ("text_encoder", made.text_encoder, (words,), ["input_ids"], {}),
        ("unet", made.unet, unet_inputs, ["sample", "timestep", "encoder_hidden_states"], rows),
        ("vae", made.vae, (latent,), ["latent_sample"], {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the older exporter is quick, and says that it is old
            torch.onnx.export(
                module, inputs, f"{name}.onnx", dynamo=False,
                input_names=names, dynamic_axes=open_dims,
            )  # fmt: skip
        mslite.Converter().convert(mslite.FmkType.ONNX, f"{name}.onnx", name)


class Pipeline:
    """The three models, and what goes between them."""

    def __init__(self, target: str) -> None:
        context = mslite.Context()
        context.target = [target]
        self.text_encoder, self.vae = mslite.Model(), mslite.Model()
        kind = mslite.ModelType.MINDIR
        self.text_encoder.build_from_file(
            "text_encoder.mindir", kind, context, config_dict=changing("text_encoder")
        )
        self.vae.build_from_file("vae.mindir", kind, context)
        context.parallel.device_ids = [0, 1]
        context.parallel.config_info = changing("unet")
        self.unet = mslite.MultiDeviceRunner()
        self.unet.build_from_file("unet.mindir", context)

    def use(self, path: str) -> None:
        """Swap the LoRA; a file without one for the text encoder leaves that as it was made."""
        self.unet.update_weights([mslite.load_lora(path, SCALE, part="unet")])
        try:
            self.text_encoder.update_weights([mslite.load_lora(path, SCALE, part="text_encoder")])
        except RuntimeError:
            self.text_encoder.update_weights([])

    def reset(self) -> None:
        """The weights of the files."""
        self.unet.update_weights([])
        self.text_encoder.update_weights([])

    def picture(self) -> np.ndarray:
        """Text to picture."""

        def ask(model: mslite.Model | mslite.MultiDeviceRunner, *inputs: np.ndarray) -> np.ndarray:
            (output,) = model.predict(list(inputs))
            return output.get_data_to_numpy()

        text = np.concatenate([ask(self.text_encoder, ids) for ids in prompts()])
        latent = first_latent()
        for step in steps():
            both = ask(self.unet, np.repeat(latent, 2, axis=0), np.array([step]), text)
            latent = denoised(latent, both)
        return ask(self.vae, latent)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        for model in (self.unet, self.text_encoder, self.vae):
            model.close()


def changing(part: str) -> dict[str, dict[str, str]]:
    """The configuration that lets the weights of all LoRAs change."""
    names: dict[str, None] = {}
    for lora in LORAS:
        with contextlib.suppress(RuntimeError):  # which has nothing for this part
            tensors = mslite.load_lora(f"{lora}.safetensors", part=part)
            names.update(dict.fromkeys(tensor.name for tensor in tensors))
    return {"ascend_context": {"variable_weights_list": ",".join(names)}}


# --- the same for both sides ---------------------------------------------------------------------


def prompts() -> list[np.ndarray]:
    """The words to avoid, and those of the picture."""
    random = np.random.default_rng(3)
    return [np.zeros((1, TOKENS), np.int64), random.integers(1, WORDS, (1, TOKENS))]


def first_latent() -> np.ndarray:
    """Noise."""
    return np.random.default_rng(4).standard_normal((1, 4, SIDE, SIDE), np.float32)


def steps() -> list[int]:
    """From much noise to little."""
    return [int(step) for step in np.linspace(900, 1, STEPS)]


def denoised(latent: np.ndarray, both: np.ndarray) -> np.ndarray:
    """A step away from the noise, further with the text than without."""
    without, guided = both[:1], both[1:]
    return np.asarray(latent - (without + GUIDANCE * (guided - without)) / STEPS)


# --- LoRAs ---------------------------------------------------------------------------------------


def random_factors(module: torch.nn.Module, ends: tuple[str, ...], seed: int) -> Factors:
    """A LoRA that nobody trained, by the names of modules without those that wrap the network."""
    random = np.random.default_rng(seed)
    found = {}
    for name, layer in module.named_modules():
        if name.endswith(ends) and isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            outer, *others = layer.weight.shape
            down = random.standard_normal((RANK, *others), np.float32) * np.float32(0.3)
            up = random.standard_normal((outer, RANK, *[1] * (len(others) - 1)), np.float32)
            found[name] = down, up * np.float32(0.3)
    return found


def bare(name: str) -> str:
    """A module's name in the network itself."""
    return name.removeprefix("unet.").removeprefix("text_encoder.")


def save_kohya(path: str, unet: Factors, text: Factors) -> None:
    """As Kohya's scripts save a LoRA: flat names, and alpha for each pair."""
    tensors: dict[str, np.ndarray] = {}
    for start, factors in (("lora_unet", unet), ("lora_te", text)):
        for name, (down, up) in factors.items():
            flat = f"{start}_{bare(name).replace('.', '_')}"
            tensors[f"{flat}.lora_down.weight"] = down
            tensors[f"{flat}.lora_up.weight"] = up
            tensors[f"{flat}.alpha"] = np.array(ALPHA, np.float32)
    save_file(tensors, path)


def save_diffusers(path: str, unet: Factors) -> None:
    """As diffusers saves a LoRA; alpha is the rank, so it is multiplied into one factor here."""
    tensors = {}
    for name, (down, up) in unet.items():
        tensors[f"unet.{bare(name)}.lora.down.weight"] = down
        tensors[f"unet.{bare(name)}.lora.up.weight"] = up * np.float32(ALPHA / RANK)
    save_file(tensors, path)


# --- what PyTorch makes of it --------------------------------------------------------------------


def merged(made: Networks, unet: Factors, text: Factors) -> Networks:
    """Copies of the networks with a LoRA in their weights."""
    found = copy.deepcopy(made)
    for module, factors in ((found.unet, unet), (found.text_encoder, text)):
        for name, (down, up) in factors.items():
            weight = module.get_submodule(name).weight
            product = up.reshape(up.shape[:2]) @ down.reshape(RANK, -1)
            delta = np.float32(SCALE * ALPHA / RANK) * product
            weight += torch.from_numpy(delta.reshape(weight.shape))  # type: ignore[operator]
    return found


def show(what: str, picture: np.ndarray, made: Networks) -> None:
    """Compare a picture with PyTorch's."""
    with torch.no_grad():
        text = torch.cat([made.text_encoder(torch.from_numpy(ids)) for ids in prompts()])
        latent = first_latent()
        for step in steps():
            twice = torch.from_numpy(np.repeat(latent, 2, axis=0))
            latent = denoised(latent, made.unet(twice, torch.tensor([step]), text).numpy())
        wanted = made.vae(torch.from_numpy(latent)).numpy()
    apart = np.abs(picture - wanted).max() / np.abs(wanted).max()
    print(f"{what}: mean {picture.mean():+.4f}, at most {apart:.0e} from PyTorch", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", choices=["", "diffusers", "torch"], default="")
    parser.add_argument("--small", action="store_true", help="two levels instead of four")
    parser.add_argument("--target", choices=["cpu", "ascend"], default="cpu")
    given = parser.parse_args()
    main(given.networks, given.small, given.target)
