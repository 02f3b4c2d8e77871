"""A picture of what parallel.py measured: its figures go in, an SVG file comes out.

One field per model: requests per second against the number of clients, us and the peers. The bands
are the quartiles over the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pictures

# the label of a side, its colour, and its mark; the colours can be told apart by the colour-blind
LOOKS = {
    "mslite": ("mslite, no settings", "#0072b2", "o"),
    "(a) default session": ("ONNX Runtime, one shared session", "#d55e00", "s"),
    "best of (b)": ("ONNX Runtime, best of six by hand", "#009e73", "^"),
    "(c) OpenVINO": ("OpenVINO, AsyncInferQueue", "#cc79a7", "D"),
}

Rows = Sequence[dict[str, Any]]


def picture(rows: Rows, path: Path) -> None:
    """Draw all models side by side."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    figure, fields = pictures.pyplot().subplots(
        1, len(models), figsize=(1 + 3.2 * len(models), 3.6), layout="constrained", squeeze=False
    )
    for model, axes in zip(models, fields[0], strict=True):
        _field(axes, model, [row for row in rows if row["model"] == model])
    fields[0][0].set_ylabel("requests per second", fontsize=11)
    handles = dict(zip(*reversed(fields[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, frameon=False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # inches
    pictures.save(figure, path, rows)


def _field(axes: Any, model: str, rows: Rows) -> None:
    """One model. The ticks are the numbers of clients that were measured, evenly apart."""
    places = range(len(rows))
    for side, (label, colour, mark) in LOOKS.items():
        if not all(side in row["per_second"] for row in rows):
            continue
        low, middle, high = (
            [row["per_second"][side][key] for row in rows] for key in ("low", "middle", "high")
        )
        front = 3 if side == "mslite" else 2
        axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            places, middle, color=colour, marker=mark, markersize=5, label=label, zorder=front
        )
    axes.set_xticks(places, [str(row["clients"]) for row in rows])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("clients", fontsize=11)
    axes.set_title(model, fontsize=12)
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
