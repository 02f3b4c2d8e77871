"""Conversion of a BERT-base-sized ONNX model, against onnx.load and onnx.save of the same file.

Run: python benchmarks/convert.py [--rounds 7] [--layers 12] [--json FILE] [--quick]

Targets: at most 2.5 times the time of onnx.load + onnx.save, and a peak of memory of at most 3
times the file. Every measurement is a fresh process and the two sides alternate; packages are
imported before the clock starts on both. The peak is of all resident memory; what of it the process
wrote, and what are mapped pages of files, which the system may drop at any time, is told apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import load
import networks
import record

MIB = 2**20
SAMPLE_S = 0.005


def by_mslite(source: str, folder: str) -> None:
    """Convert a file as a user does."""
    import mindspore_lite as mslite

    mslite.Converter().convert(mslite.FmkType.ONNX, source, f"{folder}/result")


def by_onnx(source: str, folder: str) -> None:
    """Read a file and write it again."""
    import onnx

    onnx.save(onnx.load(source), f"{folder}/result.onnx")


SIDES = {"mslite": by_mslite, "onnx": by_onnx}


def resident() -> tuple[int, int]:
    """Bytes of this process in memory: those it wrote, and those of mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {name: text for name, _, text in (line.partition(":") for line in lines)}
    return tuple(int(found[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))


def measure(work: Callable[[], None]) -> dict[str, float]:
    """Time and peaks of memory of some work, beyond what the process has already."""
    base = resident()
    samples, is_over = [base], threading.Event()

    def watch() -> None:
        while not is_over.wait(SAMPLE_S):
            samples.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    is_over.set()
    watcher.join()
    written, mapped = (max(s[i] for s in samples) - base[i] for i in range(2))
    peak = max(map(sum, samples)) - sum(base)
    return {"seconds": seconds, "peak": peak, "written": written, "mapped": mapped}


def measured(side: str, tiny: Path, source: Path) -> dict[str, float]:
    """One conversion in a process of its own, which is this script again."""
    command = [sys.executable, __file__, "--measure", side, str(tiny), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--measure"]:
        side, tiny, source = sys.argv[2:]
        with load.scratch() as folder:
            SIDES[side](tiny, str(folder))  # imports what it needs
            print(json.dumps(measure(lambda: SIDES[side](source, str(folder)))))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="a tiny model, one round")
    args = parser.parse_args()
    sizes = {"layers": args.layers}
    if args.quick:
        sizes, args.rounds = {"layers": 1, "hidden": 48, "vocabulary": 100}, 1
    with load.scratch() as folder:
        mindir = networks.bert(folder / "bert.mindir", **sizes)
        source = networks.equivalent_onnx(mindir, folder / "bert.onnx")
        mindir.unlink()
        tiny = networks.equivalent_onnx(networks.one_op(folder / "a.mindir"), folder / "a.onnx")
        print(f"model {source.stat().st_size / MIB:.1f} MiB")
        found = load.interleaved(
            {side: lambda side=side: measured(side, tiny, source) for side in SIDES}, args.rounds
        )
        table = report(found, source.stat().st_size)
    record.write(args.json, {"cost": table}, packages=["onnx"])


def report(found: dict[str, list[dict[str, float]]], size: int) -> record.Table:
    """Print what was measured; returns the table."""
    middles = []
    for side, rows in found.items():
        seconds, peak, written, mapped = (
            load.spread([row[key] for row in rows]).middle
            for key in ("seconds", "peak", "written", "mapped")
        )
        middles.append((seconds, peak / size))
        print(
            f"{side}: {seconds:.3f} s, peak memory / file {peak / size:.2f} "
            f"(written {written / size:.2f}, mapped files {mapped / size:.2f})"
        )
    times = ([row["seconds"] for row in rows] for rows in found.values())
    ratio = load.ratio(*times)
    print(f"convert / onnx.load + onnx.save: time {ratio}")
    (ours_s, ours), (theirs_s, theirs) = middles
    table = record.Table("", "`Converter.convert`", "`onnx.load` + `onnx.save`", "ratio", "target")
    slower = f"{ratio.middle:.2f} ({ratio.quartiles()})"
    table.add("time", f"{ours_s:.2f} s", f"{theirs_s:.2f} s", slower, "at most 2.5")
    more = f"{ours / theirs:.2f}" if theirs else "-"  # a tiny file leaves no trace
    table.add("peak memory / file", f"{ours:.2f}", f"{theirs:.2f}", more, "at most 3 (ours)")
    return table


if __name__ == "__main__":
    main()
