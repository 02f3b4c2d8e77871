"""Runs the benchmarks one after the other, and makes the tables and pictures of their results.

Run: python benchmarks/run_all.py (--short | --full | --render) [--only NAME ...] [--skip NAME ...]
Example: python benchmarks/run_all.py --short --only overhead parallel

--short takes about ten minutes on 2 cores; its figures are rougher than those of --full, and say
so. --full runs what benchmarks/README.md has by each section, for more than an hour. Both write
benchmarks/results/NAME.json and then the tables of the README, and draw the pictures; --render does
only the latter. What a script prints goes to build/benchmarks/NAME.log.

The exit code is 1 when a benchmark failed, whose results stay what they were. One that cannot run
here, for want of a card or a compiler, is named and does no harm. Ctrl-C keeps what was finished.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import render

from mindspore_lite.cli.console import tidy_end
from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.compiler import find_compiler
from mindspore_lite.sdk.javac import find_javac

HERE = Path(__file__).parent
LOGS = HERE.parent / "build" / "benchmarks"
ENDS_S = 10.0  # how long an interrupted benchmark may take to clean up


def lacks_card() -> str | None:
    """Why gpu.py cannot run."""
    for package in ("torch", "torchvision"):
        if find_spec(package) is None:
            return f"{package} is not installed"
    import torch

    return None if torch.cuda.is_available() else "PyTorch sees no NVIDIA card"


def lacks_openvino() -> str | None:
    """Why engines.py and openvino_parts.py cannot run."""
    return "openvino is not installed" if find_spec("openvino") is None else None


def lacks_tool(find: Callable[[], object]) -> str | None:
    """Why something that must be compiled cannot be."""
    try:
        find()
    except LiteError as exc:
        return str(exc)
    return None


@dataclass(frozen=True)
class Benchmark:
    """The arguments of a script, and why it cannot run here, if that is so."""

    short: str
    full: str = ""
    lacks: Callable[[], str | None] = lambda: None


BENCHMARKS = {  # in the order of the README; of less than three rounds there are no quartiles
    "overhead": Benchmark("--rounds 5", "--rounds 21"),
    "startup": Benchmark("--rounds 3"),
    "convert": Benchmark("--rounds 3"),
    "parallel": Benchmark("--models MobileNetV2 MiniLM --clients 1 5 16 --rounds 3 --seconds 0.2"),
    "engines": Benchmark(
        "--models MobileNetV2 MiniLM --clients 5 --rounds 3 --seconds 0.2", lacks=lacks_openvino
    ),
    "openvino_parts": Benchmark(
        "--models MobileNetV2 --builds 1 --rounds 3 --seconds 0.3", lacks=lacks_openvino
    ),
    "batching": Benchmark("--rounds 3 --seconds 0.4"),
    "worker_memory": Benchmark("--threads 1"),
    "queue_overhead": Benchmark("--rounds 4 --seconds 0.4"),
    "card_pool": Benchmark("--seconds 1.5"),
    "devices": Benchmark("--rounds 3 --seconds 0.4 --cycles 100"),
    "cpp": Benchmark(
        "--rounds 5 --seconds 0.5", lacks=lambda: lacks_tool(lambda: find_compiler(None))
    ),
    "java": Benchmark("--rounds 5 --seconds 0.5", "--rounds 15", lambda: lacks_tool(find_javac)),
    "weight_update": Benchmark("--parts steady update --tokens 16 --rounds 3 --seconds 0.3"),
    "weight_sharing": Benchmark("--processes 1 3 --rounds 3 --seconds 0.7"),
    "model_group": Benchmark("--rounds 3 --seconds 0.7"),
    "gpu": Benchmark("--rounds 3 --ahead-s 0", lacks=lacks_card),
    "server": Benchmark("--rounds 3 --seconds 0.5 --clients 4"),
    "server_limits": Benchmark("--rounds 3 --seconds 1 --clients 4 --requests 100000"),
    "metrics": Benchmark("--quick"),
    "fairness": Benchmark("--rounds 3 --seconds 2", "--rounds 10 --seconds 3"),
    "soak": Benchmark("--minutes 0.4 --warm-up-s 12", "--minutes 20"),
}


@dataclass
class Outcome:
    """What became of the benchmarks."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)


