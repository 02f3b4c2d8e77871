"""A small stand-in for the module `mindspore`, whose export writes a file of the test data."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from mindspore_lite.cli.demo import DIGITS_MODEL


class Cell:
    """A network that is a file; it has the mode and the flags of a real one."""

    def __init__(self, path: Path = Path(DIGITS_MODEL)) -> None:
        self.path = path
        self.training = False
        self.phase = "train"
        self.seen: list[bool] = []  # in which mode it was exported
        self.inner: list[Cell] = []

    def cells_and_names(self) -> list[tuple[str, Cell]]:
        return [("", self), *((f"{at}", cell) for at, cell in enumerate(self.inner))]

    def set_train(self, mode: bool = True) -> Cell:
        self.phase = "train" if mode else "predict"
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def add_flags(self, **flags: bool) -> None:
        vars(self).update(flags)


class Model:
    """What holds a network."""

    def __init__(self, network: Cell) -> None:
        self.predict_network = network


class Tensor:
    """An array with MindSpore's name for it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape

    def asnumpy(self) -> np.ndarray:
        return self.array


def export(net: Cell, *inputs: Any, file_name: str, file_format: str) -> None:
    """Copy the files of the network."""
    assert file_format == "MINDIR"
    if not inputs:
        raise ValueError("the network takes one input")
    net.seen.append(net.training)
    graph = net.path.name.endswith("_graph.mindir")
    shutil.copyfile(net.path, f"{file_name}_graph.mindir" if graph else f"{file_name}.mindir")
    if graph:
        stem = net.path.name.removesuffix("_graph.mindir")
        shutil.copytree(net.path.parent / f"{stem}_variables", f"{file_name}_variables")


def module() -> ModuleType:
    """The module to put into sys.modules."""
    made: Any = ModuleType("mindspore")
    made.nn, made.train = SimpleNamespace(Cell=Cell), SimpleNamespace(Model=Model)
    made.Tensor, made.export = Tensor, export
    found: ModuleType = made
    return found
