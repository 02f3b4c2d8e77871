from __future__ import annotations

import io
import signal
import sys
import threading

import pytest

from mindspore_lite.cli.console import bar, counted, steps, tidy_end, working


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; called by the test itself, for capturing changes it before."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found


def test_nothing_is_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with working("busy"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_what_is_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with working("busy building"):
        pass
    assert "busy building" in terminal.getvalue()


def test_steps_are_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with steps("busy") as step:
        step("reading")
    assert capsys.readouterr() == ("", "")


def test_steps_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with steps("busy") as step:
        step("reading [x]")
    assert "busy: reading [x]" in terminal.getvalue()


def test_counting_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("busy", 2) as done:
        done()
    assert capsys.readouterr() == ("", "")


def test_counting_is_shown_on_a_terminal_and_by_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr("mindspore_lite.cli.console._REDRAWN_S", -1)
    threads = set(threading.enumerate())  # those of other tests may end meanwhile
    with counted("running", 4) as done:
        done()
        assert set(threading.enumerate()) <= threads
        assert "running" in terminal.getvalue()
        assert " 25%" in terminal.getvalue()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_end_lets_things_be_tidied_up(number: signal.Signals) -> None:
    before, tidied = signal.getsignal(number), []
    with pytest.raises(SystemExit) as caught, tidy_end():
        try:
            signal.raise_signal(number)
        finally:
            tidied.append(number)
    assert caught.value.code == 128 + number
    assert tidied == [number]
    assert signal.getsignal(number) == before


def test_other_threads_hear_no_signals() -> None:
    heard = []

    def work() -> None:
        with tidy_end():
            heard.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [before]


def test_a_bar_tells_what_is_being_done_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal_of(monkeypatch)
    with bar(2) as watch:
        for text in ("one", "two", "three"):  # one more than announced
            watch.at(text)
            watch.step()
    assert "three" in shown.getvalue()


def test_a_bar_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with bar(1) as watch:
        watch.at("busy")
        watch.step()
    assert capsys.readouterr() == ("", "")
