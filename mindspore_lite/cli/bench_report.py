"""Shows what `mslite bench` measured, and writes the files that were asked for."""

from __future__ import annotations

import json

from mindspore_lite.bench.campaign import Findings
from mindspore_lite.bench.result import Result, plain
from mindspore_lite.cli.bench_flags import Options
from mindspore_lite.cli.bench_show import show_apart, show_ratios, show_runs
from mindspore_lite.cli.console import fail, say
from mindspore_lite.cli.inspect import printable


def show(found: Findings, options: Options) -> None:
    """All tables; raises KeyboardInterrupt where Ctrl-C left nothing to show."""
    if found.interrupted and not found.runs:
        raise KeyboardInterrupt
    show_runs(found.runs)
    show_ratios(found.ratios)
    show_apart(found.apart, given=bool(options.input))
    for text in found.warnings:
        say(f"warning: {text}")


def finish(result: Result, options: Options, found: Findings) -> None:
    """Write the files; ends the program where nothing was answered, or not all was asked."""
    write(result, options)
    if found.interrupted:
        fail("interrupted; these are the figures up to then", code=130)
    if not any(run.requests for run in found.runs if run.side == found.runs[0].side):
        fail("no request was answered", code=1)


def write(result: Result, options: Options) -> None:
    """--json and --html."""
    if options.json is not None:
        options.json.write_text(json.dumps(plain(result), indent=2) + "\n", encoding="utf-8")
        say(f"the figures are in {printable(str(options.json))}")
    if options.html is not None:
        from mindspore_lite.bench.page import page

        options.html.write_text(page(plain(result)), encoding="utf-8")
        say(f"the report is {printable(str(options.html))}")
