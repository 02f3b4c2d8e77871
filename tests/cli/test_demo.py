from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindspore_lite.cli import demo as demo_module
from mindspore_lite.cli.demo import art, gallery
from mindspore_lite.core import cores
from mindspore_lite.errors import EngineError
from mindspore_lite.model import ModelParallelRunner

CLIENT = re.compile(
    r"client (\d): 3 requests, ([\d.]+) to ([\d.]+) ms, mean ([\d.]+) ms, 96 of 96 digits right"
)


@pytest.fixture
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "TASKS", 3)


@pytest.mark.usefixtures("few_tasks")
def test_in_a_pipe_there_is_a_line_per_client_and_no_escape_code(
    mslite: Callable[..., Any],
) -> None:
    done = mslite("demo")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    clients = CLIENT.findall(done.out)
    assert [client for client, *_ in clients] == list("01234")
    for _, least, most, mean in clients:
        assert float(least) <= float(mean) <= float(most)


@pytest.mark.usefixtures("few_tasks")
def test_the_demo_compares_both_ways_and_shows_latencies(mslite: Callable[..., Any]) -> None:
    out = mslite("demo").out
    for name in ("at once", "in turn"):
        row = re.search(rf"^{name} +([\d.]+) s +([\d.]+) +(\d+) +[\d.]+ ms +[\d.]+ ms$", out, re.M)
        assert row is not None, out
        requests_s, digits_s = float(row[2]), float(row[3])
        assert digits_s == pytest.approx(requests_s * demo_module.ROWS, rel=0.02)
    gain = r"^gain: \d+\.\d\d times the throughput;\n +99 of 100 requests are answered within "
    assert re.search(gain + r"[\d.]+ ms instead of [\d.]+ ms$", out, re.M)
    bars = re.findall(r"^ +[\d.]+ to +[\d.]+ ms +(\d+)", out, re.M)
    assert sum(map(int, bars)) == demo_module.CLIENTS * demo_module.TASKS


