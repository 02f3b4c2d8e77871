"""Cloud-side quick start: a MindIR model and a file of raw input values in, its output printed.

Run: python examples/quick_start/main.py

With a model of your own: python examples/quick_start/main.py MODEL.mindir INPUT.bin
"""

import sys
from pathlib import Path

import numpy as np

import mindspore_lite as mslite

MODEL_PATH = str(Path(mslite.__file__).parent / "cli/data/digits.mindir")
IN_DATA_PATH = str(Path(__file__).parent / "input.bin")  # one handwritten digit, a seven
if len(sys.argv) > 2:
    MODEL_PATH, IN_DATA_PATH = sys.argv[1:3]

# where and how to run
context = mslite.Context()
context.target = ["cpu"]
context.cpu.thread_num = 1
context.cpu.thread_affinity_mode = 2

# load and compile
model = mslite.Model()
model.build_from_file(MODEL_PATH, mslite.ModelType.MINDIR, context)

# fill the input; this model leaves its batch open, which a resize settles
inputs = model.get_inputs()
if -1 in inputs[0].shape:
    model.resize(inputs, [[1 if dim == -1 else dim for dim in inputs[0].shape]])
in_data = np.fromfile(IN_DATA_PATH, dtype=np.float32)
inputs[0].set_data_from_numpy(in_data)

# run
outputs = model.predict(inputs)

# read
for output in outputs:
    name = output.name.rstrip()
    data_size = output.data_size
    element_num = output.element_num
    print(f"tensor's name is:{name} data size is:{data_size} tensor elements num is:{element_num}")
    data = output.get_data_to_numpy().flatten()
    print("output data is:", *data[:50])
