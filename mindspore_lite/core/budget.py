"""What building one model may cost, and whether that happens in a jail: section [build].

    key              default          what it bounds
    max_nodes        300000           nodes after all functions and graphs are inlined
    max_fold_bytes   4G               bytes that computing constants ahead of time may make
    max_seconds      1800             CPU time of translating and compiling one session
    sandbox          off              on: compile in a child process that can reach nothing else

No honest model comes near the defaults; docs/security.md says how far the largest ones are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindspore_lite.errors import EngineError

SECTION = "build"


@dataclass(frozen=True)
class Budget:
    """The bounds of one build."""

    max_nodes: int = 300_000
    max_fold_bytes: int = 4 << 30
    max_seconds: int = 1800
    sandbox: bool = False


DEFAULT = Budget()


def budget_of(sections: Mapping[str, Mapping[str, str]]) -> Budget:
    """What a configuration says about builds.

    Raises:
        EngineError: A key of [build] is not known, or its value is none that it can have.
    """
    entries = {key: text.strip() for key, text in sections.get(SECTION, {}).items()}
    known = ("max_nodes", "max_fold_bytes", "max_seconds", "sandbox")
    for key in entries:
        if key not in known:
            raise EngineError(f"[{SECTION}] has no key {key!r}, wanted one of {', '.join(known)}")
    return Budget(
        _number(entries, "max_nodes", DEFAULT.max_nodes),
        _number(entries, "max_fold_bytes", DEFAULT.max_fold_bytes),
        _number(entries, "max_seconds", DEFAULT.max_seconds),
        _switch(entries, "sandbox"),
    )


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", text.upper(), re.ASCII)
    if match is None or not int(match[1]):
        raise EngineError(
            f"[{SECTION}] {key} is {text[:80]!r}, wanted a number of 1 or more, "
            "which may end in K, M or G"
        )
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def _switch(entries: Mapping[str, str], key: str) -> bool:
    text = entries.get(key, "").lower()
    if text not in ("", "on", "off", "true", "false"):
        raise EngineError(f"[{SECTION}] {key} is {text[:80]!r}, wanted on or off")
    return text in ("on", "true")
