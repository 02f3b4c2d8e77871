"""One model on one device: arrays go in, arrays come out."""

from __future__ import annotations

import numpy as np

import mindspore_lite as mslite


class MSLitePredict:
    """A built model."""

    def __init__(self, model_path: str, device_id: int, target: str) -> None:
        context = mslite.Context()
        context.target = [target]
        context.ascend.device_id = device_id
        self.model = mslite.Model()
        self.model.build_from_file(model_path, mslite.ModelType.MINDIR, context)

    def run(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        inputs = self.model.get_inputs()
        for tensor, array in zip(inputs, arrays, strict=True):
            tensor.set_data_from_numpy(array)
        return [output.get_data_to_numpy() for output in self.model.predict(inputs)]
