"""Tapes: what is written is read, and followed with the tensors that are given."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mindspore_lite.engines.torch import trace_program
from mindspore_lite.engines.torch.trace_program import Kernel, Player, Tape, UnknownValueError

CPU = torch.device("cpu")
ADD = Kernel(b"code", "add", 128, 0)
# out = (x @ w + 1 by a kernel), seen as columns
STEPS: list[Any] = [
    ["empty", 2, [2, 2], [2, 1], {"dtype": "float32"}, {"device": "cpu"}],
    ["call", [2], "aten.mm.out", [{"tensor": 0}, {"tensor": 1}], {"out": {"tensor": 2}}],
    ["empty", 3, [2, 2], [2, 1], {"dtype": "float32"}, {"device": "cpu"}],
    ["run", 0, [4, 1, 1], "OOfO", [{"tensor": 2}, {"tensor": 3}, 1.5, None]],
    ["view", 4, 3, [2, 2], [1, 2], 0],
]
TAPE = Tape(STEPS, [4], [ADD])


def adding(kernel: Kernel, device: torch.device) -> Any:
    """What starts the kernel of the tape."""
    assert (kernel.name, device) == ("add", CPU)

    def launch(grid: Any, kinds: str, args: Any) -> None:
        assert (grid, kinds) == ([4, 1, 1], "OOfO")
        source, target, number, scratch = args
        assert scratch is None
        target.copy_(source + number)

    return launch


def test_a_tape_is_followed_with_the_tensors_given() -> None:
    player = Player(TAPE, CPU, adding)
    w = torch.tensor([[1.0, 2], [3, 4]])
    for spoiled in (False, True):
        x = torch.rand(2, 2)
        (found,) = player(x, w, spoiled=spoiled)
        torch.testing.assert_close(found, (x @ w + 1.5).t())


def test_tensors_go_when_nobody_needs_them() -> None:
    assert [sorted(one) for one in trace_program._last_uses(TAPE)] == [[], [0, 1], [], [2], [3]]


def test_what_is_written_is_read() -> None:
    found, more, tensors = trace_program.read(
        trace_program.written(TAPE, {"a": [1, "b"]}, {"c": torch.ones(2)})
    )
    assert (found, more) == (TAPE, {"a": [1, "b"]})
    assert torch.equal(tensors["c"], torch.ones(2)) and list(tensors) == ["c"]


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.5, "sum", [1, [2.0, None]], torch.float16, torch.strided,
     torch.channels_last, torch.device("cuda:1")],
)  # fmt: skip
def test_values_of_steps_are_plain_data(value: Any) -> None:
    assert trace_program.decoded(trace_program.encoded(value, lambda _: 0), {}) == value


def test_a_value_that_is_no_data_is_told() -> None:
    with pytest.raises(UnknownValueError, match="Generator in a step"):
        trace_program.encoded([torch.Generator()], lambda _: 0)
