"""The tables of `--timeProfiling`: time per operator, from a trace of ONNX Runtime.

Of an operator that runs others, such as Loop, only the time counts that they do not take, so that
the rows of a table add up to the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mindspore_lite.cli.console import say
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import EngineError

_ENDING = "_kernel_time"
_LAYOUT = "_nchwc"  # what ONNX Runtime adds to the name of a node in its own layout
_RULE = "-" * 41


@dataclass(frozen=True)
class Call:
    """One call of an operator, in microseconds."""

    name: str
    kind: str
    thread: int
    start_us: float
    taken_us: float


@dataclass
class Row:
    """All calls of an operator, or of a kind of operators."""

    times: int = 0
    total_us: float = 0.0


def read_calls(path: str, skipped: int, wanted: int) -> tuple[list[Call], int]:
    """The calls of some runs of a trace, after those to skip, and the number of runs they are of.

    Raises:
        EngineError: The file is no trace.
    """
    try:
        with open(path, encoding="utf-8") as file:
            events = read_json(file.read())
        runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "model_run")
        calls = [_call(e) for e in events if e.get("cat") == "Node" and _is_call(e)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise EngineError(f"ONNX Runtime left no trace that can be read in {path!r}") from exc
    kept = runs[skipped : skipped + wanted]
    if not kept:
        return [], 0
    first, last = kept[0][0], kept[-1][1]  # a run that was recorded in part lies after these
    return [call for call in own_times(calls) if first <= call.start_us <= last], len(kept)


def own_times(calls: Iterable[Call]) -> list[Call]:
    """The same calls without the time of those that run inside them."""
    ordered = sorted(calls, key=lambda call: (call.start_us, -call.taken_us))
    own = [call.taken_us for call in ordered]
    around: dict[int, list[tuple[int, float]]] = defaultdict(list)  # by thread: place, end
    for at, call in enumerate(ordered):
        stack = around[call.thread]
        while stack and stack[-1][1] <= call.start_us:
            stack.pop()
        if stack:
            own[stack[-1][0]] -= call.taken_us
        stack.append((at, call.start_us + call.taken_us))
    return [replace(call, taken_us=max(0.0, left)) for call, left in zip(ordered, own, strict=True)]


def tables(calls: Sequence[Call], runs: int) -> list[str]:
    """The two tables, by name and by kind of operator."""
    return [
        *_table("opName", runs, [(call.name, call.taken_us) for call in calls]),
        *_table("opType", runs, [(call.kind, call.taken_us) for call in calls]),
    ]


def show(path: str, skipped: int, wanted: int) -> None:
    """Print the tables of a trace, and where it is."""
    calls, runs = read_calls(path, skipped, wanted)
    for line in tables(calls, runs):
        say(line)
    if runs < wanted:
        say(f"ONNX Runtime kept a record of {runs} of {wanted} runs; ask for fewer loops")
    say(f"Trace is saved to : {path}")


def _table(head: str, runs: int, times: Iterable[tuple[str, float]]) -> list[str]:
    rows: dict[str, Row] = defaultdict(Row)
    for name, taken_us in times:
        rows[name].times += 1
        rows[name].total_us += taken_us
    whole_us = sum(row.total_us for row in rows.values()) or 1.0
    lines = [_RULE, f"{head}\tavg(ms)\tpercent\tcalledTimes\topTotalTime"]
    for name, row in sorted(rows.items()):
        average_ms, total_ms = row.total_us / runs / 1e3, row.total_us / 1e3
        share = row.total_us / whole_us
        lines.append(f"{name}\t{average_ms:f}\t{share:f}\t{row.times}\t{total_ms:f}")
    return lines


def _is_call(event: dict[str, str]) -> bool:
    return event["name"].endswith(_ENDING)


def _call(event: dict[str, Any]) -> Call:
    kind = str(event["args"]["op_name"])
    name = event["name"].removesuffix(_ENDING).removesuffix(_LAYOUT)
    return Call(name or kind, kind, int(event["tid"]), float(event["ts"]), float(event["dur"]))
