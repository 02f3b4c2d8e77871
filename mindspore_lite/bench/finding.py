"""Says what a result means in sentences, the main finding first."""

from __future__ import annotations

from collections.abc import Iterator

from mindspore_lite.bench.looks import OURS
from mindspore_lite.bench.number_text import TIMES, count, digits, factor, many, span, span_tick
from mindspore_lite.bench.view import Entry, View, latency, load_of


def findings(view: View) -> list[str]:
    """At least one sentence; the first is the page's headline."""
    found = [*_tuned(view.tune), *_failed(view), *_compared(view)]
    return found or [*_alone(view)] or ["Nothing was measured."]


def trouble(view: View) -> list[str]:
    """A sentence per run in which requests failed."""
    return [
        f"{run['side']} at {load_of(run).text}: {many(run['errors'], 'request')} failed"
        f"{_refused(run)}. "
        f"The first error: {run.get('first_error') or 'not kept'}"
        for run in view.runs
        if run.get("errors")
    ]


def _refused(run: Entry) -> str:
    refused = run.get("refused")
    return f", {count(refused)} of them refused for lack of room" if refused else ""


def setting(point: Entry) -> str:
    """A point of the search in words: `onnxruntime with 4 workers of 1 thread, batches of 8`."""
    workers, threads = (
        many(point[name], name.removesuffix("s")) if point.get(name) else f"automatic {name}"
        for name in ("workers", "threads")
    )
    batch = point.get("batch") or 0
    batches = f"batches of {count(batch)}" if batch > 1 else "no batching"
    return f"{point.get('engine')} with {workers} of {threads}, {batches}"


def _tuned(tune: Entry | None) -> Iterator[str]:
    if not tune:
        return
    limit = tune.get("p99_limit_ms")
    chosen = next((point for point in tune.get("points") or [] if point.get("chosen")), None)
    if chosen is None:
        kept = f" keeps p99 under {span_tick(limit)}" if limit else " worked"
        yield f"No setting that was tried{kept}."
        return
    within = f", under the limit of {span_tick(limit)}" if limit else ""
    yield (
        f"Best is {setting(chosen)}: {digits(chosen.get('throughput'))} requests/s of "
        f"{many(chosen.get('clients'), 'client')} at a p99 of {span(chosen.get('p99_ms'))}{within}."
    )
    if tune.get("not_remembered"):
        yield f"It is not remembered for engine=auto: {tune['not_remembered']}."


def _failed(view: View) -> Iterator[str]:
    ours = view.of(view.lead)
    if ours and not any(_answered(run) for run in ours):
        yield f"Every request to {view.lead} failed."


def _compared(view: View) -> Iterator[str]:
    """Per peer, its greatest load, and the load where we are furthest behind, if there is one."""
    of_throughput = [ratio for ratio in view.ratios if ratio.get("of") == "throughput"]
    of_p99 = [ratio for ratio in view.ratios if ratio.get("of") == "p99"]
    for ratios in (of_throughput, of_p99):
        for peer in dict.fromkeys(ratio.get("peer") for ratio in ratios):
            whole = [r for r in ratios if r.get("peer") == peer and r.get("middle") is not None]
            behind = [ratio for ratio in whole if (ratio.get("high") or 1) < 1]
            told = whole[-1:] + sorted(behind, key=lambda ratio: float(ratio["middle"]))[:1]
            ours = view.model.get("file") or OURS if peer in _files(view) else OURS
            yield from dict.fromkeys(_ratio_sentence(ratio, str(ours)) for ratio in told)


def _files(view: View) -> set[object]:
    """The sides that are other model files."""
    return {one.get("peer") for one in view.apart}


def _ratio_sentence(ratio: Entry, ours: str) -> str:
    middle, low, high = (ratio.get(name) for name in ("middle", "low", "high"))
    times, load = f"{factor(middle)}\N{NO-BREAK SPACE}{TIMES}", load_of(ratio).text
    even = low is not None and high is not None and low <= 1 <= high
    note = "; 1 lies within the spread" if even else ""
    rest = f"at {load} ({factor(low)} to {factor(high)}){note}."
    if ratio.get("of") == "throughput":
        return f"{ours} answers {times} as many requests as {ratio.get('peer')} {rest}"
    return f"The p99 latency of {ratio.get('peer')} is {times} that of {ours} {rest}"


def _alone(view: View) -> Iterator[str]:
    """What we reached by ourselves, where it was most."""
    best = best_run(view)
    if best:
        yield (
            f"{view.lead} answers {digits(best.get('throughput'))} requests/s at "
            f"{load_of(best).text}, half of them within {span(latency(best, 'p50'))} and 99 % "
            f"within {span(latency(best, 'p99'))}."
        )


def best_run(view: View) -> Entry | None:
    """Our run with the highest throughput."""
    ours = [run for run in view.of(view.lead) if _answered(run)]
    return max(ours, key=lambda run: run.get("throughput") or 0.0, default=None)


def _answered(run: Entry) -> bool:
    return bool(run.get("throughput"))
