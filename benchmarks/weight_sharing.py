"""What a further process costs that uses another's weights: BERT-base-sized, 1, 3 and 8 processes.

Run: python benchmarks/weight_sharing.py [--processes 1 3 8] [--layers 12] [--rounds 7]
     [--json FILE] [--quick]

Own memory is what the kernel calls private, clean and dirty: pages that no other process maps. Each
process reads it before it builds, with all packages imported, and after its requests. The first
process shares, all others use its handle. The peer is a process with plain ONNX Runtime and the
same graph. Speed is that of one request after the other, in interleaved rounds, while all other
processes wait: a process that uses another's weights, one that has compiled its own, and the peer.

Targets: a further process owns at most 8 % of the weights, and is within 3 % of an unshared one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import load
import networks
import numpy as np
import onnxruntime as ort
import record

import mindspore_lite as mslite

MIB = 2**20
HANDLE = "shareable_weight_mem_handle"
HEAD = (
    "processes",
    "who shares, own memory",
    "each further one, at most",
    "target",
    "plain ONNX Runtime, each",
)

Rows = list[list[str]]


# --- inside of a process --------------------------------------------------------------------------


def private_bytes() -> int:
    """What this process alone has in memory."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    sizes = (line.split()[1] for line in lines if line.startswith("Private_"))
    return sum(map(int, sizes)) * 1024


def built(kind: str, path: str, threads: int, config: Any) -> tuple[Callable[[], object], Any]:
    """A call that runs the model once, and what must be kept for it."""
    feed = np.zeros((1, 128), np.int32)
    if kind == "peer":
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {session.get_inputs()[0].name: feed}), session
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR, context, config_dict=config)
    return lambda: model.predict([feed]), model


def serve(kind: str, path: str, threads: int) -> None:
    """Build when told how, then run bursts of as many seconds as each line says."""
    ort.get_available_providers()
    mslite.Model().get_model_info("current_pid")
    before = private_bytes()
    print(json.dumps({"pid": os.getpid(), "before": before}), flush=True)
    call, model = built(kind, path, threads, json.loads(sys.stdin.readline()))
    for _ in range(3):
        call()
    handle = "" if kind == "peer" else model.get_model_info(HANDLE)
    print(json.dumps({"handle": handle}), flush=True)
    for line in sys.stdin:
        seconds = json.loads(line)
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            call()
            count += 1
        rate = count / (time.perf_counter() - start)
        print(json.dumps({"private": private_bytes(), "rate": rate}), flush=True)


# --- outside --------------------------------------------------------------------------------------


class Process:
    """One of the processes above."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self._popen = popen
        self.start = self.answer()

    def answer(self) -> dict[str, Any]:
        """The next thing that it says."""
        assert self._popen.stdout is not None
        found: dict[str, Any] = json.loads(self._popen.stdout.readline())
        return found

    def told(self, what: Any) -> dict[str, Any]:
        """Tell it something, and wait for its answer."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(what) + "\n")
        self._popen.stdin.flush()
        return self.answer()

    def owned(self) -> tuple[int, int]:
        """Own memory before the build, and now."""
        return self.start["before"], self.told(0.0)["private"]


