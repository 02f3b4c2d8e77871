"""Concurrent quick start: five clients share one model, and each sends it two requests.

Run: python examples/quick_start_parallel/main.py

With a model of your own: python examples/quick_start_parallel/main.py MODEL.mindir INPUT.bin
"""

import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np

import mindspore_lite as mslite

THREAD_NUM = 1  # of one worker
WORKERS_NUM = 3  # requests that run at the same time; a machine with fewer cores gives a warning
PARALLEL_NUM = 5  # clients
TASK_NUM = 2  # requests of each

MODEL_PATH = str(Path(mslite.__file__).parent / "cli/data/digits.mindir")
IN_DATA_PATH = str(Path(__file__).parent.parent / "quick_start/input.bin")  # a handwritten seven
if len(sys.argv) > 2:
    MODEL_PATH, IN_DATA_PATH = sys.argv[1:3]

# where and how to run
context = mslite.Context()
context.target = ["cpu"]
context.cpu.thread_num = THREAD_NUM
context.cpu.inter_op_parallel_num = THREAD_NUM
context.parallel.workers_num = WORKERS_NUM

# load and compile once, for all clients
model_parallel_runner = mslite.ModelParallelRunner()
model_parallel_runner.build_from_file(MODEL_PATH, context)


def parallel_runner_predict(parallel_runner, parallel_id):
    """One client: it fills an input, waits for the answer and shows it, TASK_NUM times."""
    for task_index in range(1, TASK_NUM + 1):
        inputs = parallel_runner.get_inputs()  # new ones, which no other client has
        in_data = np.fromfile(IN_DATA_PATH, dtype=np.float32)
        if -1 in inputs[0].shape:  # the model leaves its batch open: one row
            inputs[0].shape = [1 if dim == -1 else dim for dim in inputs[0].shape]
        inputs[0].set_data_from_numpy(in_data)

        start = time.time()
        outputs = parallel_runner.predict(inputs)
        once = time.time() - start

        lines = [
            f"parallel id:  {parallel_id}  | task index:  {task_index}  | run once time:  {once}  s"
        ]
        for output in outputs:
            name = output.name.rstrip()
            lines.append(
                f"tensor name is:{name} tensor size is:{output.data_size} "
                f"tensor elements num is:{output.element_num}"
            )
            data = output.get_data_to_numpy().flatten()
            lines.append(f"output data is: {' '.join(str(value) for value in data[:5])}")
        # in one piece, or the lines of several clients would mix
        print("\n".join([*lines, ""]), end="", flush=True)


threads = [
    Thread(target=parallel_runner_predict, args=(model_parallel_runner, number))
    for number in range(PARALLEL_NUM)
]
total_start = time.time()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("total run time: ", time.time() - total_start, " s")

# finish what runs, and free the memory
model_parallel_runner.close()
