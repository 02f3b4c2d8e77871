"""A wrong layout or size is an error in words, before anything is compiled, on every way in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.devices import on_devices
from support.models import ONNX, built, built_runner, conv_onnx, dense_net, dense_values, written
from support.workers import file_build, host_here, listening

import mindspore_lite as mslite
from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER
from mindspore_lite.serving import build
from mindspore_lite.serving.call import Call

NCHW = np.random.default_rng(0).random((1, 3, 8, 8), np.float32)
NHWC = np.ascontiguousarray(NCHW.transpose(0, 2, 3, 1))
Predict = Callable[[np.ndarray], list[np.ndarray]]


@contextmanager
def by_model(path: Path) -> Iterator[Predict]:
    with built(path, ONNX) as model:
        yield lambda x: [np.asarray(out) for out in model.predict([x])]


@contextmanager
def by_runner(path: Path) -> Iterator[Predict]:
    with built_runner(path, workers_num=1) as runner:
        yield lambda x: [np.asarray(out) for out in runner.predict([x])]


@contextmanager
def by_devices(path: Path) -> Iterator[Predict]:
    with on_devices(path) as runner:
        yield lambda x: [np.asarray(out) for out in runner.predict([x])]


@contextmanager
def by_worker(path: Path) -> Iterator[Predict]:
    socket = path.with_suffix(".sock")
    with listening(socket), mslite.connect(socket) as worker:
        runner = worker.build_from_file(path)
        yield lambda x: [np.asarray(out) for out in runner.predict([x])]


@contextmanager
def by_wire(path: Path, kind: int) -> Iterator[Predict]:
    """As clients in other languages: nothing is checked on this side."""
    with host_here() as here:
        model = here.session().build(file_build(path, 3, kind))

        def predict(x: np.ndarray) -> list[np.ndarray]:
            call = model.start(Call([x]))
            try:
                return [np.array(out) for out in call.outputs()]
            finally:
                call.release()

        yield predict


WAYS = {
    "Model": by_model,
    "ModelParallelRunner": by_runner,
    "MultiDeviceRunner": by_devices,
    "a worker's runner": by_worker,
    "a Model over the wire": lambda path: by_wire(path, MODEL),
    "a runner over the wire": lambda path: by_wire(path, RUNNER),
}


@pytest.mark.parametrize("way", WAYS)
def test_nhwc_into_nchw_is_refused(tmp_path: Path, way: str) -> None:
    with WAYS[way](conv_onnx(tmp_path / "conv.onnx")) as predict:
        (want,) = predict(NCHW)
        for flat in (NCHW.ravel(), NCHW[0]):
            np.testing.assert_array_equal(predict(flat)[0], want)
        for wrong in (NHWC, NHWC[0]):
            with pytest.raises(ShapeError, match=r"looks like NHWC, and NCHW is wanted") as caught:
                predict(wrong)
            assert caught.value.input_name == "x"
        np.testing.assert_array_equal(predict(NCHW)[0], want)


@pytest.fixture
def no_compiling(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it when the model is built: nothing is loaded for other sizes from then on."""

    def compiled(*args: object) -> None:
        raise AssertionError("the model was compiled for sizes that it cannot have")

    return lambda: monkeypatch.setattr(build, "_relaxed", compiled)


@pytest.mark.parametrize(
    ("shape", "given", "words"),
    [
        ((-1, 3, 8, 8), (2, 8, 8, 3), "looks like NHWC, and NCHW is wanted"),
        ((-1, 3, -1, -1), (2, 9, 7, 3), "looks like NHWC, and NCHW is wanted"),
        ((-1, 3, 8, 8), (2, 4, 8, 8), "'stem' gets 4 channels and has weights for 3"),
        ((-1, 3, 8, 8), (2, 3, 8), "give 4 dims"),
        ((-1, -1, -1, -1), (2, 8, 8, 3), "'stem' gets 8 channels and has weights for 3"),
    ],
)
def test_an_open_runner_refuses_without_compiling(
    tmp_path: Path,
    no_compiling: Callable[[], None],
    shape: tuple[int, ...],
    given: tuple[int, ...],
    words: str,
) -> None:
    with built_runner(conv_onnx(tmp_path / "conv.onnx", shape), workers_num=1) as runner:
        no_compiling()
        with pytest.raises(InputError, match=words) as caught:
            runner.predict([np.zeros(given, np.float32)])
        assert caught.value.input_name == "x"
        assert "ONNXRuntimeError" not in str(caught.value)
        assert "Non-zero status" not in str(caught.value)


def test_features_are_checked_against_the_weights(
    tmp_path: Path, no_compiling: Callable[[], None]
) -> None:
    path = written(tmp_path / "dense.mindir", dense_net(-1))
    with built_runner(path, workers_num=1) as runner:
        no_compiling()
        with pytest.raises(ShapeError, match="gets 5 features and has weights for 3"):
            runner.predict([np.zeros((2, 5), np.float32)])


def test_a_size_that_the_weights_allow_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    relaxed = build._relaxed

    def counted(*args: build.Built) -> object:
        made.append(args)
        return relaxed(*args)  # type: ignore[arg-type]

    with built_runner(conv_onnx(tmp_path / "conv.onnx"), workers_num=1) as runner:
        monkeypatch.setattr(build, "_relaxed", counted)
        for rows, size in ((2, 8), (2, 16), (3, 8), (5, 12)):
            (out,) = runner.predict([np.zeros((rows, 3, size, size), np.float32)])
            assert out.shape == [rows, 2, size, size]
    assert len(made) <= 2  # the rows are open after the first, height and width after the second


def test_an_array_of_as_many_numbers_is_another_size_for_a_runner(tmp_path: Path) -> None:
    """It was taken as it lies before: 3 rows of 2 as 2 rows of 3."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with built_runner(written(tmp_path / "d.mindir", dense_net(2)), workers_num=1) as runner:
        np.testing.assert_array_equal(np.asarray(runner.predict([x])[0]), dense_values(x))
