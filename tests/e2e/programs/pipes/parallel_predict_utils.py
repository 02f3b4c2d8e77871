"""A process per device, and a pipe to each: lists of inputs go in, lists of outputs come out."""
# ruff: noqa: T201 - a program prints

from __future__ import annotations

from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection

import numpy as np
from mslite_engine import MSLitePredict

ERROR, PREDICT, REPLY, BUILD_FINISH, EXIT = range(5)


def predict_process_func(pipe: Connection, model_path: str, device_id: int, target: str) -> None:
    """What each child does."""
    try:
        worker = MSLitePredict(model_path, device_id, target)
        pipe.send((BUILD_FINISH, ""))
        while True:
            kind, message = pipe.recv()
            if kind == EXIT:
                # in one piece: the other child may print just now, and Python be unbuffered
                print(f"Receive exit message {message} and start to exit\n", end="", flush=True)
                return
            pipe.send((REPLY, worker.run(message)))
    except Exception as exc:  # noqa: BLE001 - the parent raises it
        pipe.send((ERROR, str(exc)))


class ParallelPredictUtils:
    """The children, seen from their parent."""

    def __init__(self, model_path: str, device_num: int, target: str) -> None:
        self.model_path, self.target = model_path, target
        self.pipes = [Pipe() for _ in range(device_num)]
        self.processes: list[Process] = []

    def build_model(self) -> None:
        for device_id, (_, theirs) in enumerate(self.pipes):
            arguments = (theirs, self.model_path, device_id, self.target)
            process = Process(target=predict_process_func, args=arguments, daemon=True)
            process.start()
            self.processes.append(process)
        for device_id in range(len(self.pipes)):
            self.answer(device_id, BUILD_FINISH, f"Failed to build model {device_id}")
            print(f"Success to build model {device_id}", flush=True)

    def run_predict(self, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        for (ours, _), given in zip(self.pipes, inputs, strict=True):
            ours.send((PREDICT, given))
        return [self.answer(i, REPLY, "Failed to call predict") for i in range(len(self.pipes))]

    def answer(self, device_id: int, wanted: int, failed: str) -> list[np.ndarray]:
        kind, message = self.pipes[device_id][0].recv()
        if kind == ERROR:
            raise RuntimeError(f"{failed}, exception occur: {message}")
        assert kind == wanted
        return message

    def finalize(self) -> None:
        for ours, _ in self.pipes:
            ours.send((EXIT, ""))
        for process in self.processes:
            process.join()
