"""Makes a table and a picture of what gpu.py measured. Needs matplotlib for the picture.

Run: python benchmarks/gpu_plot.py [benchmarks/results/gpu.json] [--svg benchmarks/results/gpu.svg]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pictures

RESULTS = Path(__file__).parent / "results"
PEERS = ("eager", "max-autotune", "onnxruntime")
NAMES = {
    "eager": "PyTorch eager",
    "max-autotune": "PyTorch max-autotune",
    "onnxruntime": "ONNX Runtime",
}


def table(rows: list[dict[str, Any]]) -> str:
    """The lines of a Markdown table."""
    peers = [peer for peer in PEERS if any(peer in row["ratio"] for row in rows)]
    lines = ["| model | precision | batch | mslite, ms | " + " | ".join(peers) + " |"]
    lines.append("| --- | --- | --- | --- |" + " --- |" * len(peers))
    for row in rows:
        cells = [row["model"], row["precision"], str(row["batch"]), f"{row['ms']['mslite']:.3f}"]
        for peer in peers:
            ratio = row["ratio"].get(peer)
            cells.append(
                "" if ratio is None else f"{row['ms'][peer]:.2f} ({ratio['middle']:.2f} x)"
            )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def joined(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a file, each with the ratios of peers that were measured in later runs."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["model"], row["precision"], row["batch"]

    later = {key(row): row["ratio"] for row in found.get("autotune", ())}
    return [row | {"ratio": later.get(key(row), {}) | row["ratio"]} for row in found["latency"]]


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Bars: how many times as long the peers take."""
    found = [peer for peer in PEERS if any(peer in row["ratio"] for row in rows)]
    figure, axes = pictures.pyplot().subplots(
        figsize=(8, 0.45 * len(rows) + 1.2), layout="constrained"
    )
    height = 0.8 / len(found)
    for number, peer in enumerate(found):
        places = [at + number * height for at, row in enumerate(rows) if peer in row["ratio"]]
        ratios = [row["ratio"][peer]["middle"] for row in rows if peer in row["ratio"]]
        bars = axes.barh(places, ratios, height, label=NAMES[peer])
        axes.bar_label(bars, fmt="%.1f", padding=2)
    labels = [f"{row['model']} {row['precision']}, batch {row['batch']}" for row in rows]
    axes.set_yticks([at + 0.4 - height / 2 for at in range(len(rows))], labels)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time of a call / that of mslite")
    axes.legend()
    pictures.save(figure, path, rows)


def main() -> None:
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("json", nargs="?", type=Path, default=RESULTS / "gpu.json")
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    found = json.loads(args.json.read_text())
    print(table(found["latency"]))
    if args.svg:
        picture(joined(found), args.svg)


if __name__ == "__main__":
    main()
