"""The models of gpu.py: a name goes in, a PyTorch module with random weights or a MindIR comes out.

The MindIR is the PyTorch module, exported and converted: what a user would do. Its batch axis is
open. torchvision has the modules; it is not among the packages that mslite installs.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import warnings
from pathlib import Path
from typing import Any

import networks
import torch

import mindspore_lite as mslite

MODELS = {
    "ResNet-50": "resnet50",
    "MobileNetV2": "mobilenet_v2",
    "ViT-B/16": "vit_b_16",
}
SHAPE = (3, 224, 224)


def module(name: str) -> Any:
    """The PyTorch model, for inference, always with the same weights; a copy of its own."""
    return copy.deepcopy(_module(name))


@functools.cache
def _module(name: str) -> Any:
    import torchvision

    torch.manual_seed(0)
    made = getattr(torchvision.models, MODELS[name])()
    for layer in made.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):  # else it would be the identity
            torch.nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(layer.running_var, 0.8, 1.2)
        elif getattr(layer, "out_features", 0) == 1000:  # some models begin with zeros here
            torch.nn.init.normal_(layer.weight, std=0.02)
    for key, weight in made.named_parameters():  # adding zeros would be optimised away
        if key.endswith("bias"):
            torch.nn.init.uniform_(weight, -0.1, 0.1)
    return made.eval()


def mindir(name: str, folder: Path) -> Path:
    """The same model as MindIR, made once in a folder."""
    path = folder / f"{MODELS[name]}.mindir"
    if not path.exists():
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's
            _export(module(name), path.with_suffix(".onnx"))
            mslite.Converter().convert(
                mslite.FmkType.ONNX, str(path.with_suffix(".onnx")), str(path.with_suffix(""))
            )
    return path


def _export(made: Any, path: Path) -> None:
    torch.onnx.export(
        made,
        (torch.zeros(2, *SHAPE),),
        path,
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("rows", max=4096)},),
        input_names=["image"],
        output_names=["scores"],
        verbose=False,
    )


def bert(folder: Path) -> Path:
    """A model of the size of BERT-base, whose layers are written as MindSpore writes them."""
    return networks.bert(folder / "bert.mindir")
