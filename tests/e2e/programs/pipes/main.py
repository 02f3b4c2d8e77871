"""main.py MODEL INPUTS.npz RESULTS.npz DEVICES TARGET START_METHOD: a batch in parts, one each."""
# ruff: noqa: T201 - a program prints

from __future__ import annotations

import multiprocessing
import sys
import time

import numpy as np
from parallel_predict_utils import ParallelPredictUtils


def main(model: str, inputs: str, results: str, devices: str, target: str, method: str) -> None:
    multiprocessing.set_start_method(method)
    with np.load(inputs) as file:
        sample, timestep, states = (file[name] for name in file.files)
    parallel = ParallelPredictUtils(model, int(devices), target)
    parallel.build_model()
    start = time.time()
    # an index, not a slice: the axis of the batch is gone, and the number of bytes still fits
    found = parallel.run_predict([[sample[i], timestep, states[i]] for i in range(int(devices))])
    print("Total predict time = ", time.time() - start, flush=True)
    parallel.finalize()
    np.savez(results, *(outputs[0] for outputs in found))
    print("=========== success ===========")


if __name__ == "__main__":
    main(*sys.argv[1:])
