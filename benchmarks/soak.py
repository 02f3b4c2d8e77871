"""Many kinds of callers on two runners for a long time: everything is answered and nothing grows.

Run: python benchmarks/soak.py [--minutes 20] [--warm-up-s 60] [--clients 24] [--seed 0]
     [--json FILE] [--quick]

Threads and asyncio tasks send requests of mixed shapes to a plain and a batching runner: alone and
in crowds that overflow the queue, with timeouts that cannot be kept, with words that make the
engine fail, with wrong shapes and types; many are cancelled. Every answer is compared with a
reference made beforehand. At the end the callers' own counts must equal statistics() exactly, the
process may have grown by 5 MB at most since the warm-up, and closing must leave no thread or
descriptor behind; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import load
import networks
import numpy as np
import record
from soak_callers import Sample, Service, asyncio_caller, thread_caller

import mindspore_lite as mslite

MAX_GROWTH = 5_000_000
ENDS = ("done", "failed", "timed_out", "cancelled", "rejected")  # as statistics() names them
HANGS_S = 60.0  # after which a caller that was told to stop is given up
VOCABULARY = 1000


@dataclass
class Held:
    """What the process holds of the machine."""

    memory: int
    threads: int
    descriptors: int


def held() -> Held:
    """Now, garbage apart."""
    gc.collect()
    return Held(
        load.own_memory()[0], len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    )


def made_samples(mindir: Path, seed: int) -> list[Sample]:
    """Inputs of many shapes with the outputs of a plain Model, one request at a time."""
    rng = np.random.default_rng(seed)
    samples = []
    with mslite.Model() as model:
        model.build_from_file(str(mindir), mslite.ModelType.MINDIR)
        for rows in (1, 1, 1, 2, 3, 5, 8, 20):  # 20 is more than a batch takes
            for words in (1, 7, 32):
                ids = rng.integers(0, VOCABULARY, (rows, words)).astype(np.int32)
                samples.append(Sample(ids, model.predict([ids])[0].get_data_to_numpy()))
    return samples


def live_once(mindir: Path, sample: Sample) -> None:
    """Have what a process keeps for good, such as the one thread that watches all deadlines."""
    service = built("first", mindir, 0)
    service.settle(lambda: service.runner.predict([sample.ids], timeout_s=HANGS_S), sample, "done")
    service.runner.close()


def built(name: str, mindir: Path, rows: int) -> Service:
    """A runner with a queue that is easily full."""
    context = mslite.Context()
    context.parallel.queue_size = 32
    context.parallel.max_batch_rows = rows
    context.parallel.max_batch_wait_us = 200 if rows else 0
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(mindir), context)
    return Service(name, runner)


@dataclass
class Soak:
    """The callers, and what was found wrong."""

    services: Sequence[Service]
    samples: Sequence[Sample]
    clients: int
    seed: int
    problems: list[str] = field(default_factory=list)

    def phase(self, seconds: float, tick: Callable[[float], None]) -> None:
        """Let all callers work for some seconds, and wait until they have their last answers."""
        stop = threading.Event()
        callers = [thread_caller] * self.clients + [asyncio_caller] * 2
        threads = [
            threading.Thread(
                target=caller,
                args=(self.services, self.samples, self.seed + number, stop),
                daemon=True,
            )
            for number, caller in enumerate(callers)
        ]
        self.seed += len(callers)
        for thread in threads:
            thread.start()
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            stop.wait(min(0.5, seconds))
            self.look()
            tick(min(seconds, time.monotonic() - start))
        stop.set()
        end = time.monotonic() + HANGS_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        hanging = sum(thread.is_alive() for thread in threads)
        if hanging:
            self.problems.append(f"{hanging} callers still wait for an answer")

    def look(self) -> None:
        """In the middle of everything, the counts must add up."""
        for service in self.services:
            now = service.runner.statistics()
            ended = sum(getattr(now, end) for end in ENDS) + now.closed
            if now.sent != ended + now.queued + now.running:
                self.problems.append(f"{service.name}: the counts do not add up: {now}")

    def compare(self) -> None:
        """At the end, the runner's counts and the callers' must be the same."""
        for service in self.services:
            now, counted = service.runner.statistics(), service.counts()
            self.problems += [f"{service.name}: {text}" for text in service.surprises]
            more = {end: getattr(now, end) - counted[end] for end in ENDS}
            # whoever abandoned a request cannot know whether that came too late
            abandoned = more.pop("done") + more.pop("cancelled")
            known = sum(counted[end] for end in ENDS) + counted["abandoned"]
            if now.sent != known or now.closed or now.queued or now.running:
                self.problems.append(f"{service.name}: callers sent {known}, the runner has {now}")
            elif any(more.values()) or abandoned != counted["abandoned"]:
                self.problems.append(f"{service.name}: callers counted {counted}, the runner {now}")
            if not all(counted[end] for end in ENDS):
                self.problems.append(f"{service.name}: some kind of end never came: {counted}")


@contextmanager
def progress(seconds: float, label: str) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal; nothing in a pipe."""
    if not sys.stdout.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(label, total=seconds)

        def tick(done: float) -> None:
            memory = load.own_memory()[0] / 1e6
            bar.update(task, completed=done, description=f"{label}, own memory {memory:.1f} MB")

        yield tick


