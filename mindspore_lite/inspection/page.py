"""Writes the page of `mslite inspect --html`: one file, no network, nothing of the model trusted.

Everything from the model lies in one block of JSON that cannot end early, since every `<`, `>` and
`&` in it is escaped; the script turns it into text, never into markup. The policy in the page's
head lets only this very script and style run, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path

from mindspore_lite.inspection.drawing import ROW, draw
from mindspore_lite.inspection.facts import Facts
from mindspore_lite.inspection.sketch import Sketch

_HERE = Path(__file__).parent
COLOURS = {  # of families, behind white text
    "conv": "#1f5fa8",
    "matmul": "#4a3fb0",
    "norm": "#1d7048",
    "activation": "#8a5300",
    "elementwise": "#4f5b66",
    "reduce": "#7a3b8f",
    "shape": "#5a6a2a",
    "index": "#0f6a75",
    "resize": "#8c3f74",
    "structure": "#666a70",
    "control": "#8f4a17",
    "input": "#30363d",
    "output": "#30363d",
    "unknown": "#5c5c5c",
    "problem": "#c01824",
}
OTHERS = ("#3d5a80", "#6b4c2a", "#2f6b5e", "#7a4560")  # for families without a colour of their own


def page(facts: Facts, sketches: Sequence[Sketch]) -> str:
    """The whole page as HTML."""
    style, script = (_read(name) for name in ("page.css", "page.js"))
    roles = {sketch.name: sketch.role for sketch in sketches}
    data = {
        "facts": facts.as_json(),
        "graphs": [draw(sketch, roles) for sketch in sketches],
        "colours": COLOURS,
        "others": OTHERS,
        "row": ROW,
    }
    parts = {
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "title": html.escape(f"{Path(facts.file).name} · mslite inspect"),
        "style": style,
        "script": script,
        "data": _inside_script(json.dumps(data, separators=(",", ":"))),
    }
    text = _read("page.html")
    head, *pieces = text.split("{{")  # one pass: what is put in is never looked at again
    for piece in pieces:
        name, _, rest = piece.partition("}}")
        head += parts[name] + rest
    return head


def _inside_script(text: str) -> str:
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
