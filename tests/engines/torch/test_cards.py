"""Cards as torch shows them: what is there, and what is said when it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mindspore_lite.engines.torch import cards
from mindspore_lite.engines.torch.cards import Card, check, listed
from mindspore_lite.errors import EngineError, EngineUnavailableError


class FakeDevice:
    """torch.device, which knows "npu" only with torch_npu."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.type, _, number = text.partition(":")
        self.index = int(number)

    def __str__(self) -> str:
        return self.text


class FakeModule:
    """torch.cuda, or torch.npu, with so many cards."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count, self.error = count, error

    def init(self) -> None:
        if self.error is not None:
            raise self.error

    def device_count(self) -> int:
        return self.count

    def get_device_name(self, device: torch.device) -> str:
        return f"Card {device.index}"

    def get_device_properties(self, device: torch.device) -> Any:
        kind = {"name": "A card", "major": 9, "minor": 0, "multi_processor_count": 132}
        return SimpleNamespace(**kind, uuid=device.index)

    def mem_get_info(self, device: torch.device) -> tuple[int, int]:
        return 5, 1000 + device.index


def fake_torch(
    count: int = 2, error: Exception | None = None, cuda: str | None = "13.0", kind: str = "cuda"
) -> Any:
    return SimpleNamespace(
        __version__="2.11.0",
        version=SimpleNamespace(cuda=cuda),
        device=FakeDevice,
        OutOfMemoryError=torch.OutOfMemoryError,
        **{kind: FakeModule(count, error)},
    )


def refusal(device: str, **more: Any) -> str:
    with pytest.raises(EngineUnavailableError) as told:
        check(device, fake_torch(**more))
    return str(told.value)


def test_cards_of_one_kind_take_the_same_code() -> None:
    first, second = (Card(f"cuda:{number}", fake_torch()) for number in range(2))
    assert first.properties() == second.properties() == "A card 9.0 132"
    assert first.identity() != second.identity()


def test_cards_that_are_there_are_listed() -> None:
    check("cuda:1", fake_torch())
    found = listed("cuda", fake_torch())
    assert [(c.device, c.name, c.memory_bytes) for c in found] == [
        ("cuda:0", "Card 0", 1000),
        ("cuda:1", "Card 1", 1001),
    ]


def test_a_card_that_is_not_there_is_told_with_those_that_are() -> None:
    assert "devices 0 to 1 are visible to this process" in refusal("cuda:2")
    assert "device_id 3 asks for a card of target 'ascend'" in refusal("npu:3", kind="npu")
    assert "device 0 alone is visible" in refusal("cuda:7", count=1)


def test_a_torch_without_cuda_is_told_with_how_to_get_one() -> None:
    text = refusal("cuda:0", cuda=None)
    assert "PyTorch 2.11.0 was built without CUDA" in text
    assert "install a build of PyTorch for CUDA" in text


def test_what_torch_says_of_the_driver_stays() -> None:
    old = RuntimeError("The NVIDIA driver on your\nsystem is too old (found version 11040).")
    assert "driver on your system is too old (found version 11040)" in refusal("cuda:0", error=old)


def test_hidden_cards_are_told() -> None:
    assert "CUDA_VISIBLE_DEVICES" in refusal("cuda:0", count=0)
    assert "ASCEND_RT_VISIBLE_DEVICES" in refusal("npu:0", count=0, kind="npu")


@pytest.mark.parametrize(
    "device, missing, wanted",
    [
        ("cuda:0", "torch", "needs PyTorch, which cannot be imported .*pip install 'mslite.gpu.'"),
        ("npu:0", "torch_npu", "needs torch_npu, which .*pip install 'mslite.ascend.'"),
    ],
)
def test_a_missing_package_is_told_with_what_to_install(
    device: str, missing: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EngineUnavailableError, match=wanted):
        check(device)


@pytest.mark.parametrize("device", ["cuda", "gpu:0", "cuda:x", "cpu"])
def test_a_device_that_means_nothing_is_a_wrong_argument(device: str) -> None:
    with pytest.raises(ValueError, match="wanted 'cpu', 'cuda:N' or 'npu:N'"):
        check(device, fake_torch())


@pytest.mark.skipif(torch.cuda.is_available(), reason="a card is there")
def test_this_machine_without_a_card_says_why() -> None:
    with pytest.raises(EngineUnavailableError, match="target 'gpu' needs an NVIDIA GPU"):
        check("cuda:0")


def test_errors_for_want_of_memory_are_known() -> None:
    card = Card("cuda:0", fake_torch())
    assert card.is_full(torch.OutOfMemoryError("CUDA out of memory."))
    assert card.is_full(RuntimeError("CUDA error: out of memory"))
    assert card.is_full(RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"))
    assert not card.is_full(RuntimeError("invalid argument"))
    assert not card.is_full(ValueError("out of memory"))


def test_errors_after_which_a_card_is_lost_are_remembered() -> None:
    card = Card("cuda:0", fake_torch())
    card.note(RuntimeError("CUDA error: invalid argument"))
    card.check_whole()
    card.note(RuntimeError("CUDA error: an illegal memory access was encountered"))
    with pytest.raises(EngineError, match=r"illegal memory access.*restart the process"):
        card.check_whole()


def test_a_card_that_cannot_record_says_so() -> None:
    assert not Card("npu:0", fake_torch(kind="npu")).captures
    assert cards.Card("cuda:0", torch).captures


@pytest.mark.parametrize("error", [None, RuntimeError("cannot be recorded")])
def test_scratch_memory_of_matrix_products_is_of_the_graph_that_is_recorded(
    error: Exception | None,
) -> None:
    """Whoever clears it later would else unmap what the graph writes to."""
    done: list[str] = []

    @contextmanager
    def graph(*given: object, **more: object) -> Iterator[None]:
        done.append("recording")
        yield

    def run() -> str:
        done.append("run")
        if error is not None:
            raise error
        return "outputs"

    torch_like = fake_torch()
    torch_like._C = SimpleNamespace(_cuda_clearCublasWorkspaces=lambda: done.append("cleared"))
    torch_like.cuda.CUDAGraph, torch_like.cuda.graph = list, graph
    torch_like.cuda.device = nullcontext
    with nullcontext() if error is None else pytest.raises(RuntimeError):
        assert Card("cuda:0", torch_like).captured(run, None, None) == ([], "outputs")
    assert done == ["cleared", "recording", "run", "cleared"]


def test_the_card_of_a_thread_is_known() -> None:
    torch_like = fake_torch()
    torch_like.cuda.current_device = lambda: 1
    assert [Card(f"cuda:{number}", torch_like).is_current() for number in range(2)] == [False, True]


def test_work_goes_to_a_stream_by_its_own_context_where_it_has_one() -> None:
    module = FakeModule(1)
    module.stream = lambda stream: ("torch.npu.stream", stream)  # type: ignore[attr-defined]
    torch_like = fake_torch()
    torch_like.cuda = module
    card = Card("cuda:0", torch_like)
    own, plain = nullcontext(), object()
    assert card.using(own) is own
    assert card.using(plain) == ("torch.npu.stream", plain)
