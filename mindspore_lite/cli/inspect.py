"""`mslite inspect MODEL`: what a model file holds and needs, without running it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mindspore_lite.cli.console import fail, say, working
from mindspore_lite.errors import LiteError, ModelFileError, UnsupportedOpError
from mindspore_lite.inspection.facts import Facts, Memory, Port


def inspect(
    model: Path | None = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    html: Path | None = None,
    ops: Annotated[bool, Parameter(negative="")] = False,
    sandbox: Annotated[bool, Parameter(negative="")] = False,
    weights: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show what a model file holds and needs, without running it.

    Parameters
    ----------
    model
        A MindIR or ONNX file.
    as_json
        Print one JSON object for programs; docs/inspect.md lists the keys.
    html
        Also write a page into this file that shows the graph in any browser, without a network.
    ops
        Print every supported operator; needs no model.
    sandbox
        Read the model in a child process that can reach its folder and no more.
    weights
        List every weight instead: its names, shape and type, how it lies, whether it may change.
    """
    if ops:
        show_operators(as_json)
    elif model is None:
        fail("inspect wants a MODEL, or --ops (see mslite inspect --help)", code=2)
    elif weights and html is not None:
        fail("inspect lists weights or draws the graph: leave --weights or --html out", code=2)
    elif sandbox:
        from mindspore_lite.cli.jailed import inspect_jailed

        inspect_jailed(model, as_json, html, weights)
    elif weights:
        show_weights(model, as_json)
    else:
        show_model(model, as_json, html)


def show_model(model: Path, as_json: bool, html: Path | None) -> None:
    """Facts about one file; the exit code says whether it can run."""
    from mindspore_lite.inspection.examine import examine

    try:
        with working(f"reading {model.name}"):
            found = examine(model)
    except ModelFileError as exc:
        fail(str(exc), code=2)
    if as_json:
        say(json.dumps(found.facts.as_json(), indent=2))
    else:
        show_facts(found.facts)
    if html is not None:
        from mindspore_lite.inspection.page import page

        with working(f"drawing {model.name}"):
            html.write_text(page(found.facts, found.sketches()), encoding="utf-8")
        if not as_json:
            say(f"\nthe graph is drawn in {printable(str(html))}")
    if not found.facts.can_run:
        raise SystemExit(1)


def show_weights(model: Path, as_json: bool) -> None:
    """Every weight of one file."""
    from mindspore_lite.inspection.examine import weights_of

    try:
        with working(f"reading {model.name}"):
            found = weights_of(model)
    except UnsupportedOpError as exc:
        fail(str(exc), code=1)
    except LiteError as exc:
        fail(str(exc), code=2)
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        say(json.dumps({"file": str(model), "weights": rows}, indent=2))
        return
    lines = [
        (
            one.name,
            one.framework_name or "-",
            str(list(one.shape)),
            one.dtype,
            one.layout,
            "yes" if one.may_change else f"no: {one.reason}",
        )
        for one in found
    ]
    show_table([("weight", "framework's name", "shape", "dtype", "layout", "may change"), *lines])


def show_operators(as_json: bool) -> None:
    """The table of supported primitives."""
    from mindspore_lite.inspection.operators import rows

    found = rows()
    if as_json:
        say(json.dumps([vars(row) for row in found], indent=2))
        return
    lines = [(row.primitive, row.family, row.signature, row.remark) for row in found]
    show_table([("primitive", "family", "signature", "remark"), *lines])


def show_facts(facts: Facts) -> None:
    """The report that people read."""
    say(printable(facts.file))
    producer = printable(f"{facts.producer} {facts.producer_version}".strip()) or "nobody it names"
    say(f"  {facts.format} of {size_text(facts.size_bytes)}, written by {producer}")
    versions = [f"ir_version {printable(facts.ir_version) or 'not given'}"]
    if facts.mind_ir_version is not None:
        versions.append(f"mind_ir_version {facts.mind_ir_version}")
    say(f"  {', '.join(versions)}, {printable(facts.encoding)}")
    for name, value in facts.user_info.items():
        say(f"  user info {printable(name)}: {printable(value)}")
    show_ports("inputs", facts.inputs)
    show_ports("outputs", facts.outputs)
    show_sizes(facts)
    show_nodes(facts)
    show_problems(facts)


