"""Tensors on a card: made, copied, passed to models and to other libraries.

The memory of card gpu:0 is the host's here, in PyTorch's hands; tests/engines/torch has the same
on a real one.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from support.fake_cards import FakeCards, gpu, installed, on_host
from support.models import DIGITS, dense_net, dense_values, written

import mindspore_lite as mslite
from mindspore_lite.errors import EngineUnavailableError, InputError
from mindspore_lite.tensor import DataType, Tensor

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch)


@pytest.fixture
def cards(card: None, monkeypatch: pytest.MonkeyPatch) -> FakeCards:
    made = installed(monkeypatch)
    made.on_host = True
    return made


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


def same(found: Tensor, wanted: np.ndarray) -> bool:
    array = found.get_data_to_numpy()
    return array.dtype == wanted.dtype and np.array_equal(array, wanted)


# --- one tensor -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("card")
def test_data_is_copied_to_the_card_and_back() -> None:
    array = ROWS.copy()
    tensor = Tensor(array, device="GPU:0")
    array[:] = 0
    assert (tensor.device, tensor.shape, tensor.dtype) == ("gpu:0", [2, 3], DataType.FLOAT32)
    assert same(tensor, ROWS)
    tensor.get_data_to_numpy()[:] = 7  # a copy
    assert same(tensor, ROWS)
    assert "device: gpu:0." in str(tensor)


@pytest.mark.usefixtures("card")
def test_a_new_buffer_holds_zeros_until_it_is_set() -> None:
    tensor = Tensor(shape=[2, 3], dtype=DataType.FLOAT32, device="gpu")
    assert tensor._filled() is None
    assert same(tensor, np.zeros((2, 3), np.float32))
    memory = tensor._card.data_ptr()
    tensor.set_data_from_numpy(ROWS.reshape(-1))
    assert same(tensor, ROWS)
    assert tensor._card.data_ptr() == memory  # others may hold it
    with pytest.raises(InputError, match="data size not equal"):
        tensor.set_data_from_numpy(ROWS[:1])


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("member", [m for m in DataType if m.value and m is not DataType.INVALID])
def test_every_element_type_can_lie_on_a_card(member: DataType) -> None:
    host = Tensor(shape=[3], dtype=member).get_data_to_numpy()
    host[:] = [0, 1, 1]
    assert same(Tensor(host, device="gpu:0"), host)
    assert same(Tensor(shape=[3], dtype=member, device="gpu:0"), np.zeros_like(host))


@pytest.mark.usefixtures("card")
def test_a_new_shape_keeps_the_data_if_it_holds_as_many() -> None:
    tensor = Tensor(ROWS, device="gpu:0")
    tensor.shape = [3, 2]
    assert same(tensor, ROWS.reshape(3, 2))
    tensor.shape = [2, 2]
    assert tensor._filled() is None
    tensor = Tensor(ROWS, device="gpu:0")
    tensor.dtype = DataType.INT32
    assert same(tensor, np.zeros((2, 3), np.int32))


@pytest.mark.usefixtures("card")
def test_a_tensor_of_a_tensor_is_a_copy_wherever_both_are() -> None:
    there = Tensor(ROWS, device="gpu:0")
    there.name = "x"
    host, other = Tensor(there), Tensor(there, device="gpu:0")
    back = Tensor(Tensor(ROWS), device="gpu:0")
    there.set_data_from_numpy(ROWS * 0)
    for tensor in (host, other, back):
        assert same(tensor, ROWS)
    assert [t.device for t in (host, other, back)] == ["None:-1", "gpu:0", "gpu:0"]
    assert (host.name, other.name) == ("x", "x")
    assert Tensor(Tensor(shape=[2], dtype=DataType.INT8, device="gpu:0")).device == "None:-1"
    assert same(copy.deepcopy(other), ROWS)


@pytest.mark.usefixtures("card")
def test_a_card_that_is_not_there_is_refused() -> None:
    with pytest.raises(EngineUnavailableError, match="there is no cpu:1"):
        Tensor(ROWS, device="gpu:1")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mindspore_lite.engines.torch.memory", raising=False)
    monkeypatch.delattr("mindspore_lite.engines.torch.memory", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'mslite\[gpu\]'"):
        Tensor(ROWS, device="gpu:0")


# --- other libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [ROWS.copy(), torch.arange(6.0).reshape(2, 3)])
def test_memory_of_the_host_is_shared_both_ways(source: Any) -> None:
    tensor = Tensor.from_dlpack(source)
    assert same(tensor, ROWS)
    source[0, 0] = 5
    assert tensor.get_data_to_numpy()[0, 0] == 5
    for taken in (np.from_dlpack(tensor), torch.from_dlpack(tensor)):
        tensor.get_data_to_numpy()[1, 2] += 1
        assert float(taken[1, 2]) == float(source[1, 2])
    assert tensor.__dlpack_device__() == (1, 0)
    assert tensor.device == "None:-1"


def test_bfloat16_passes_through_pytorch() -> None:
    source = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    tensor = Tensor.from_dlpack(source)
    assert tensor.dtype is DataType.BFLOAT16
    source[0] = 3
    assert same(tensor, np.array([3, 2], ml_dtypes.bfloat16))
    assert torch.equal(torch.from_dlpack(tensor), source)


def test_memory_that_is_not_in_order_is_copied() -> None:
    source = ROWS.copy()
    tensor = Tensor.from_dlpack(source.T)
    source[:] = 0
    assert same(tensor, np.ascontiguousarray(ROWS.T))


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ([1.0], TypeError, "array must be an array that has __dlpack__"),
        (torch.zeros(2, dtype=torch.complex64), TypeError, "Unsupported"),
        (torch.zeros(2, requires_grad=True), InputError, "cannot be taken over: .*grad"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(source: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        Tensor.from_dlpack(source)


class OnCard:
    """An array that says that it lies on a card."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor.__dlpack__()


