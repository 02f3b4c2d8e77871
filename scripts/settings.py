"""Writes the tables of docs/settings.md from the code. Run: python scripts/settings.py [--check]

With --check nothing is written; the exit code says whether the page is current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/settings.md"
MARK = "<!-- from here on made by scripts/settings.py -->\n"


def tables() -> str:
    """All settings, and all environment variables."""
    sys.path.insert(0, str(ROOT))
    from mindspore_lite.core.environment import VARIABLES, Variable
    from mindspore_lite.settings.table import KEYS, SERVE_KEYS, Key
    from mindspore_lite.settings.text import text_of

    def row(key: Key) -> str:
        entries = " or ".join(f"`[{section}] {key.name}`" for section in key.sections)
        both = key.sections and key.context
        first = ("Context" if key.context_first else "configuration") if both else ""
        cells = [
            entries,
            f"`context.{key.context}`" if key.context else "",
            key.meaning,
            key.kind.wanted,
            f"`{text}`" if (text := text_of(key.default)) else "",
            first,
            key.reader or "nothing",
            key.since,
        ]
        return f"| {' | '.join(cells)} |"

    def serve_row(key: Key) -> str:
        default = "`latest:1`" if key.name == "versions" else f"`{text_of(key.default)}`"
        cells = [f"`[serve] {key.name}`", key.meaning, key.kind.wanted, default, key.since]
        return f"| {' | '.join(cells)} |".replace("| `` |", "|  |")

    def line(variable: Variable) -> str:
        cells = [f"`{variable.name}`", variable.meaning, variable.default, variable.reader]
        return f"| {' | '.join(cells)} |"

    heads = ["in a configuration", "in the Context", "what it is", "wanted", "default"]
    heads += ["counts first", "read by", "since"]
    lines = ["", "## All settings", "", f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    lines += [row(key) for key in KEYS]
    lines += ["", "## A model of a repository", ""]
    lines += [
        "`model.ini` in the folder of [a served model](serving.md#a-repository-of-models) may have "
        "one section more; the last four keys may be `parameters` of `config.pbtxt` as well."
    ]
    lines += ["", "| key | what it is | wanted | default | since |", "| --- " * 5 + "|"]
    lines += [serve_row(key) for key in SERVE_KEYS]
    lines += ["", "## Environment variables", ""]
    lines += ["| variable | what it is | default | read by |", "| --- | --- | --- | --- |"]
    lines += [line(variable) for variable in VARIABLES]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or tell that it is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only tell whether it is current")
    check = parser.parse_args().check
    before = PAGE.read_text(encoding="utf-8")
    wanted = before.split(MARK)[0] + MARK + tables()
    if not check:
        PAGE.write_text(wanted, encoding="utf-8")
    elif before != wanted:
        print("docs/settings.md is stale; run python scripts/settings.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
