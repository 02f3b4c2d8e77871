"""One model on several devices: a part of a batch for each goes in, the outputs of each come out.

Every device has a worker process. These messages go there and back:

    to the worker          answer
    BUILD                  BUILD_FINISH, or ERROR with the reason
    PREDICT with inputs    REPLY with outputs, or ERROR with the reason
    EXIT                   REPLY; then the worker prints a line and ends

A worker that died counts as one that answered ERROR: nobody waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from mslite_engine import MSLitePredict

from mindspore_lite.remote.devices.groups import masks
from mindspore_lite.remote.wire.frames import Message

LOG = logging.getLogger("messages")

# the message ids, 0 to 4 as in MindSpore Lite's example, and the one that begins a build
ERROR = Message.ERROR
PREDICT = Message.PREDICT
REPLY = Message.REPLY
BUILD_FINISH = Message.BUILD_FINISH
EXIT = Message.EXIT
BUILD = Message.BUILD


class ParallelPredictUtils:
    """The workers of all devices.

    Args:
        model_path: A MindIR file.
        device_num: How many devices; they are 0, 1, and so on.
        device_ids: Which devices instead.
        target: "ascend", or "cpu", where device i is the i-th group of the cores.
        timeout_s: Within which a prediction must be there; None waits as long as it takes.
    """

    def __init__(
        self,
        model_path: str,
        device_num: int = 2,
        *,
        device_ids: Sequence[int] | None = None,
        target: str = "cpu",
        timeout_s: float | None = None,
    ) -> None:
        self.device_ids = list(range(device_num) if device_ids is None else device_ids)
        if not self.device_ids:
            raise ValueError("there must be one device at least")
        # each process gets cores of its own; devices that are not there are found out here
        places = zip(self.device_ids, masks(target, self.device_ids), strict=True)
        self._builds = [
            (device_id, partial(MSLitePredict, model_path, device_id, target, cores))
            for device_id, cores in places
        ]
        self._timeout_s = timeout_s
        self._engines: list[MSLitePredict] = []

    def build_model(self) -> None:
        """Build the model on all devices at once; if one fails, all workers are ended."""
        answers = _ask_all(BUILD, BUILD_FINISH, self._builds)
        self._engines = [engine for message, engine in answers if message == BUILD_FINISH]
        for device_id, (message, content) in zip(self.device_ids, answers, strict=True):
            if message == ERROR:
                self.finalize()
                raise RuntimeError(
                    f"Failed to build model {device_id}, exception occur: {content}"
                ) from content
            print(f"Success to build model {device_id}", flush=True)

    @property
    def engines(self) -> list[MSLitePredict]:
        """The model on each device, in the order of the devices."""
        if not self._engines:
            raise RuntimeError("there are no workers; call build_model() first")
        return self._engines

    def run_predict(self, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        """Run the model on all devices at once, on the i-th with inputs[i]."""
        if len(inputs) != len(self.engines):
            raise ValueError(f"there are inputs for {len(inputs)} of {len(self.engines)} devices")
        runs = [
            (engine.device_id, partial(engine.run, part, self._timeout_s))
            for engine, part in zip(self.engines, inputs, strict=True)
        ]
        answers = _ask_all(PREDICT, REPLY, runs)
        for message, content in answers:
            if message == ERROR:
                raise RuntimeError(
                    f"Failed to call predict, exception occur: {content}"
                ) from content
        return [content for _, content in answers]

    def finalize(self) -> None:
        """End all workers that there are, and wait for them. Harmless when repeated."""
        engines, self._engines = self._engines, []
        # an ERROR means that the worker was dead: it is ended as well
        _ask_all(EXIT, REPLY, [(engine.device_id, engine.exit) for engine in engines])


def _ask_all(
    message: Message, good: Message, asks: Sequence[tuple[int, Callable[[], Any]]]
) -> list[tuple[Message, Any]]:
    """Ask the workers of some devices at once, and wait for every answer."""
    if not asks:
        return []
    with ThreadPoolExecutor(len(asks)) as threads:
        return list(threads.map(partial(_answer, message, good), *zip(*asks, strict=True)))


def _answer(
    message: Message, good: Message, device_id: int, ask: Callable[[], Any]
) -> tuple[Message, Any]:
    """(the good message, its content), or (ERROR, the reason)."""
    LOG.debug("to device %d: %s", device_id, message.name)
    try:
        answer = good, ask()
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is this worker's answer
        answer = ERROR, exc
    LOG.debug("from device %d: %s", device_id, answer[0].name)
    return answer
