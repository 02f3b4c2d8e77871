"""Listening to compiled code: what it does is on the tape, or there is no tape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx

from mindspore_lite.engines.torch import compile as compiler
from mindspore_lite.engines.torch import trace
from mindspore_lite.engines.torch.trace_program import Player

CPU = torch.device("cpu")
X = torch.rand(4, 4)


class Products(torch.nn.Module):
    """Nothing but operators, and views of what they make."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(4, 4), requires_grad=False)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.mm(torch.mm(x, self.w).t(), x), torch.mm(x, self.w)


class Fused(Products):
    """What becomes a kernel of the host, which is not heard."""

    def forward(self, x: torch.Tensor) -> Any:
        return (torch.relu(torch.mm(x, self.w) + 1) * 2,)


def compiled(made: torch.nn.Module) -> tuple[Any, list[torch.Tensor]]:
    """A module by torch's own compiler, and its weights."""
    graph = fx.symbolic_trace(made)
    return compiler.compiled(graph, [X], "fast"), [one.detach() for one in graph.parameters()]


def test_compiled_operators_are_heard_and_done_again() -> None:
    run, weights = compiled(Products())
    found = trace.recorded(run, [X], weights)
    assert found is not None
    assert {step[0] for step in found.steps} == {"empty", "call", "view"}
    other = torch.rand(4, 4)
    for one, wanted in zip(Player(found, CPU)(other, *weights), run(other), strict=True):
        assert torch.equal(one, wanted)


def test_code_with_steps_that_are_not_heard_gets_no_tape() -> None:
    run, weights = compiled(Fused())
    assert trace.recorded(run, [X], weights) is None
    assert torch.equal(run(X)[0], Fused.forward(SimpleNamespace(w=weights[0]), X)[0])


@pytest.mark.parametrize(
    "run",
    [
        lambda x: [x + torch.rand(4, 4)],  # other numbers each time
        lambda x: [x * float(x.numpy().sum())],  # not torch alone
        lambda x: [torch.rand(4, 4, generator=torch.Generator())],  # cannot be written down
    ],
)
def test_what_torch_alone_does_not_do_again_gets_no_tape(run: Any) -> None:
    assert trace.recorded(run, [X], []) is None


def test_torch_is_left_as_it_was() -> None:
    guards = torch._C._dynamo.guards
    before = guards._reinterpret_tensor
    with pytest.raises(KeyError), trace.listening():
        assert guards._reinterpret_tensor is not before
        raise KeyError
    assert guards._reinterpret_tensor is before


class Launcher:
    """Torch's own, on the host: it adds a number."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def _load_kernel(self, path: str, name: str, shared: int, device: int) -> Any:
        self.files.append(path)
        return 77, 12, 0  # the function, and what else torch wants to know

    def _launch_kernel(self, function: int, *args: Any) -> None:
        assert function == 77
        source, target, number = args[6]
        target.copy_(source + number)


def test_kernels_are_heard_with_their_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    class Kernel:
        def __init__(self) -> None:
            self.C_impl = Launcher()

        def load_kernel(self, device: int) -> None:
            self.C_impl._load_kernel(str(tmp_path / "add.cubin"), "add", 64, device)

        def run(self, *args: Any) -> None:
            self.C_impl._launch_kernel(77, 4, 1, 1, 2, 64, "OOf", args, 0)

    (tmp_path / "add.cubin").write_bytes(b"code")
    monkeypatch.setattr(trace, "_kernel_class", lambda: Kernel)
    kernel = Kernel()
    with trace.listening():
        kernel.load_kernel(0)
    empty = trace._telling(torch.empty_strided, lambda notes, found, *args, **more: (
        notes.empty(found, *args, more["dtype"])
    ))  # fmt: skip

    def run(x: torch.Tensor) -> Any:
        target = empty((4, 4), (4, 1), dtype=torch.float32)
        kernel.run(x, target, 3.0)
        return [target]

    def load(found: Any, device: torch.device) -> Any:
        assert (found.code, found.name, found.threads, found.shared) == (b"code", "add", 64, 64)
        return lambda grid, kinds, args: args[1].copy_(args[0] + args[2])

    found = trace.recorded(run, [X], [], load)
    assert found is not None
    assert found.steps[-1][:4] == ["run", 0, [4, 1, 1], "OOf"]
    assert torch.equal(Player(found, CPU, load)(X)[0], X + 3)
