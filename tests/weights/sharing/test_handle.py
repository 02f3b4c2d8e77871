"""weights/sharing/handle.py: numbers that name a process and one of its models."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mindspore_lite.weights.sharing.handle import Handle, is_alive, new_number, new_token, parts_of


@pytest.mark.parametrize(
    "handle", [Handle(1, 0, 0), Handle(2**22 - 1, 2**21 - 1, 2**20 - 1), Handle(4711, 5, 6)]
)
def test_a_handle_is_a_number_that_a_signed_cell_holds_and_back(handle: Handle) -> None:
    assert 0 < int(handle) < 2**63
    assert parts_of(int(handle)) == handle


@pytest.mark.parametrize("number", [1, 2**41 - 1, 2**63, 2**64 - 1])
def test_numbers_without_a_process_are_no_handles(number: int) -> None:
    assert parts_of(number) is None


def test_the_address_follows_from_the_process_and_its_token_and_tells_neither() -> None:
    one = Handle(4711, 12345, 1)
    assert one.address == Handle(4711, 12345, 2).address
    assert len({one.address, Handle(4712, 12345, 1).address, Handle(4711, 12346, 1).address}) == 3
    assert one.address.startswith(b"\0mslite-weights-")
    assert b"4711" not in one.address
    assert b"12345" not in one.address


def test_tokens_and_numbers_fit_and_differ() -> None:
    assert len({new_token() for _ in range(20)}) > 1
    assert len({new_number() for _ in range(20)}) > 1
    assert parts_of(int(Handle(1, new_token(), new_number()))) is not None


def test_a_process_that_has_ended_is_not_alive_even_before_it_is_waited_for() -> None:
    assert is_alive(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid)
    child.stdout.close()
    child.wait()
    assert not is_alive(child.pid)
