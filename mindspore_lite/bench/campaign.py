"""One `mslite bench` run: measures all sides under all loads, and computes the ratios."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.compare import (
    OURS,
    Bursts,
    ComparePlan,
    Watch,
    check_alike,
    ratios,
    turns,
)
from mindspore_lite.bench.measure import Meter, run_of
from mindspore_lite.bench.peers import INSTALL, Graph, import_library, onnx_of
from mindspore_lite.bench.result import Apart, Ratio, ResultPlace, Run
from mindspore_lite.bench.sides import Feed, OtherFile, Ours, Side, Wish
from mindspore_lite.serving.layout import Layout

_LATE_MS = 1.0  # what a sender may be late without a word; a busy machine wakes it no sooner


@dataclass
class Findings:
    """What was measured so far."""

    runs: list[Run] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    apart: list[Apart] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    interrupted: bool = False


@dataclass
class Sides:
    """All sides of a comparison, each with the memory that it uses; ours is the first, if any."""

    sides: dict[str, Side] = field(default_factory=dict)
    meters: dict[str, Meter] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)  # other models: their outputs

    def add(self, side: Side) -> None:
        """One more, which is there already."""
        self.sides[side.name], self.meters[side.name] = side, Meter()

    def measure(
        self, loads: Sequence[Load], feed: Feed, plan: ComparePlan, watch: Watch
    ) -> Findings:
        """Every load, all sides in turn; Ctrl-C ends it with what there is.

        Raises:
            LiteError: A side cannot run the model, or computes something else.
        """
        found = Findings()
        try:
            for load in loads:
                bursts, found.interrupted = self._turns(load, feed, plan, watch, found)
                self._add(found, load, bursts)
                if found.interrupted:
                    break
        except KeyboardInterrupt:  # between two loads
            found.interrupted = True
        return found

    def _turns(
        self, load: Load, feed: Feed, plan: ComparePlan, watch: Watch, found: Findings
    ) -> tuple[Bursts, bool]:
        with ExitStack() as stack:
            desks = {}
            for name, side in self.sides.items():
                watch.at(f"{name}, {load}")
                with self.meters[name].turn():
                    desks[name] = stack.enter_context(side.desk(load, feed))
            if OURS in desks:
                found.apart = check_alike(desks, self.files)
            return turns(desks, load, plan, watch, self.meters)

    def _add(self, found: Findings, load: Load, bursts: Bursts) -> None:
        for name, all_rounds in bursts.items():
            if not all_rounds:
                continue
            run = run_of(name, load, all_rounds, self.meters[name].own_bytes)
            found.runs.append(run)
            late_ms = max(burst.late_ms for burst in all_rounds)
            if late_ms > max(_LATE_MS, run.latency_ms.p50 / 10):
                found.warnings.append(
                    f"{name}, {load}: requests were sent up to {late_ms:.1f} ms late (p99), which "
                    "is part of the latency; the machine has no room for the sender beside the load"
                )
        found.ratios += ratios(load, bursts)


@contextmanager
def taking_part(
    ours: Ours, meter: Meter, peers: Sequence[str], model: Path, kind: str, wish: Wish
) -> Iterator[Sides]:
    """Our side, which is there already, and the peers, which are made here and closed after all.

    Raises:
        LiteError: The model cannot be given to a peer, or another file takes other requests.
    """
    everyone = Sides({OURS: ours}, {OURS: meter})
    with ExitStack() as stack:
        runtimes = [name for name in peers if name in INSTALL]
        for path in (Path(name) for name in peers if name not in INSTALL):
            _add_file(everyone, stack, ours, path, model, wish)
        if runtimes:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mslite-bench-")))
            graph = Graph(model, onnx_of(model, kind, folder), wish)
            for name in runtimes:
                import_library(name)
                everyone.meters[name] = Meter()
                with everyone.meters[name].turn():
                    everyone.sides[name] = graph.side(name)
                stack.callback(everyone.sides[name].close)
        yield everyone


def _add_file(
    everyone: Sides, stack: ExitStack, ours: Ours, path: Path, model: Path, wish: Wish
) -> None:
    taken = {*everyone.sides, *INSTALL, model.name}
    name = str(path) if path.name in taken else path.name
    meter = Meter()
    OtherFile(path, wish, name, ours.inputs).close()  # what compiling needs is no memory of it
    with meter.turn():
        side = OtherFile(path, wish, name, ours.inputs)
    stack.callback(side.close)
    everyone.meters[name], everyone.sides[name] = meter, side
    everyone.files[name] = side.outputs()


def places(layout: Layout) -> tuple[ResultPlace, ...]:
    """The workers of a runner."""
    return tuple(
        ResultPlace(number, layout.threads, tuple(bound))
        for number, bound in enumerate(layout.cores)
    )
