"""The gate between runs and changes."""

from __future__ import annotations

import threading

from support.fake_engine import Client

from mindspore_lite.engines.torch.gate import Gate

LIMIT_S = 120.0


def test_runs_pass_together() -> None:
    gate = Gate()
    both = threading.Barrier(2)

    def run() -> None:
        with gate.running():
            both.wait(LIMIT_S)

    for client in [Client(run), Client(run)]:
        assert client.ended().error is None


def test_a_change_waits_for_runs_and_holds_off_later_ones() -> None:
    gate = Gate()
    order: list[str] = []

    def change() -> None:
        with gate.changing():
            order.append("change")

    def run() -> None:
        with gate.running():
            order.append("run")

    with gate.running():
        changing = Client(change)
        while not gate._changing:
            assert changing.is_alive()
        late = Client(run)
        assert order == []
    changing.ended()
    late.ended()
    assert order == ["change", "run"]


def test_changes_pass_one_after_the_other_and_an_error_opens_the_gate() -> None:
    gate = Gate()
    inside: list[int] = []

    def change() -> None:
        with gate.changing():
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
            raise ValueError("bad weights")

    for client in [Client(change) for _ in range(8)]:
        assert isinstance(client.ended().error, ValueError)
    with gate.running():
        pass
