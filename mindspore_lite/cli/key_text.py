"""Keys on a command line: digits, or where they are kept, go in; the digits come out."""

from __future__ import annotations

import os
from pathlib import Path


def key_text(text: str) -> str:
    """The key that `@FILE` or `env:NAME` point to; anything else is the key.

    What is typed on a command line can be read by others, in the list of processes and the history.
    """
    if text.startswith("@"):
        try:
            return Path(text[1:]).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is no text"
            raise ValueError(f"cannot read the key in {text[1:]!r}: {reason}") from exc
    if text.startswith("env:"):
        found = os.environ.get(text[4:], "").strip()
        if not found:
            raise ValueError(f"the environment has no key in {text[4:]!r}")
        return found
    return text
