"""Turns the best setting into Python and INI text, and remembers it for engine=auto."""

from __future__ import annotations

from pathlib import Path

from mindspore_lite.bench.result import Point
from mindspore_lite.engines import choice
from mindspore_lite.graph.source import ModelInput, source_of


def entries(point: Point) -> dict[str, dict[str, str]]:
    """Sections that context.parallel.config_info and config_path take; automatic is left out."""
    found = {"common_context": {"engine": point.engine}}
    if point.workers:
        found["parallel"] = {
            "workers_num": str(point.workers),
            "thread_num": str(point.threads),
        }
    if point.batch:
        found["batching"] = {"max_batch_rows": str(point.batch)}
    return found


def ini_text(point: Point) -> str:
    """A file for context.parallel.config_path."""
    lines: list[str] = []
    for section, keys in entries(point).items():
        lines += [f"[{section}]", *(f"{key}={value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def python_text(point: Point, model: str) -> str:
    """A program that builds the model so."""
    lines = ["import mindspore_lite as mslite", "", "context = mslite.Context()"]
    if point.workers:
        lines.append(f"context.parallel.workers_num = {point.workers}")
        lines.append(f"context.cpu.thread_num = {point.threads}")
    if point.batch:
        lines.append(f"context.parallel.max_batch_rows = {point.batch}")
    section = {"common_context": {"engine": point.engine}}
    lines.append(f"context.parallel.config_info = {section!r}")
    lines.append("runner = mslite.ModelParallelRunner()")
    lines.append(f"runner.build_from_file({model!r}, context)")
    return "\n".join(lines) + "\n"


def remember(model: Path, kind: str, point: Point, evidence: choice.Evidence) -> bool:
    """Keep the choice for `[common_context] engine=auto`; False where it cannot be kept."""
    chosen = choice.Choice(point.engine, point.workers, point.threads, point.batch)
    return choice.remember(source_of(ModelInput(kind, model)), chosen, evidence)