def waited(process: subprocess.Popen[bytes], label: str) -> int:
    """Wait for the end; on a terminal a line tells the seconds, once each."""
    start = time.monotonic()
    while True:
        try:
            return process.wait(1.0)
        except subprocess.TimeoutExpired:
            if sys.stderr.isatty():
                seconds = time.monotonic() - start
                print(f"\r\x1b[K{label}: {seconds:.0f} s", end="", file=sys.stderr, flush=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a benchmark and whatever it has started: first kindly, for it may have to clean up."""
    try:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_S)
    finally:
        with suppress(ProcessLookupError):  # nothing is left of it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measured(name: str, arguments: str, label: str) -> dict[str, object]:
    """Run a script in a process of its own; returns its results.

    Raises:
        RuntimeError: It failed; the last line that it printed is the reason.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with tempfile.TemporaryDirectory() as folder, log.open("wb") as output:
        results = Path(folder, "results.json")
        script = [str(HERE / f"{name}.py"), *shlex.split(arguments), "--json", str(results)]
        process = subprocess.Popen(
            [sys.executable, *script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(folder),
            start_new_session=True,  # what it has started can be ended with it
        )
        try:
            code = waited(process, label)
        finally:
            end(process)
        if code or not results.exists():
            said = log.read_text(errors="replace").split("\n")
            why = next((line for line in reversed(said) if line.strip()), "it printed nothing")
            raise RuntimeError(
                f"exit code {code}: {why} (all of it: {log.relative_to(HERE.parent)})"
            )
        found: dict[str, object] = json.loads(results.read_text(encoding="utf-8"))
        return found


def environment(folder: str) -> Mapping[str, str]:
    """That of a script: its scratch files go where they are removed, however it ends."""
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "TMPDIR": folder}


def run(names: list[str], kind: str, outcome: Outcome) -> None:
    """Run benchmarks; results are kept as soon as they are there."""
    for number, name in enumerate(names, 1):
        benchmark, label = BENCHMARKS[name], f"{name} ({number} of {len(names)})"
        lacks = benchmark.lacks()
        if lacks:
            outcome.impossible[name] = lacks
            say(f"{label}: cannot run here")
            continue
        start = time.monotonic()
        try:
            found = measured(name, getattr(benchmark, kind), label)
        except RuntimeError as exc:
            outcome.failed[name] = str(exc)
            say(f"{label}: failed after {time.monotonic() - start:.0f} s")
            continue
        found["run"] = kind
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        render.put(render.RESULTS / f"{name}.json", text)
        outcome.done.append(name)
        say(f"{label}: {time.monotonic() - start:.0f} s")


def say(text: str) -> None:
    """One line, in place of the one that counts the seconds."""
    print("\r\x1b[K" * sys.stderr.isatty(), end="", file=sys.stderr, flush=True)
    print(text, flush=True)


def show(outcome: Outcome, always: bool) -> None:
    """Make tables and pictures, and tell what became of it all."""
    before = render.PAGE.read_text(encoding="utf-8")
    try:
        after = render.page(before)
        if after != before:
            render.put(render.PAGE, after)
    except render.ResultsError as exc:
        outcome.failed["README.md"] = str(exc)
    for picture in render.PICTURES:
        why = render.draw(picture, always)
        if why:
            outcome.failed[picture.file] = why
    for title, found in (("failed", outcome.failed), ("cannot run here", outcome.impossible)):
        for name, why in found.items():
            print(f"{title}: {name}: {why}")
    stale = render.sections(before, outcome.done)
    if stale:
        print("benchmarks/README.md has new tables; see whether the words around them still hold:")
        print("\n".join(f"  {heading}" for heading in stale))


def main() -> int:
    """Run, render, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind in ("short", "full", "render"):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--skip", nargs="+", choices=list(BENCHMARKS), default=[])
    args = parser.parse_args()
    names = [name for name in BENCHMARKS if name in args.only and name not in args.skip]
    outcome, code = Outcome(), 0
    try:
        with tidy_end():
            if args.kind != "render":
                run(names, args.kind, outcome)
    except (KeyboardInterrupt, SystemExit) as exc:  # the latter by a signal
        code = getattr(exc, "code", 130)
        say("interrupted; what was finished is kept")
    show(outcome, always=args.kind == "render")
    return code or (1 if outcome.failed else 0)


if __name__ == "__main__":
    sys.exit(main())