@contextmanager
def started(kind: str, path: Path, threads: int, **environment: str) -> Iterator[Process]:
    """A process that has not built anything yet."""
    command = [sys.executable, __file__, "--serve", kind, str(path), str(threads)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


def sharing(stack: ExitStack, path: Path, threads: int, count: int) -> list[Process]:
    """Processes that have built: the first shares, the others use its weights."""
    made = [stack.enter_context(started("ours", path, threads)) for _ in range(count)]
    main, *others = made
    pids = ", ".join(str(one.start["pid"]) for one in others) or "0"
    handle = main.told({"pids": pids})["handle"]
    for other in others:
        other.told({"shared_mem_handle": handle})
    return made


def report_memory(what: str, found: Sequence[tuple[int, int]], weights: int) -> int:
    """Print own memory; of several processes, that of the largest. Returns what the build cost."""
    before, after = max(found, key=lambda one: one[1] - one[0])
    print(
        f"{what}: owns {after / MIB:.1f} MiB, {before / MIB:.1f} of it before the build; the build "
        f"and its requests cost {(after - before) / MIB:.1f} MiB = "
        f"{(after - before) / weights:.1%} of the weights"
    )
    return after - before


def memory(mindir: Path, onnx: Path, threads: int, counts: Sequence[int], peers: int) -> Rows:
    """Own memory with several numbers of processes; returns the rows of the table."""
    weights, rows = mindir.stat().st_size, {}
    for count in counts:
        with ExitStack() as stack:
            main, *others = sharing(stack, mindir, threads, count)
            what = f"{_processes(count)}, the one that shares"
            cost = report_memory(what, [main.owned()], weights)
            rows[count] = [str(count), f"{cost / MIB:.1f} MiB", "", "", ""]
            if others:
                what = f"{_processes(count)}, each of the {count - 1} others, at most"
                cost = report_memory(what, [other.owned() for other in others], weights)
                share = f"{cost / MIB:.1f} MiB = {cost / weights * 100:.1f} % of the weights"
                rows[count][2:4] = [share, "at most 8 %"]
    with ExitStack() as stack:
        made = [stack.enter_context(started("peer", onnx, threads)) for _ in range(peers)]
        for one in made:
            one.told(None)
        what = f"{_processes(peers)} of plain ONNX Runtime, each, at most"
        cost = report_memory(what, [one.owned() for one in made], weights)
    if peers in rows:
        rows[peers][4] = f"{cost / MIB:.1f} MiB = {cost / weights * 100:.0f} %"
    return list(rows.values())


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def speed(mindir: Path, onnx: Path, threads: int, rounds: int, seconds: float) -> None:
    """How many requests a second one process answers."""
    own_cache = {"MSLITE_CACHE_DIR": f"{mindir.parent}/own-cache"}
    with ExitStack() as stack:
        _, user = sharing(stack, mindir, threads, 2)
        alone = stack.enter_context(started("ours", mindir, threads, **own_cache))
        peer = stack.enter_context(started("peer", onnx, threads))
        alone.told({})
        peer.told(None)
        sides = {"shared": user, "unshared": alone, "peer": peer}
        found = load.interleaved(
            {name: lambda one=one: one.told(seconds)["rate"] for name, one in sides.items()}, rounds
        )
    for other, name in [("unshared", "unshared process"), ("peer", "plain ONNX Runtime")]:
        print(f"requests a second, shared / {name}: {load.ratio(found['shared'], found[other])}")


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 3, 8])
    parser.add_argument("--peers", type=int, default=3, help="processes of the peer (default: 3)")
    parser.add_argument("--threads", type=int, default=1, help="of each process (default: 1)")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each burst (default: 3)")
    parser.add_argument("--quick", action="store_true", help="a tiny model, 3 processes, 1 round")
    args = parser.parse_args()
    sizes = {"layers": args.layers}
    if args.quick:
        sizes = {"layers": 1, "hidden": 48, "vocabulary": 100}
        args.processes, args.peers, args.rounds, args.seconds = [3], 1, 1, 0.05
    with load.scratch() as folder:
        mindir = networks.bert(folder / "bert.mindir", **sizes)
        onnx = networks.equivalent_onnx(mindir, folder / "bert.onnx")
        print(f"weights {mindir.stat().st_size / MIB:.1f} MiB")
        rows = memory(mindir, onnx, args.threads, args.processes, args.peers)
        speed(mindir, onnx, args.threads, args.rounds, args.seconds)
    table = record.Table(*HEAD)
    for row in rows:
        table.add(*row)
    record.write(args.json, {"processes": table})


if __name__ == "__main__":
    main()
