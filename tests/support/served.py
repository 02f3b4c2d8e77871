"""Small models to serve: identities of one type, as ONNX files made by code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from support.onnx_graphs import model, node

from mindspore_lite.context import Context
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.server.models import ModelOptions, Models
from mindspore_lite.serving.pooled import PooledService
from mindspore_lite.settings.spec import settle

F32 = onnx.TensorProto.FLOAT


def identity(
    path: Path, elem_type: int = F32, shape: Sequence[int | str] = ("n",), inputs: int = 1
) -> Path:
    """A model that answers what it is given: IN as OUT, or IN0 as OUT0 and so on."""
    names = [("IN", "OUT")] if inputs == 1 else [(f"IN{i}", f"OUT{i}") for i in range(inputs)]
    made = model(
        [node("Identity", [a], [b]) for a, b in names],
        [(a, elem_type, list(shape)) for a, _ in names],
        [(b, elem_type, list(shape)) for _, b in names],
    )
    onnx.save(made, path)
    return path


def service(path: Path, workers: int = 1) -> PooledService:
    """A model file, served by so many workers of one thread."""
    context = Context()
    context.parallel.workers_num, context.cpu.thread_num = workers, 1
    return PooledService(ModelInput("ONNX", path), settle(context))


def identities(folder: Path) -> Models:
    """The models of the worked exchanges: id_fp32 (version 3) and id_batch (at most 4 rows)."""
    models = Models()
    plain = identity(folder / "id_fp32.onnx")
    rows = identity(folder / "id_batch.onnx", shape=("n", 3))
    models.load("id_fp32", "3", lambda: service(plain))
    models.load("id_batch", "1", lambda: service(rows), ModelOptions(max_batch_size=4))
    return models


def floats(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()
