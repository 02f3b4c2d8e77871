"""LoRA adapters change the attention of a small transformer between requests.

Run: python examples/lora/main.py

The projections of its attention are named in a text file, by the names that they have in PyTorch.
Two adapters lie beside it as the PEFT library saves them: for each projection a matrix A (rank, in)
and a matrix B (out, rank). Merged, a weight is W + scale * B @ A. Here the sum is made by this
program and given to update_weights(); in mode delta, the product alone is given. Both lie as
PyTorch has them, which the configuration says. mslite.load_lora() does all of it in one call. The
answers are compared with those that NumPy computes from the merged weights.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from transformer import LAYERS, LENGTH, TOKENS, WIDTH, in_numpy, random_weights, write

import mindspore_lite as mslite

RANK, SCALE = 4, 2.0
PROJECTIONS = [
    f"layers.{layer}.attn.{part}_proj" for layer in range(LAYERS) for part in ("q", "k", "v", "out")
]
ADAPTERS = ("poetry", "law")


def main() -> None:
    """Ask the model under each set of weights."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        base = random_weights()
        with contextlib.redirect_stdout(sys.stderr):  # the converter reports success, too
            write(Path("transformer.mindir"), base)
        Path("names.txt").write_text("".join(f"{name}.weight\n" for name in PROJECTIONS))
        for seed, adapter in enumerate(ADAPTERS):
            save_adapter(f"{adapter}.safetensors", seed)
        print("the sum is given, which replaces a weight:")
        with built(mode="replace") as model:
            ask(model, "base", base)
            for adapter in ADAPTERS:
                deltas = products(f"{adapter}.safetensors")
                merged = {name: base[name] + delta for name, delta in deltas.items()}
                update(model, merged)
                ask(model, adapter, {**base, **merged})
            model.update_weights([])
            ask(model, "base", base)
        print("the product is given, which is added to a weight:")
        with built(mode="delta") as model:
            for adapter in ADAPTERS:
                deltas = products(f"{adapter}.safetensors")
                update(model, deltas)
                merged = {name: base[name] + delta for name, delta in deltas.items()}
                ask(model, adapter, {**base, **merged})


def save_adapter(path: str, seed: int) -> None:
    """An adapter that nobody trained."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for module in PROJECTIONS:
        for part, shape in {"lora_A": (RANK, WIDTH), "lora_B": (WIDTH, RANK)}.items():
            values = rng.standard_normal(shape, np.float32) * np.float32(0.3)
            tensors[f"base_model.model.{module}.{part}.weight"] = values
    save_file(tensors, path)


def products(path: str) -> dict[str, np.ndarray]:
    """What an adapter adds to each weight, by the weight's name."""
    given = {tensor.name: tensor.get_data_to_numpy() for tensor in mslite.load_weights(path)}
    return {
        f"{module}.weight": np.float32(SCALE)
        * (
            given[f"base_model.model.{module}.lora_B.weight"]
            @ given[f"base_model.model.{module}.lora_A.weight"]
        )
        for module in PROJECTIONS
    }


def built(mode: str) -> mslite.Model:
    """The model, with its projections named as weights that may change."""
    Path("config.ini").write_text(
        f'[ascend_context]\nvariable_weights_file="names.txt"\nvariable_weights_mode={mode}\n'
        "[common_context]\nvariable_weights_layout=framework\n"
    )
    model = mslite.Model()
    model.build_from_file("transformer.mindir", mslite.ModelType.MINDIR, None, "config.ini")
    return model


def update(model: mslite.Model, arrays: dict[str, np.ndarray]) -> None:
    """Give arrays to the model, as PyTorch has them: (out, in)."""
    tensors = []
    for name, array in arrays.items():
        tensor = mslite.Tensor(array)
        tensor.name = name
        tensors.append(tensor)
    model.update_weights([tensors])


def ask(model: mslite.Model, adapter: str, weights: dict[str, np.ndarray]) -> None:
    """One request; prints which token comes next, and how far off NumPy is."""
    tokens = np.random.default_rng(1).integers(0, TOKENS, (1, LENGTH))
    (scores,) = model.predict([tokens])
    found = scores.get_data_to_numpy()
    apart = np.abs(found - in_numpy(weights, tokens)).max()
    version = model.get_model_info("weights_version")
    print(
        f"  version {version}, {adapter}: next comes token {found[0, -1].argmax()}; "
        f"at most {apart:.0e} from NumPy"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    main()
