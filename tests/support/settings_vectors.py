"""The cases of tests/settings/vectors.txt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent.parent / "settings/vectors.txt"


@dataclass(frozen=True)
class Case:
    """A configuration, and what becomes of it."""

    name: str
    settings: dict[str, str]
    ini: str
    spec: str
    error: str


def cases() -> list[Case]:
    """All of them."""
    found = []
    for block in FILE.read_text(encoding="utf-8").split("\n== ")[1:]:
        name, _, rest = block.partition("\n")
        parts = {}
        for part in f"\n{rest}".split("\n-- ")[1:]:
            title, _, text = part.partition("\n")
            parts[title] = f"{text.strip()}\n" if text.strip() else ""
        lines = parts.get("settings", "").splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        ini, spec, error = (parts.get(title, "") for title in ("ini", "spec", "error"))
        found.append(Case(name, settings, ini, spec, error.strip()))
    return found
