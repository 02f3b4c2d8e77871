"""Memory of a card that others use, too: who waits for whom; a made-up tensor is on the card."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mindspore_lite.engines.torch import memory


class OnCard:
    """A tensor of which nothing is known but its place."""

    device = torch.device("cuda:0")

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **asked: Any) -> str:
        self.asked.append(asked)
        return "by torch"


class Stream:
    def __init__(self) -> None:
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The address of the stream on which this thread works; 0 is the default one."""
    found = [0]
    monkeypatch.setattr(
        torch._C, "_cuda_getCurrentRawStream", lambda number: found[0], raising=False
    )
    monkeypatch.setattr(torch.utils.dlpack, "to_dlpack", lambda tensor: "at once")
    return found


@pytest.mark.parametrize("address, asked", [(0, 1), (77, 77)])
def test_nothing_is_waited_for_on_the_stream_of_this_thread(
    current: list[int], address: int, asked: int
) -> None:
    current[0] = address
    tensor: Any = OnCard()
    assert memory.exported(tensor, stream=asked, max_version=(1, 0)) == "at once"
    assert tensor.asked == []


@pytest.mark.parametrize(
    "asked", [{"stream": 5}, {}, {"stream": 2}, {"stream": -1}, {"stream": 1, "copy": True}]
)
def test_all_else_is_left_to_torch(current: list[int], asked: dict[str, Any]) -> None:
    tensor: Any = OnCard()
    assert memory.exported(tensor, **asked) == "by torch"
    assert tensor.asked == [asked]


def test_work_on_a_stream_of_ones_own_is_waited_for(
    current: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    tensor: Any = OnCard()
    memory.settle(tensor)
    assert stream.waited == 0
    current[0] = 77
    memory.settle(tensor)
    assert stream.waited == 1
    memory.settle(torch.ones(1))
    assert stream.waited == 1
