"""shared_weights.py MODEL TARGET START_METHOD: the guide's three processes, as users write them."""
# ruff: noqa: T201 - a program prints

import ctypes
import multiprocessing
import sys
import time
from multiprocessing import Array, Process, Value

import numpy as np

import mindspore_lite as mslite

PROCESS_NUM = 3


class MsliteModel:
    def __init__(self):
        self.model = mslite.Model()
        self.pid = self.model.get_model_info("current_pid")

    def __call__(self, inputs):
        self.ms_inputs = self.model.get_inputs()
        self.model.resize(self.ms_inputs, [list(one.shape) for one in inputs])
        for i in range(len(inputs)):
            self.ms_inputs[i].set_data_from_numpy(inputs[i])
        return [output.get_data_to_numpy() for output in self.model.predict(self.ms_inputs)]


def init_context(device_id, device_type):
    context = mslite.Context()
    context.target = [device_type]
    context.ascend.device_id = device_id
    return context


def thread_infer(index, model_path, target, shared_arr, share_pid, share_handle):
    print("index:", index, flush=True)
    inputs1 = [np.ones((3, 4, 8, 8), np.float32), np.ones(1, np.float32)]
    inputs1.append(np.ones((3, 7, 16), np.float32))
    context_1 = init_context(2, target)
    m1 = MsliteModel()
    if index == 0:
        while sum(pid != 0 for pid in share_pid) != PROCESS_NUM - 1:
            pass
        pids = [int(pid) for pid in share_pid]  # the own place holds a 0
        config_info = {"ascend_context": {"shareable_weight_pid_list": str(pids)[1:-1]}}
        m1.model.build_from_file(
            model_path, mslite.ModelType.MINDIR, context_1, config_dict=config_info
        )
        shareable_handle = m1.model.get_model_info("shareable_weight_mem_handle")
        share_handle.value = int(shareable_handle)
        print("share handle value:", share_handle.value, flush=True)
    else:
        share_pid[index] = int(m1.model.get_model_info("current_pid"))
        while share_handle.value == 0:
            pass
        config_info = {"ascend_context": {"shareable_weight_mem_handle": str(share_handle.value)}}
        m1.model.build_from_file(
            model_path, mslite.ModelType.MINDIR, context_1, config_dict=config_info
        )
    shared_arr[index] = 1
    while sum(shared_arr) != PROCESS_NUM:
        pass
    tic = time.time()
    res = m1(inputs1)
    toc = time.time()
    print("share ", index, " ", float(res[0].sum()), flush=True)
    print("share ", index, "spend time:", toc - tic, "s", flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[3])
    cells = (
        Array("i", [0] * PROCESS_NUM),
        Array("i", [0] * PROCESS_NUM),
        Value(ctypes.c_int64, 0),
    )
    processes = [
        Process(target=thread_infer, args=(i, *sys.argv[1:3], *cells)) for i in range(PROCESS_NUM)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))