@pytest.mark.usefixtures("card")
def test_memory_of_a_card_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    source = torch.arange(6.0).reshape(2, 3)
    monkeypatch.setattr(torch, "from_dlpack", lambda given: given.tensor)
    tensor = Tensor.from_dlpack(OnCard(source))
    assert (tensor.device, tensor.shape) == ("gpu:0", [2, 3])
    source[0, 0] = 9
    assert tensor.get_data_to_numpy()[0, 0] == 9
    assert tensor.__dlpack_device__()[1] == 0


# --- with models ----------------------------------------------------------------------------------


def on_card(array: np.ndarray) -> Tensor:
    return Tensor(array, device="gpu:0")


def test_inputs_on_the_card_stay_there_and_so_do_outputs(cards: FakeCards, dense: Path) -> None:
    x = np.random.default_rng(0).random((2, 3), np.float32)
    with mslite.Model() as model:
        model.build_from_file(str(dense), mslite.ModelType.MINDIR, gpu())
        (output,) = model.predict([on_card(x)])
        (host,) = model.predict([Tensor(x)])
        (reshaped,) = model.predict([on_card(x.reshape(6))])
    assert (output.device, host.device) == ("gpu:0", "None:-1")
    assert output.name == host.name
    for found in (output, host, reshaped):
        np.testing.assert_allclose(found.get_data_to_numpy(), dense_values(x), rtol=1e-5)
    assert cards.sessions[0].kinds == [["Tensor"], ["ndarray"], ["Tensor"]]


def test_outputs_are_filled_where_they_are(cards: FakeCards, dense: Path) -> None:
    x = np.random.default_rng(0).random((2, 3), np.float32)
    wanted = dense_values(x)
    with mslite.Model() as model:
        model.build_from_file(str(dense), mslite.ModelType.MINDIR, gpu())
        for given in (on_card(x), Tensor(x)):
            there = Tensor(shape=[2, 4], dtype=DataType.FLOAT32, device="gpu:0")
            other = Tensor(shape=[1], dtype=DataType.INT32, device="gpu:0")
            memory = np.zeros((2, 4), np.float32)
            for output in (there, other, Tensor(memory)):
                (found,) = model.predict([given], [output])
                assert found is output
                np.testing.assert_allclose(found.get_data_to_numpy(), wanted, rtol=1e-5)
            assert (there.device, other.device, other.shape) == ("gpu:0", "gpu:0", [2, 4])
            np.testing.assert_allclose(memory, wanted, rtol=1e-5)


def test_inputs_on_a_card_must_fit_the_model(cards: FakeCards, dense: Path) -> None:
    with mslite.Model() as model:
        model.build_from_file(str(dense), mslite.ModelType.MINDIR, gpu())
        with pytest.raises(InputError, match=r"on gpu:0 has type int32, .* wants float32 for"):
            model.predict([on_card(np.zeros((2, 3), np.int32))])
        with pytest.raises(InputError, match="data size not equal"):
            model.predict([on_card(np.zeros((3, 3), np.float32))])
        with pytest.raises(InputError, match="has no data"):
            model.predict([Tensor(shape=[2, 3], dtype=DataType.FLOAT32, device="gpu:0")])


@pytest.mark.usefixtures("card")
def test_a_model_on_the_cpu_fetches_what_lies_on_a_card(dense: Path) -> None:
    x = np.random.default_rng(0).random((2, 3), np.float32)
    with mslite.Model() as model:
        model.build_from_file(str(dense), mslite.ModelType.MINDIR)
        (output,) = model.predict([on_card(x)])
    assert output.device == "None:-1"
    np.testing.assert_allclose(output.get_data_to_numpy(), dense_values(x), rtol=1e-5)


def test_requests_on_the_card_join_only_with_such(cards: FakeCards) -> None:
    digits = np.random.default_rng(2).random((4, 1, 8, 8), np.float32)
    context = gpu(workers_num=1, max_batch_rows=2, max_batch_wait_us=60_000_000)
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context)
        given = [on_card(digits[:1]), digits[1:2], on_card(digits[2:3]), digits[3:]]
        futures = [runner.submit([one]) for one in given]
        found = [future.result(120)[0] for future in futures]
        (whole,) = runner.predict([digits])
        assert [tensor.device for tensor in found] == ["gpu:0", "None:-1"] * 2
        rows = np.concatenate([tensor.get_data_to_numpy() for tensor in found])
        np.testing.assert_allclose(rows, whole.get_data_to_numpy(), atol=1e-5)
    assert cards.sessions[0].joined == [2, 2]
    assert cards.sessions[0].kinds[-3:-1] == [["Tensor"], ["ndarray"]]


def test_a_runner_on_several_cards_fetches_inputs(cards: FakeCards) -> None:
    digit = np.zeros((1, 1, 8, 8), np.float32)
    with mslite.ModelParallelRunner() as runner:
        cards.on_host = False
        runner.build_from_file(str(DIGITS), gpu(device_ids=[0, 1]))
        (output,) = runner.predict([on_card(digit)])
    assert output.device == "None:-1"
