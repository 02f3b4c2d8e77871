"""Small model files for tests of the public API."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.mindir_builder import Net, encode
from support.running import DATA

import mindspore_lite as mslite

MINDIR, ONNX = mslite.ModelType.MINDIR, mslite.ModelType.ONNX
MOBILENET = DATA / "models/mobilenet_v3_mini.mindir"
SWIN = DATA / "models/swin_mini.mindir"
DYN_BATCH = DATA / "nets/dyn_batch.mindir"
TWO_IN_TWO_OUT = DATA / "nets/io_two_in_two_out.mindir"
MIXED_TYPES = DATA / "nets/io_mixed_types.mindir"
DIGITS = Path(mslite.__file__).parent / "cli/data/digits.mindir"


def dense_net(rows: int = 2, factor: float = 1.0) -> bytes:
    """y = x @ (factor * ones(3, 4)) + 1 for x of shape (rows, 3); rows -1 is any number."""
    net = Net()
    x = net.input("x", (rows, 3))
    product = net.call("MatMulExt", x, net.weight("w", np.full((3, 4), factor, np.float32)))
    return encode(net.model(net.call("Add", product, net.constant(np.ones(4, np.float32)))))


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def built(
    path: Path,
    kind: mslite.ModelType = MINDIR,
    context: mslite.Context | None = None,
) -> mslite.Model:
    """A Model from a file; one thread unless the context says otherwise."""
    if context is None:
        context = mslite.Context()
        context.cpu.thread_num = 1
    model = mslite.Model()
    model.build_from_file(str(path), kind, context)
    return model