@pytest.mark.usefixtures("few_tasks")
def test_as_many_pictures_are_shown_as_fit(
    mslite: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns, digits in ((80, 4), (120, 6), (10, 1), (400, 10)):
        monkeypatch.setenv("COLUMNS", str(columns))
        captions = re.findall(r"(\d)  9\d\.\d\d%", mslite("demo").out)
        assert captions == [str(digit) for digit in range(digits)]


@pytest.mark.usefixtures("few_tasks")
def test_a_client_that_fails_ends_the_demo_with_its_error(
    mslite: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ModelParallelRunner.predict

    def fails(runner: ModelParallelRunner, inputs: Any) -> Any:
        if len(inputs[0]) == demo_module.ROWS:
            raise EngineError("no more power")
        return real(runner, inputs)

    monkeypatch.setattr(ModelParallelRunner, "predict", fails)
    done = mslite("demo")
    assert (done.code, done.err) == (1, "mslite: no more power\n")


@pytest.mark.usefixtures("few_tasks")
def test_in_turn_as_many_clients_ask_at_the_same_time(
    mslite: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gates: dict[int, threading.Barrier] = {}  # through which all clients go together
    passed: set[tuple[int, int]] = set()
    kept: list[ModelParallelRunner] = []  # so that no two have one id
    layouts = []
    start, real = ModelParallelRunner.__init__, ModelParallelRunner.predict

    def made(runner: ModelParallelRunner) -> None:
        kept.append(runner)
        gates[id(runner)] = threading.Barrier(demo_module.CLIENTS, timeout=60)
        start(runner)

    def together(runner: ModelParallelRunner, inputs: Any) -> Any:
        me = id(runner), threading.get_ident()
        if len(inputs[0]) == demo_module.ROWS and me not in passed:
            passed.add(me)
            if gates[id(runner)].wait() == 0:
                layouts.append(runner.statistics().layout)
        return real(runner, inputs)

    monkeypatch.setattr(ModelParallelRunner, "__init__", made)
    monkeypatch.setattr(ModelParallelRunner, "predict", together)
    assert mslite("demo").code == 0
    _, in_turn = layouts
    assert in_turn.workers == 1
    assert max(in_turn.widths) == cores.default_threads(cores.usable())  # it has all cores


@pytest.mark.usefixtures("few_tasks")
def test_the_demo_ends_with_three_commands_that_work(
    mslite: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = mslite("demo").out
    shown = re.findall(r"^  (\S.*)$", out.partition("\nnext:\n")[2], re.M)
    assert [command.partition(" ")[2].split()[0] for command in shown] == [
        "inspect", "bench", "convert",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["mslite", "demo"])
    for command, _ in demo_module.next_commands():
        words = shlex.split(command)
        assert words[0] == "mslite" or Path(words[0]).exists()
        if words[1] == "inspect":
            assert mslite(*words[1:]).code == 0
        else:
            assert mslite(words[1], "--help").code == 0


@pytest.mark.parametrize(
    ("called", "found", "wanted"),
    [
        ("/x/.venv/bin/mslite", None, "mslite"),  # it is gone
        ("HERE/bin/mslite", None, "bin/mslite"),
        ("HERE/bin/mslite", "HERE/bin/mslite", "mslite"),
        ("HERE/bin/mslite", "/usr/bin/mslite", "bin/mslite"),
        ("HERE/__main__.py", None, "python -m mindspore_lite"),
        ("HERE/__main__.py", "/usr/bin/mslite", "mslite"),
    ],
)
def test_the_program_is_named_as_it_can_be_typed(
    called: str, found: str | None, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mslite").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [called.replace("HERE", str(tmp_path))])
    place = None if found is None else found.replace("HERE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: place)
    assert demo_module._program() == wanted


def test_dark_pixels_are_dense_characters() -> None:
    assert art(np.array([[0.0, 1.0], [0.5, 2.0]])) == ["  @@", "==@@"]


def test_a_wrong_answer_is_shown_as_wrong() -> None:
    images = np.zeros((2, 1, 1, 1), np.float32)
    text = gallery(images, np.array([[0.25, 0.75], [0.25, 0.75]]), np.array([1, 0]))
    assert text.splitlines()[-1].split() == ["1", "75.00%", "1", "75.00%", "(is", "0)"]


class Terminal:
    """The demo with so many tasks per client, in a process on a terminal of its own."""

    def __init__(self, tasks: int, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, columns))
        code = (
            # who starts the tests in the background of a shell has it ignored
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            f"from mindspore_lite.cli import demo, main; demo.TASKS = {tasks}; "
            "import sys; sys.argv = ['mslite', 'demo']; main.main()"
        )
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
        )
        os.close(theirs)
        self._bytes = b""

    def read_until(self, wanted: str | None) -> str:
        """What came so far, as soon as this pattern is in it; None reads to the end."""
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            while wanted is None or re.search(wanted.encode(), self._bytes) is None:
                self._bytes += os.read(self._ours, 65536)
        return self._bytes.decode(errors="replace")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_a_table_that_lives(columns: int) -> None:
    with Terminal(tasks=5, columns=columns) as terminal:
        text = terminal.read_until(None)
        assert terminal.process.wait() == 0
    assert "\x1b[1A\x1b[2K" * 7 in text  # up over a whole table, to draw it anew
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    plain = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    for client in range(5):
        assert re.search(rf"{client} │ +5 of 5 │ +[\d.]+ │ [\d ]+\.\.\. +│ +160 of 160 │", plain)
    assert "times the throughput" in plain
    assert "client 0: " not in plain  # the table says it
    plain = plain.partition("next:")[0]  # a path below may be long
    assert max(len(line) for line in re.split(r"[\r\n]+", plain)) <= columns


def test_an_interrupted_demo_ends_cleanly() -> None:
    with Terminal(tasks=10**9) as terminal:
        terminal.read_until(r"[1-9]\d* of 1000000000 ")  # the clients are at work
        terminal.process.send_signal(signal.SIGINT)
        text = terminal.read_until(None)
        assert terminal.process.wait() == 130
    assert "mslite: interrupted" in text
    assert "Traceback" not in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
