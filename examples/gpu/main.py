"""A model on an NVIDIA GPU: three clients send single rows, which run together as batches.

Run: python examples/gpu/main.py

Without a card, the same engine computes on the CPU, and says so. With a model of your own:
python examples/gpu/main.py MODEL.mindir INPUT.bin
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import mindspore_lite as mslite

CLIENTS = 3
MODEL_PATH = str(Path(mslite.__file__).parent / "cli/data/digits.mindir")
IN_DATA_PATH = str(Path(__file__).parent.parent / "quick_start/input.bin")  # a handwritten seven
if len(sys.argv) > 2:
    MODEL_PATH, IN_DATA_PATH = sys.argv[1:3]


def built(target, config_info):
    """A runner for a target."""
    context = mslite.Context()
    context.target = [target]
    context.parallel.workers_num = 1
    context.parallel.config_info = config_info
    if target == "gpu":
        context.gpu.device_id = 0
        context.gpu.precision_mode = "preferred_fp16"  # computes in halves; float32 in and out
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(MODEL_PATH, context)
    return runner


# load and compile; the second time the compiled kernels are found in the cache
try:
    runner = built("gpu", {})
    print("running on gpu 0")
except RuntimeError as exc:  # no card, no driver, no PyTorch for it: the error says which
    print(f"running on the CPU, because: {exc}")
    runner = built("cpu", {"common_context": {"engine": "torch"}})


def client(_):
    """One client, which sends one row and gets one row."""
    inputs = runner.get_inputs()
    inputs[0].shape = [1 if dim == -1 else dim for dim in inputs[0].shape]
    inputs[0].set_data_from_numpy(np.fromfile(IN_DATA_PATH, dtype=np.float32))
    (output,) = runner.predict(inputs)
    return output.get_data_to_numpy()


with ThreadPoolExecutor(CLIENTS) as pool:
    for number, answer in enumerate(pool.map(client, range(CLIENTS))):
        print(f"client {number}: the highest of {answer.size} values is number {answer.argmax()}")

# finish what runs, and free the memory
runner.close()
