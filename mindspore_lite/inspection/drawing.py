"""Turns sketches into what the page draws: boxes in blocks, blocks in layers.

A chain of boxes that only hand their result on stands as one block, which begins with a box that
does the heavy work: a convolution with its norm and activation reads as one thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mindspore_lite.inspection.layout import arrange
from mindspore_lite.inspection.sketch import Box, Operand, Sketch

ROW, CAPTION = 24.0, 18.0  # heights
_LETTER, _SMALL_LETTER = 9.4, 7.4  # generous widths of letters in the page's two sizes
_WIDTHS = (110.0, 300.0)
_LONGEST_CHAIN = 10
_TIMES = "\N{MULTIPLICATION SIGN}"
_HEAVY = ("conv", "matmul", "control", "input", "output")  # families that begin a block
_LIGHT = ("BiasAdd",)  # of a heavy family


def draw(sketch: Sketch, roles: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One graph with all coordinates, ready for JSON; `roles` says what other graphs are for."""
    notes = [_note(box, roles or {}) for box in sketch.boxes]
    number = {box.name: i for i, box in enumerate(sketch.boxes)}
    sources = [_sources(box, number) for box in sketch.boxes]
    chains = _chains(sketch.boxes, sources)
    block_of = {box: block for block, chain in enumerate(chains) for box in chain}
    captions = [short_label(sketch.boxes[chain[0]]) for chain in chains]
    sizes = [
        _size([(sketch.boxes[i].op, notes[i]) for i in chain], caption)
        for chain, caption in zip(chains, captions, strict=True)
    ]
    edges = sorted(
        {
            (block_of[source], block_of[box])
            for box, found in enumerate(sources)
            for source in found
            if block_of[source] < block_of[box]
        }
    )
    layout = arrange(sizes, edges)
    boxes: list[dict[str, Any]] = [{}] * len(sketch.boxes)
    for block, chain in enumerate(chains):
        x, y = layout.places[block]
        y += CAPTION if captions[block] else 0.0
        for row, i in enumerate(chain):
            boxes[i] = _box(sketch.boxes[i], number) | {
                "note": notes[i],
                "x": round(x, 1),
                "y": round(y + row * ROW, 1),
                "w": round(sizes[block][0], 1),
                "block": block,
            }
    return {
        "name": sketch.name,
        "role": sketch.role,
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "boxes": boxes,
        "blocks": [
            {
                "x": round(x, 1),
                "y": round(y, 1),
                "w": round(w, 1),
                "h": round(h, 1),
                "caption": caption,
                "last": chain[-1],
            }
            for (x, y), (w, h), caption, chain in zip(
                layout.places, sizes, captions, chains, strict=True
            )
        ],
        "edges": [
            {"ends": edge, "points": [round(n, 1) for point in route for n in point]}
            for edge, route in zip(edges, layout.routes, strict=True)
        ],
    }


def short_label(box: Box) -> str:
    """`Default/layer1-SequentialCell/0-Block/conv1-Conv2d/Conv2D-op0` -> `layer1/0/conv1`."""
    if box.family in ("input", "output"):
        return ""
    *cells, _ = box.label.split("/")
    if cells[:1] == ["Default"]:
        cells = cells[1:]
    return "/".join(cell.rpartition("-")[0] or cell for cell in cells)


def _sources(box: Box, number: dict[str, int]) -> list[int]:
    """The boxes that a box reads, each once, in order."""
    found = [number[o.name] for o in box.operands if o.kind == "box" and o.name in number]
    return list(dict.fromkeys(found))


def _chains(boxes: Sequence[Box], sources: Sequence[list[int]]) -> list[list[int]]:
    readers = [0] * len(boxes)
    for found in sources:
        for source in found:
            readers[source] += 1
    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}
    for i, box in enumerate(boxes):
        only = sources[i][0] if len(sources[i]) == 1 else None
        chain = chain_of.get(only) if only is not None else None
        if (
            chain is None
            or chain[-1] != only
            or readers[chain[-1]] != 1
            or len(chain) >= _LONGEST_CHAIN
            or (box.family in _HEAVY and box.op not in _LIGHT)
            or boxes[chain[-1]].family in ("control", "input", "output")
        ):
            chain = []
            chains.append(chain)
        chain.append(i)
        chain_of[i] = chain
    return chains


def _size(rows: list[tuple[str, str]], caption: str) -> tuple[float, float]:
    wanted = [len(op) * _LETTER + len(note) * _SMALL_LETTER + 14 for op, note in rows]
    width = min(max(*wanted, len(caption) * _SMALL_LETTER, _WIDTHS[0] - 18) + 18, _WIDTHS[1])
    return width, len(rows) * ROW + (CAPTION if caption else 0.0)


def _note(box: Box, roles: Mapping[str, str]) -> str:
    """What a row shows besides its operator: the shape of its largest weight, or a graph's role."""
    shapes = [o.text.partition(" [")[2].rstrip("]") for o in box.operands if o.kind == "weight"]
    if shapes:
        return max(shapes, key=lambda text: (text.count(","), len(text))).replace(", ", _TIMES)
    return ", ".join(roles.get(o.name, "") for o in box.operands if o.kind == "graph")[:40]


def _box(box: Box, number: dict[str, int]) -> dict[str, Any]:
    return {
        "op": box.op,
        "family": box.family,
        "label": box.label,
        "result": box.result,
        "operands": [_operand(operand, number) for operand in box.operands],
        "attributes": [list(pair) for pair in box.attributes],
        "problem": box.problem,
    }


def _operand(operand: Operand, number: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": operand.kind,
        "text": operand.text,
        "argument": operand.argument,
    }
    if operand.kind == "box":
        made["box"] = number.get(operand.name)
    else:
        made["name"] = operand.name
    return made
