"""The model on one device: arrays go in, arrays come out; a worker process computes.

The worker is one of those that mslite.MultiDeviceRunner is made of. Arrays reach it in memory that
both processes see, and no Python object is pickled. It ends when it is told to, and also when this
process ends, however that happens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np

import mindspore_lite as mslite
from mindspore_lite.errors import WorkerDiedError
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.wire.bodies import MODEL, Build
from mindspore_lite.serving import feeds
from mindspore_lite.settings.text import to_map

PATIENCE_S = 5.0  # for a worker to end


class MSLitePredict:
    """A model that is built in a worker process of its own."""

    def __init__(
        self, model_path: str, device_id: int, target: str = "cpu", cores: Sequence[int] = ()
    ) -> None:
        context = mslite.Context()
        context.target = [target]
        context.ascend.device_id = device_id
        build = Build(
            MODEL,
            mslite.ModelType.MINDIR.value,
            os.path.abspath(model_path),
            settings=to_map(context),
        )
        # what the worker prints comes to our standard output
        self._worker = WorkerProcess(device_id, cores, output=sys.stdout)
        try:
            self._model = self._worker.session.build(build)
        except BaseException as exc:
            self._worker.stop(PATIENCE_S)
            if isinstance(exc, WorkerDiedError):
                raise self._worker.died(PATIENCE_S) from exc  # which tells how
            raise
        self.device_id = device_id
        self.pid = self._worker.pid
        self.input_shapes = [info.shape for info in self._model.inputs]

    def run(self, arrays: Sequence[np.ndarray], timeout_s: float | None = None) -> list[np.ndarray]:
        """Run the model once.

        Raises:
            WorkerDiedError: The worker has ended; the error tells how.
            RequestTimeoutError: There was no answer in time.
            RuntimeError: The arrays do not fit the model, or it failed.
        """
        given = feeds.arrays(self._model.inputs, arrays)
        try:
            return self._model.predict(given, timeout_s)
        except WorkerDiedError as exc:
            raise self._worker.died(PATIENCE_S) from exc

    def exit(self) -> None:
        """End the worker.

        Raises:
            RuntimeError: It did not answer: it was dead, or has been killed now.
        """
        try:
            self._worker.session.exit("", PATIENCE_S)
        finally:
            self._worker.stop(PATIENCE_S)
