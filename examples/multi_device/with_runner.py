"""The same job by MultiDeviceRunner: one call splits the batch, computes and joins.

Run: python examples/multi_device/with_runner.py

With an open batch the number of rows is free: here three of them go to two devices.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import numpy as np
from make_model import make_model

import mindspore_lite as mslite

ROWS = 3


def main(target: str, device_ids: list[int]) -> None:
    """Split a batch, and compare with a model that computes it in one piece."""
    random = np.random.default_rng(7)
    inputs = {
        "sample": random.standard_normal((ROWS, 4, 64, 64), np.float32),
        "timestep": np.array([50], np.float32),
        "encoder_hidden_states": random.standard_normal((ROWS, 77, 1024), np.float32),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "unet.mindir")
        with contextlib.redirect_stdout(sys.stderr):  # the converter reports success, too
            make_model(Path(path), open_batch=True)

        context = mslite.Context()
        context.target = [target]
        context.parallel.device_ids = device_ids
        with mslite.MultiDeviceRunner() as runner:
            runner.build_from_file(path, context)
            (found,) = runner.predict(inputs)
            for device in runner.statistics().devices:
                print(f"device {device.device} computed {device.done} part")

        with mslite.Model() as model:
            model.build_from_file(path, mslite.ModelType.MINDIR)
            (wanted,) = model.predict(inputs)
    apart = np.abs(found.get_data_to_numpy() - wanted.get_data_to_numpy()).max()
    print(f"{found.shape[0]} rows, at most {apart:.1e} from those of the unsplit model")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=["cpu", "ascend"], default="cpu")
    parser.add_argument("--devices", default="0,1", help="their numbers (default: 0,1)")
    given = parser.parse_args()
    main(given.target, [int(number) for number in given.devices.split(",")])
