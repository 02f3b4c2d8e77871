"""Builds HTML and SVG elements with escaped text.

The standard library's ElementTree escapes every text and attribute as it writes them; no function
of the page joins markup by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, tostring

# lone surrogates and control characters, which names of files may hold
_UNFIT = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST, _LEAST = 1e15, 1e-12  # what is greater was never measured, what is smaller is nothing


def node(tag: str, *children: Element | str | None, **attributes: str | float) -> Element:
    """One element; `class_` is class, `stroke_width` stroke-width, None is no child."""
    names = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    made = Element(tag, {key: _attribute(value) for key, value in names.items()})
    return fill(made, children)


def fill(parent: Element, children: Iterable[Element | str | None]) -> Element:
    """Put elements and texts into an element, in order."""
    for child in children:
        if isinstance(child, Element):
            parent.append(child)
        elif child is not None:
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + child
            else:
                parent.text = (parent.text or "") + child
    return parent


def written(element: Element) -> str:
    """The element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def shortened(value: float) -> str:
    """A coordinate: a tenth of a unit is finer than a screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def cleaned(value: Any) -> Any:
    """A result whose numbers are finite, not negative, or None, with texts that UTF-8 can write."""
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    if isinstance(value, str):
        return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, float | int) and not isinstance(value, bool):
        if not 0 <= value <= _MOST:  # so written, it holds for NaN as well
            return None
        return value if value >= _LEAST else 0
    return value


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else shortened(value)
