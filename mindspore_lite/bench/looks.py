"""Colours, dashes and markers that distinguish the sides of a comparison.

A name goes in, a Look comes out. Any one of the three is enough, so the page reads without
colours; the colours are in page.css, one set for light and one for dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from mindspore_lite.bench.markup import node, shortened

OURS = "mslite"


@dataclass(frozen=True)
class Look:
    """What one side looks like: a class of page.css, a pattern of dashes, corners of a marker."""

    name: str
    dash: str
    corners: tuple[tuple[float, float], ...]  # around 0, 0; none for a circle


_SQUARE = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
_UP = ((0.0, -1.2), (1.15, 0.9), (-1.15, 0.9))
_DIAMOND = ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0))
_DOWN = ((0.0, 1.2), (1.15, -0.9), (-1.15, -0.9))
_KNOWN = {
    OURS: Look("side-a", "none", ()),
    "onnxruntime": Look("side-b", "7 3", _SQUARE),
    "openvino": Look("side-c", "2 3", _UP),
    "torch": Look("side-d", "8 3 2 3", _DIAMOND),
}
_OTHER = Look("side-e", "4 2 1 2 1 2", _DOWN)


def look(side: str) -> Look:
    """The look of a side or an engine; all that nobody foresaw share one."""
    return _KNOWN.get(side, _OTHER)


def marker(side: str, x: float, y: float, size: float = 3.6, kind: str = "mark") -> Element:
    """The sign of a side at a place; `kind` is a class: mark is full, hollow is not."""
    shape = look(side)
    classes = f"{shape.name} {kind}"
    if not shape.corners:
        return node("circle", class_=classes, cx=x, cy=y, r=size)
    return node(
        "path",
        class_=classes,
        d=path([(x + size * i, y + size * j) for i, j in shape.corners], closed=True),
    )


def path(points: Sequence[tuple[float, float]], closed: bool = False) -> str:
    """The `d` of a line through points."""
    return "M" + "L".join(f"{shortened(x)} {shortened(y)}" for x, y in points) + "Z" * closed


def line(side: str, points: Sequence[tuple[float, float]], kind: str = "line") -> Element:
    """A line in a side's colour and dash."""
    shape = look(side)
    return node("path", class_=f"{shape.name} {kind}", d=path(points), stroke_dasharray=shape.dash)


def legend(sides: Sequence[str], *notes: str) -> Element:
    """Which look is whose, then what other marks mean."""
    entries = [node("li", _sample(side), side) for side in sides]
    return node(
        "ul", *entries, *[node("li", note, class_="note") for note in notes], class_="legend"
    )


def _sample(side: str) -> Element:
    parts = line(side, [(1, 7), (33, 7)]), marker(side, 17, 7)
    return node("svg", *parts, viewBox="0 0 34 14", width=34, height=14, aria_hidden="true")
