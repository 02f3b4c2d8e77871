"""The models that the tests of C++ and Java use: a folder of files, made here.

Run: PYTHONPATH=tests python -m support.binding_models FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from support.mindir_builder import Net, encode
from support.models import DIGITS, TWO_IN_TWO_OUT, dense_net, looping, written
from support.split_builder import split

WIDE = 1 << 20


def relu_net(count: int) -> bytes:
    """y = max(x, 0) for x of one dim."""
    net = Net()
    return encode(net.model(net.call("ReLU", net.input("x", (count,)))))


def make_models(folder: Path) -> Path:
    """Write the files; returns the folder.

    digits.mindir    x (-1, 1, 8, 8) -> (-1, 10)
    dense.mindir     x (2, 3) -> y (2, 4): the sum of a row, and 1; its weight w may change
    any.mindir       the same with any number of rows
    wide.mindir      x (1048576) -> max(x, 0)
    two.mindir       two inputs, two outputs, as MindSpore exported it
    net_graph.mindir dense, its weights in net_variables/data_0
    loop.onnx        n and x (2) -> x after n turns
    garbage.mindir   no model
    modèle 模型.mindir  dense
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(DIGITS, folder / "digits.mindir")
    shutil.copy(TWO_IN_TWO_OUT, folder / "two.mindir")
    written(folder / "dense.mindir", dense_net())
    written(folder / "modèle 模型.mindir", dense_net())
    written(folder / "any.mindir", dense_net(-1))
    written(folder / "wide.mindir", relu_net(WIDE))
    split(dense_net(), folder)
    looping(folder / "loop.onnx")
    written(folder / "garbage.mindir", bytes(np.random.default_rng(0).bytes(4096)))
    return folder


if __name__ == "__main__":
    make_models(Path(sys.argv[1]))
