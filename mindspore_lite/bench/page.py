"""The report of `mslite bench --html`: the dict of a Result goes in, a page of HTML comes out."""

from __future__ import annotations

import html
import json
from typing import Any


def page(result: dict[str, Any]) -> str:
    """The figures as they are, for any browser."""
    title = html.escape(f"{result['model']['file']} · mslite bench")
    text = html.escape(json.dumps(result, indent=2))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<h1>{title}</h1>\n<pre>{text}</pre>\n</html>\n"
    )