def show_ports(title: str, found: Sequence[Port]) -> None:
    """Name, type, shape, and which dims are open."""
    say(f"{title}:")
    rows = []
    for port in found:
        shape = "any rank" if port.shape is None else str(list(port.shape))
        axes = [str(axis) for axis, dim in enumerate(port.shape or ()) if dim == -1]
        rows.append((port.name, port.dtype, shape, f"open dims: {', '.join(axes)}" if axes else ""))
    show_table(rows)


def show_sizes(facts: Facts) -> None:
    """Weights, the files they lie in, and memory."""
    weights = facts.weights
    parts = ", ".join(f"{name} {size_text(a.size_bytes)}" for name, a in weights.by_dtype.items())
    amount = f"{weights.elements:,} parameters in {weights.tensors} tensors"
    say(f"weights: {f'{amount}: {parts}' if weights.tensors else 'none'}")
    for file in facts.external_files:
        say(f"  in {printable(file.name)}: {size_text(file.size_bytes)}")
    memory = facts.memory
    say(f"memory of a run: {memory_text(memory) if memory else 'not known, see below'}")
    if memory and memory.peak_at:
        say(f"  most activations are alive at {printable(memory.peak_at)}")


def memory_text(memory: Memory) -> str:
    """The estimate with what it rests on."""
    total = memory.weights_bytes + memory.activations_bytes
    text = (
        f"about {size_text(total)}: weights {size_text(memory.weights_bytes)}, "
        f"activations {size_text(memory.activations_bytes)}"
    )
    if memory.open_dims_as_one:
        text += " per batch item (open dims taken as 1)"
    if memory.unknown_tensors:
        text += f", without {memory.unknown_tensors} tensors whose size depends on data"
    return text


def show_nodes(facts: Facts) -> None:
    """What is computed, in which graphs, and what is changed in place."""
    nodes = sum(graph.nodes for graph in facts.graphs)
    say(f"operators: {nodes} nodes of {len(facts.operators)} kinds")
    show_table(
        [
            (op.name, str(op.count), op.family, "" if op.supported else "not supported")
            for op in facts.operators
        ]
    )
    if len(facts.graphs) > 1:
        say(f"graphs: {len(facts.graphs)}")
        for graph in facts.graphs:
            callers = f", called at {listed(graph.called_from)}" if graph.called_from else ""
            say(f"  {graph.role}, {graph.nodes} nodes{callers}: {printable(graph.name)}")
    if facts.in_place:
        found = ", ".join(f"{printable(name)} {n}" for name, n in facts.in_place.items())
        say(f"changed in place: {found}")
    if facts.kept:
        say(f"kept from run to run: {listed(facts.kept)}; a Model does that, a runner does not")


def show_problems(facts: Facts) -> None:
    """The verdict, with every place of every problem."""
    if facts.can_run:
        say("it can run: everything in it is supported")
        return
    say(f"it cannot run: {len(facts.problems)} thing(s) not supported")
    for problem in facts.problems:
        say(f"  {printable(problem.reason)}")
        for place in problem.places:
            say(f"    at {printable(place)}")


def show_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns that are as wide as they need; numbers stand to the right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = [
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        say(f"  {'  '.join(line)}".rstrip())


def size_text(size_bytes: int) -> str:
    """Bytes as people read them."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    for power, unit in ((1, "KiB"), (2, "MiB")):
        if size_bytes < 1024 ** (power + 1):
            return f"{size_bytes / 1024**power:.1f} {unit}"
    return f"{size_bytes / 2**30:.1f} GiB"


def listed(names: Sequence[str]) -> str:
    """The first few of many."""
    shown = ", ".join(printable(name) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def printable(text: str) -> str:
    """A text of the file without what a terminal would obey: escapes, line ends."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