def show(services: Sequence[Service], start: Held, warm: Held, end: Held, closed: Held) -> None:
    """The table."""
    counts = [service.counts() for service in services]
    print(f"{'':34}" + "".join(f"{service.name:>14}" for service in services))
    sent = [sum(c[key] for key in (*ENDS, "abandoned")) for c in counts]
    print(f"{'sent':34}" + "".join(f"{number:14}" for number in sent))
    for key in (*ENDS, "abandoned", "refused"):
        label = {"abandoned": "abandoned by asyncio callers", "refused": "refused, not sent"}
        print(f"  {label.get(key, key):32}" + "".join(f"{c[key]:14}" for c in counts))
    answered = [sum(getattr(s.runner.statistics(), e) for e in ENDS) for s in services]
    print(f"{'answered, says statistics()':34}" + "".join(f"{number:14}" for number in answered))
    print(
        f"own memory: {start.memory / 1e6:.1f} MB at the start, {warm.memory / 1e6:.1f} warmed up, "
        f"{end.memory / 1e6:.1f} at the end: growth {(end.memory - warm.memory) / 1e6:.2f} MB"
    )
    print(f"threads: {start.threads} at the start, {end.threads} idle, {closed.threads} closed")
    print(f"descriptors: {start.descriptors}, {end.descriptors}, {closed.descriptors}")


def table_of(services: Sequence[Service], growth: int, start: Held, closed: Held) -> record.Table:
    """The same in short, for the README."""
    counts = [service.counts() for service in services]
    table = record.Table("", *(service.name for service in services))
    sent = (f"{sum(c[key] for key in (*ENDS, 'abandoned')):,}" for c in counts)
    table.add("requests sent", *sent)
    answered = (sum(getattr(s.runner.statistics(), e) for e in ENDS) for s in services)
    table.add("answered", *(f"{number:,}" for number in answered))
    for keys in (ENDS[:2], ENDS[2:]):
        label = " / ".join(keys).replace("_", " ")
        table.add(label, *(" / ".join(f"{c[key]:,}" for key in keys) for c in counts))
    table.add("growth of own memory after warm-up, both together", f"{growth / 1e6:.2f} MB", "")
    threads = f"{start.threads} / {closed.threads}"
    descriptors = f"{start.descriptors} / {closed.descriptors}"
    table.add("threads and descriptors, start / closed", f"{threads}, {descriptors}", "")
    return table


def soaked(args: argparse.Namespace, mindir: Path) -> list[str]:
    """Run it all and print the table; returns what was wrong."""
    samples = made_samples(mindir, args.seed)
    live_once(mindir, samples[0])
    start = held()
    services = [built("plain", mindir, 0), built("batching", mindir, 16)]
    soak = Soak(services, samples, args.clients, args.seed)
    marks = []
    for label, seconds in [("warm-up", args.warm_up_s), ("soak", args.minutes * 60)]:
        with progress(seconds, label) as tick:
            soak.phase(seconds, tick)
        marks.append(held())
    soak.compare()
    for service in services:
        service.runner.close(timeout_s=HANGS_S)
    closed = held()
    show(services, start, *marks, closed)
    growth = marks[1].memory - marks[0].memory
    record.write(args.json, {"counts": table_of(services, growth, start, closed)})
    if growth > MAX_GROWTH:
        soak.problems.append(f"memory grew by more than {MAX_GROWTH / 1e6:g} MB")
    if closed.threads > start.threads or closed.descriptors > start.descriptors:
        soak.problems.append("threads or descriptors were left behind")
    return soak.problems


def main() -> int:
    """Soak, print, and say with the exit code whether all was well."""
    parser = load.parser(__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--warm-up-s", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=24, help="threads; two with asyncio besides")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two seconds in all")
    args = parser.parse_args()
    if args.quick:
        args.minutes, args.warm_up_s, args.clients = 1 / 60, 1.0, 8
    with load.scratch() as folder:
        problems = soaked(args, networks.word_bag(folder / "words.mindir", VOCABULARY))
    for problem in problems:
        print(f"problem: {problem}")
    print("something is wrong" if problems else "all is well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
