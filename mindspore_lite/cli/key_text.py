"""Reads decryption keys from the command line, or from where they are kept."""

from __future__ import annotations

from mindspore_lite.core.environment import users_own

_MOST = 1024  # bytes in a file: a key has 64 digits at most, and /dev/zero has no end


def key_text(text: str) -> str:
    """The key that `@FILE` or `env:NAME` point to; anything else is the key.

    What is typed on a command line can be read by others, in the list of processes and the history.
    """
    if text.startswith("@"):
        try:
            with open(text[1:], "rb") as file:
                held = file.read(_MOST + 1)
            if len(held) > _MOST:
                raise ValueError(f"it has more than {_MOST} bytes")
            return held.decode("ascii").strip()
        except (OSError, ValueError) as exc:
            reason = "it is no text" if isinstance(exc, UnicodeDecodeError) else exc
            reason = getattr(exc, "strerror", None) or reason
            raise ValueError(f"cannot read the key in {text[1:]!r}: {reason}") from exc
    if text.startswith("env:"):
        found = users_own(text[4:]).strip()
        if not found:
            raise ValueError(f"the environment has no key in {text[4:]!r}")
        return found
    return text
