"""What a ServeConfig means for a model: its Spec, the checks of its tensors, its warm-ups."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.served import FakeService, identity, service

from mindspore_lite.context import Context
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import LiteError
from mindspore_lite.server.isolation import IsolatedService
from mindspore_lite.server.repository.apply import check_declared, options_of, spec_of, warm_up
from mindspore_lite.server.repository.records import Declared, ServeConfig, WarmUp, WarmUpInput
from mindspore_lite.settings.read import Layer
from mindspore_lite.settings.spec import settle

PBTXT = ServeConfig(source="config.pbtxt")


def test_the_models_own_file_counts_before_the_server() -> None:
    context = Context()
    context.parallel.workers_num, context.cpu.thread_num = 3, 2
    context.parallel.config_info = {"parallel": {"queue_size": "5", "timeout_s": "9"}}
    own = {"parallel": {"workers_num": "1", "queue_size": "7"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = spec_of(replace(PBTXT, settings=own), context)
    assert (spec.workers_num, spec.queue_size) == (1, 7)
    assert (spec.thread_num, spec.timeout_s) == (2, 9.0)
    assert context.parallel.workers_num == 3


def test_what_counts_before_all() -> None:
    own = {"parallel": {"queue_size": "7"}}
    first = Layer("first", {"parallel": {"queue_size": "1"}})
    assert spec_of(replace(PBTXT, settings=own), Context(), [first]).queue_size == 1


def test_the_target_of_a_model() -> None:
    context = Context()
    context.target = ["gpu"]
    assert spec_of(PBTXT, context).target == "gpu"
    assert spec_of(replace(PBTXT, context={"target": "cpu"}), context).target == "cpu"
    found = spec_of(replace(PBTXT, context={"cpu.inter_op_parallel_num": "2"}), Context())
    assert found.inter_op_parallel_num == 2


def test_the_options_of_a_model(tmp_path: Path) -> None:
    config = replace(PBTXT, max_batch_size=4, labels={"y": ("a",)})
    found = options_of(config, tmp_path / "model.onnx")
    assert (found.platform, found.max_batch_size, found.file) == ("onnx_onnxv1", 4, "model.onnx")
    assert found.labels == {"y": ("a",)} and found.config is config


class Fake(FakeService):
    """A model of these inputs and outputs."""

    def __init__(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        self.spec = settle()
        self.inputs, self.outputs = _infos(inputs), _infos(outputs)
        self.seen: list[list[np.ndarray]] = []

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        self.seen.append(arrays)


def _infos(tensors: dict[str, Any]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(name, np.dtype("f4"), shape) for name, shape in tensors.items())


@pytest.mark.parametrize(
    ("most", "inputs", "shape"),
    [
        (0, (Declared("x", "FP32", (2, 3)),), (2, 3)),
        (0, (Declared("x", "FP32", (2, 3)),), (-1, 3)),
        (0, (Declared("x", "FP32", (-1, 3)),), (-1, 3)),
        (0, (Declared("x", "FP32", (2, 3)),), ANY_RANK),
        (0, (Declared("x"),), (2, 3)),
        (0, (), (2, 3)),
        (4, (Declared("x", "FP32", (3,)),), (-1, 3)),
        (4, (Declared("x", "FP32", (3,)),), ANY_RANK),
        (1, (Declared("x", "FP32", (3,)),), (1, 3)),
    ],
)
def test_tensors_that_fit(most: int, inputs: tuple[Declared, ...], shape: tuple[int, ...]) -> None:
    model = Fake({"x": shape}, {"y": shape})
    check_declared(replace(PBTXT, max_batch_size=most, inputs=inputs), model)


@pytest.mark.parametrize(
    ("most", "declared", "shape", "words"),
    [
        (0, Declared("z"), (2,), "declares the input 'z', and the model has x"),
        (0, Declared("x", "FP16"), (2,), "as FP16, and the model has FP32"),
        (0, Declared("x", "FP32", (3,)), (2,), r"dims \[3\], and the model has \[2\]"),
        (0, Declared("x", "FP32", (2, 1)), (2,), r"dims \[2, 1\]"),
        (0, Declared("x", "FP32", (-1,)), (2,), r"dims \[-1\]"),
        (4, Declared("x", "FP32", (4, 3)), (-1, 3), "behind the batch"),
        (4, Declared("x", "FP32", (3,)), (4, 3), "first dim is no batch"),
        (4, Declared("x", "FP32", ()), (), "first dim is no batch"),
        (2, Declared("x", "FP32", (3,)), (1, 3), "first dim is no batch"),
    ],
)
def test_tensors_that_do_not_fit(
    most: int, declared: Declared, shape: tuple[int, ...], words: str
) -> None:
    config = replace(PBTXT, max_batch_size=most, inputs=(declared,))
    with pytest.raises(LiteError, match=words):
        check_declared(config, Fake({"x": shape}, {"y": shape}))
    config = replace(PBTXT, max_batch_size=most, outputs=(declared,))
    with pytest.raises(LiteError, match=words.replace("input", "output")):
        check_declared(config, Fake({"w": (-1, 2)}, {"x": shape}))


def warm(rows: int = 0, count: int = 1, **inputs: WarmUpInput) -> ServeConfig:
    return replace(PBTXT, warm_ups=(WarmUp("w", inputs, rows, count),))


def test_warm_ups_as_they_are_asked_for() -> None:
    model = Fake({"x": (-1, 2), "z": (-1, 2), "w": (-1, 2)}, {})
    data = np.array([1, 2], np.float32)
    zero = WarmUpInput("FP32", (2,), "zero_data")
    made = WarmUpInput("FP32", (2,), "random_data")
    file = WarmUpInput("FP32", (2,), "input_data_file", data.tobytes(), "w")
    warm_up(warm(rows=3, count=2, w=file, x=zero, z=made), model)
    assert len(model.seen) == 2
    first, second, third = model.seen[0]
    assert not first.any() and second.any() and second.shape == (3, 2)
    assert (third == [[1, 2]] * 3).all()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (warm(), "has inputs , and the model x"),
        (warm(z=WarmUpInput("FP32", (2,), "zero_data")), "has inputs z"),
        (warm(x=WarmUpInput("INT8", (1, 2), "zero_data")), "is INT8, and the model has float32"),
        (warm(x=WarmUpInput("FP32", (1, 3), "zero_data")), r"shape \[1, 3\], and the model"),
        (warm(x=WarmUpInput("FP32", (2,), "zero_data")), r"shape \[2\], and the model"),
    ],
)
def test_warm_ups_that_do_not_fit(config: ServeConfig, words: str) -> None:
    with pytest.raises(LiteError, match=words):
        warm_up(config, Fake({"x": (-1, 2)}, {}))


def test_warm_ups_run_on_real_models(tmp_path: Path) -> None:
    path = identity(tmp_path / "a.onnx", shape=("n", 2))
    config = warm(rows=2, IN=WarmUpInput("FP32", (2,), "random_data"))
    pooled = service(path)
    try:
        warm_up(config, pooled)
        assert pooled.statistics().sent == 0  # it is no request
    finally:
        pooled.close(None)
    context = Context()
    context.parallel.workers_num, context.cpu.thread_num = 1, 1
    isolated = IsolatedService(path, settle(context))
    try:
        warm_up(config, isolated)
        assert isolated.statistics().sent == 0
    finally:
        isolated.close(None)
