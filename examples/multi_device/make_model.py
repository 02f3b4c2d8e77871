"""Writes a MindIR file with the inputs of Stable Diffusion's UNet, small and untrained.

The network is that of examples/unet. Its batch is fixed at 1, as the guide for several cards asks
for: each of two devices gets one row of a batch of two. With --open-batch any number of rows will
do. The time step is a float, as that guide's program gives it.

Run: python examples/multi_device/make_model.py unet.mindir
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from pathlib import Path

import onnx_ir as ir

import mindspore_lite as mslite

MAKER = Path(__file__).parents[1] / "unet/make_model.py"
SHAPES = {
    "sample": [1, 4, 64, 64],
    "timestep": [1],
    "encoder_hidden_states": [1, 77, 1024],
}


def make_model(path: Path, open_batch: bool = False) -> None:
    """Write the file."""
    spec = importlib.util.spec_from_file_location("unet_maker", MAKER)
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    converter = mslite.Converter()
    if not open_batch:
        converter.input_shape = SHAPES
    with tempfile.TemporaryDirectory() as folder:
        onnx_file = Path(folder) / "model.onnx"
        ir.save(maker.unet(time_type=ir.DataType.FLOAT), onnx_file)
        converter.convert(mslite.FmkType.ONNX, str(onnx_file), str(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, nargs="?", default=Path("unet.mindir"))
    parser.add_argument("--open-batch", action="store_true", help="leave the number of rows open")
    given = parser.parse_args()
    make_model(given.path, given.open_batch)
