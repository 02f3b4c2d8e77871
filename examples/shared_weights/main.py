"""One copy of the weights for several processes: the flow of MindSpore Lite's example.

Run: python examples/shared_weights/main.py

    --processes 4                  the first one shares its weights with the three others
    --unlisted 2                   process 2 is left out of the list, and is refused
    --target ascend --device 2     on an Ascend device; MSLITE_ASCEND=emulate does without a card
    --start-method fork            how the processes begin (default: spawn)

With a model of your own: python examples/shared_weights/main.py MODEL.mindir
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.context import BaseContext

import numpy as np

import mindspore_lite as mslite
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.tensor import ms_to_numpy_data_type_map

TIMEOUT_S = 600.0  # a process that does not come along is an error then


def say(*words: object) -> None:
    """Print a line in one piece, for other processes print as well."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Meeting:
    """What the processes tell each other: their ids, the handle, and how far they are."""

    def __init__(self, processes: BaseContext, count: int) -> None:
        self.share_pid = processes.Array("i", [0] * count)
        self.share_handle = processes.Value(ctypes.c_int64, 0)
        self.shared_arr = processes.Array("i", [0] * count)  # 1: has built its model, or cannot
        self.changed = processes.Condition()

    def tell_pid(self, index: int, pid: int) -> None:
        """Leave an id for the first process."""
        with self.changed:
            self.share_pid[index] = pid
            self.changed.notify_all()

    def tell_handle(self, handle: int) -> None:
        """Leave the handle for the others."""
        with self.changed:
            self.share_handle.value = handle
            self.changed.notify_all()

    def wait_pids(self) -> list[int]:
        """The ids of all processes but the first, whose place holds a 0."""
        self._wait(lambda: sum(pid != 0 for pid in self.share_pid) == len(self.share_pid) - 1)
        return list(self.share_pid)

    def wait_handle(self) -> int:
        """The handle, when the first process has built its model."""
        self._wait(lambda: self.share_handle.value != 0)
        if self.share_handle.value < 0:
            raise RuntimeError("the first process could not build its model")
        return int(self.share_handle.value)

    def wait_built(self, index: int) -> None:
        """Wait for all: the first process must be there until the others have built theirs."""
        with self.changed:
            self.shared_arr[index] = 1
            self.changed.notify_all()
        self._wait(lambda: sum(self.shared_arr) == len(self.shared_arr))

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            if not self.changed.wait_for(condition, TIMEOUT_S):
                raise TimeoutError(f"the other processes did not come along in {TIMEOUT_S:g} s")


class MsliteModel:
    """A model that is given arrays, of whatever shape."""

    def __init__(self) -> None:
        self.model = mslite.Model()
        self.pid = self.model.get_model_info("current_pid")

    def __call__(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Run it once."""
        ms_inputs = self.model.get_inputs()
        self.model.resize(ms_inputs, [list(array.shape) for array in inputs])
        for tensor, array in zip(ms_inputs, inputs, strict=True):
            tensor.set_data_from_numpy(array)
        return [output.get_data_to_numpy() for output in self.model.predict(ms_inputs)]

    def made_up_inputs(self) -> list[np.ndarray]:
        """Random numbers, the same in every process; sizes that are open are 1."""
        random = np.random.default_rng(7)
        return [
            random.uniform(0, 2, [max(1, dim) for dim in tensor.shape]).astype(
                ms_to_numpy_data_type_map[tensor.dtype]
            )
            for tensor in self.model.get_inputs()
        ]


def thread_infer(index: int, meeting: Meeting, given: argparse.Namespace) -> None:
    """What each process does; that with index 0 shares its weights with the others."""
    say("index:", index)
    context = mslite.Context()
    context.target = [given.target]
    context.ascend.device_id = given.device
    say("begin model group")
    say("*" * 10, "begin build model", "*" * 10)
    m1 = MsliteModel()
    build = partial(m1.model.build_from_file, given.model, mslite.ModelType.MINDIR, context)
    try:
        if index == 0:
            pids = meeting.wait_pids()
            if given.unlisted:
                pids[given.unlisted] = 0
            say("str of pids:", str(pids)[1:-1])
            build(config_dict={"ascend_context": {"shareable_weight_pid_list": str(pids)[1:-1]}})
            shareable_handle = m1.model.get_model_info("shareable_weight_mem_handle")
            say("shareable handle:", shareable_handle)
            meeting.tell_handle(int(shareable_handle))
            say("int shareable_handle:", int(shareable_handle))
            say("share handle value:", meeting.share_handle.value)
        else:
            say("pid:", m1.pid)
            meeting.tell_pid(index, int(m1.pid))
            handle = meeting.wait_handle()
            say("sub process sharehandle:", handle)
            build(config_dict={"ascend_context": {"shareable_weight_mem_handle": str(handle)}})
    except RuntimeError as exc:
        say("share ", index, " ", exc)
        if index == 0:
            meeting.tell_handle(-1)  # the others wait for it
        meeting.wait_built(index)
        sys.exit(index == 0)
    meeting.wait_built(index)
    tic = time.time()
    res = m1(m1.made_up_inputs())
    toc = time.time()
    say("share ", index, " ", res)
    say("share ", index, "spend time:", toc - tic, "s")


def main() -> None:
    """Run the example as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default=str(DIGITS_MODEL), help="a MindIR file")
    parser.add_argument("--processes", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--unlisted", type=int, default=0, help="a process that is left out")
    parser.add_argument("--target", choices=["cpu", "ascend"], default="cpu")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--start-method", choices=["spawn", "fork"], default="spawn")
    given = parser.parse_args()
    processes = multiprocessing.get_context(given.start_method)
    meeting = Meeting(processes, given.processes)
    started = [
        processes.Process(target=thread_infer, args=(index, meeting, given))
        for index in range(given.processes)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(any(process.exitcode for process in started))


if __name__ == "__main__":
    main()
