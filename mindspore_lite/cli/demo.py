"""`mslite demo`: clients use the embedded model at the same time, and then in turn.

Both times there are equally many clients, which ask at the same time. In turn there is one model,
which has all cores and answers one request after the other: what a program does that puts a lock
around its model. A latency is what a client sees, the waiting included.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mindspore_lite.cli.console import say, working
from mindspore_lite.cli.demo_table import Answer, Round, client_lines, comparison, histogram, shown
from mindspore_lite.context import Context
from mindspore_lite.model import ModelParallelRunner

DATA = Path(__file__).parent / "data"
DIGITS_MODEL = DATA / "digits.mindir"
CLIENTS = 5
TASKS = 40  # requests of each client
ROWS = 32  # digits in a request, which make it last some milliseconds
Ask = Callable[[int, int], Answer]  # of a client and the number of its task
_INK = " .:-=+*#%@"  # from empty to full


def demo() -> None:
    """Let five clients use the embedded model at once, then one after the other."""
    images, labels = samples()
    say(f"{DIGITS_MODEL.name}: a MobileNetV2-shaped classifier of handwritten digits")
    with _built() as runner:
        say()
        _show_pictures(runner, images, labels)
        at_once = Round("at once", CLIENTS, runner.statistics().layout)
        say()
        say(f"{CLIENTS} clients at once, each sends {TASKS} requests of {ROWS} digits")
        with shown(at_once, TASKS) as live:
            at_once.took_s = _send_at_once(_asking(runner, images, labels), at_once)
        if not live:
            say("\n".join(client_lines(at_once)))
    with _built(workers=1) as runner:
        in_turn = Round("in turn", CLIENTS, runner.statistics().layout)
        with shown(in_turn, TASKS, stays=False):
            in_turn.took_s = _send_at_once(_asking(runner, images, labels), in_turn)
    say()
    say(comparison(at_once, in_turn))
    say()
    say(f"latency of a request, {CLIENTS} clients at once")
    say(histogram(at_once.latencies_ms(), _width()))
    say()
    say("next:")
    for command, what in next_commands():
        say(f"  {command}")
        say(f"      {what}")


def next_commands() -> list[tuple[str, str]]:
    """What to try after the demo, as it can be typed here, and what it shows."""
    program, model = _program(), shlex.quote(os.path.relpath(DIGITS_MODEL))
    return [
        (f"{program} inspect {model}", "what is in a model file; give it one of yours"),
        (
            f"{program} bench {model} --clients 1,{CLIENTS} --html bench.html",
            "throughput and latency under load, as a page for the browser",
        ),
        (f"{program} convert YOUR.onnx --check", "your model as MindIR, compared with its source"),
    ]


def _program() -> str:
    """How this command is called: by its name where the shell finds it, else by its path."""
    called = sys.argv[0]
    found = shutil.which("mslite")
    if os.path.basename(called) != "mslite":
        return "python -m mindspore_lite" if found is None else "mslite"
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return "mslite"
    return shlex.quote(os.path.relpath(called)) if os.path.exists(called) else "mslite"


def samples() -> tuple[np.ndarray, np.ndarray]:
    """The embedded digits: float32 images of [n, 1, 8, 8] in 0..1, and what they show."""
    with np.load(DATA / "digits.npz", allow_pickle=False) as file:
        return file["images"], file["labels"]


def gallery(images: np.ndarray, probabilities: np.ndarray, labels: np.ndarray) -> str:
    """Digits side by side as text, each with the answer and its probability below."""
    pictures = [art(image[0]) for image in images]
    lines = ["  ".join(rows) for rows in zip(*pictures, strict=True)]
    captions = []
    for row, label in zip(probabilities, labels, strict=True):
        best = int(row.argmax())
        mark = "" if best == label else f" (is {label})"
        captions.append(f"{best} {row[best]:7.2%}{mark}".center(16))
    return "\n".join(line.rstrip() for line in [*lines, "  ".join(captions)])


def art(image: np.ndarray) -> list[str]:
    """An image of values in 0..1 as lines of text, two characters per pixel."""
    levels = np.clip(np.rint(image * (len(_INK) - 1)), 0, len(_INK) - 1).astype(int)
    return ["".join(_INK[level] * 2 for level in row) for row in levels]


@contextmanager
def _built(workers: int = 0) -> Iterator[ModelParallelRunner]:
    context = Context()
    context.parallel.workers_num = workers
    with ModelParallelRunner() as runner:
        with working("building the digits model"):
            runner.build_from_file(str(DIGITS_MODEL), context)
            runner.warm_up([[ROWS, 1, 8, 8]])
        yield runner


def _show_pictures(runner: ModelParallelRunner, images: np.ndarray, labels: np.ndarray) -> None:
    """As many digits as fit next to each other, with what the model takes them for."""
    fit = slice(max(1, (_width() + 2) // 18))
    (output,) = runner.predict([images[fit]])
    say(gallery(images[fit], output.get_data_to_numpy(), labels[fit]))


def _width() -> int:
    return shutil.get_terminal_size().columns


def _send_at_once(ask: Ask, results: Round) -> float:
    """All clients in threads of their own; returns the seconds until the last is done."""
    ended = threading.Event()

    def client(number: int) -> None:
        for task in range(TASKS):
            if ended.is_set():  # Ctrl-C, or another client failed
                return
            results.answers[number].append(ask(number, task))

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS, thread_name_prefix="client") as threads:
        try:
            for _ in threads.map(client, range(CLIENTS)):
                pass
        finally:
            ended.set()
    return time.perf_counter() - start


def _asking(runner: ModelParallelRunner, images: np.ndarray, labels: np.ndarray) -> Ask:
    """What sends the request of a client's task, and looks at the answer."""

    def ask(client: int, task: int) -> Answer:
        # the samples over and over, starting at another one in each request
        rows = (client + task + np.arange(ROWS)) % len(images)
        inputs = images[rows]
        start = time.perf_counter()
        (output,) = runner.predict([inputs])
        took_ms = (time.perf_counter() - start) * 1e3
        digits = output.get_data_to_numpy().argmax(1)
        return Answer(took_ms, tuple(digits.tolist()), int((digits == labels[rows]).sum()))

    return ask
