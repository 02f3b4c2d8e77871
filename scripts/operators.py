"""Writes docs/operators.md from the table of primitives. Run: python scripts/operators.py [--check]

With --check nothing is written; the exit code says whether the file is current.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/operators.md"
HEAD = """\
# Operators

The {count} MindIR primitives that a model may use, made from the code by `scripts/operators.py`;
`mslite inspect --ops` prints the same. An argument with `!` is an attribute in files of MindSpore
2.2 and older, and a trailing input in newer ones. [`mslite inspect MODEL`](inspect.md) tells
whether a model needs others.
"""


def text() -> str:
    """The page as it should be."""
    sys.path.insert(0, str(ROOT))
    from mindspore_lite.inspection.operators import rows

    found = rows()
    parts = [HEAD.format(count=len(found))]
    for family, members in itertools.groupby(found, key=lambda row: row.family):
        lines = [f"## {family}", "", "| primitive | remark |", "| --- | --- |"]
        lines += [f"| `{row.signature}` | {cell(row.remark)} |" for row in members]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def cell(words: str) -> str:
    """Words as Markdown takes them in a table."""
    for character in "\\|*_<[`":
        words = words.replace(character, f"\\{character}")
    return words


def main() -> int:
    """Write the page, or tell that it is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only tell whether it is current")
    wanted = text()
    if not parser.parse_args().check:
        PAGE.write_text(wanted, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        print("docs/operators.md is stale; run python scripts/operators.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
