"""Names in a configuration: a slip of the pen is an error, what has no effect here is listed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from mindspore_lite.errors import EngineError
from mindspore_lite.settings.read import Layer
from mindspore_lite.settings.table import ENTRIES, ORIGINAL_KEYS, ORIGINAL_SECTIONS, SECTIONS

_NEAR = 0.75  # of difflib: a slip of the pen; guess
_SURE = 0.9  # of a key of another section, too; guess
_LIKE = 0.4  # enough for advice, where the name is wrong anyway; guess
_MOST = 1000  # unknown names that are compared; the original takes no more keys in a section
_log = logging.getLogger("mindspore_lite")


def canonical(section: str) -> str:
    """The name of a section; the original's documents write [model_File]."""
    return "model_file" if section.lower() == "model_file" else section


def without_effect(layers: Sequence[Layer]) -> tuple[str, ...]:
    """The entries that nobody here reads, as `[section] key`; also in a debug log.

    Raises:
        EngineError: An entry looks like one of ours, and is not.
    """
    found = tuple(dict.fromkeys(name for layer in layers for name in _unread(layer)))
    if found:
        _log.debug("configuration entries without effect: %s", ", ".join(found[:_MOST]))
    return found


def _unread(layer: Layer) -> Iterator[str]:
    compared = 0
    for name, entries in layer.sections.items():
        section = canonical(name)
        if section not in SECTIONS:
            if section not in ORIGINAL_SECTIONS and compared < _MOST:
                compared += 1
                _check_section(section)
            yield from (f"[{name}] {key}" for key in entries)
            continue
        for key in entries:
            if (section, key) in ENTRIES:
                continue
            if key not in ORIGINAL_KEYS.get(section, ()) and compared < _MOST:
                compared += 1
                _check_key(section, key)
            yield f"[{name}] {key}"


def _check_section(section: str) -> None:
    near = nearest(section, SECTIONS)
    if near:
        raise EngineError(f"there is no section [{section}]; did you mean [{near}]?")


def _check_key(section: str, key: str) -> None:
    known = [name for place, name in ENTRIES if place == section]
    is_shared = section in ORIGINAL_KEYS
    near = nearest(key, known, _NEAR if is_shared else _LIKE)
    meant = key if near else nearest(key, [name for _, name in ENTRIES], _SURE)
    homes = [place for place, name in ENTRIES if name == meant]
    if is_shared and not near and not homes:
        return
    advice = f"; did you mean {near!r}?" if near else ""
    if homes:
        advice = f"; {'it' if meant == key else repr(meant)} belongs into [{homes[0]}]"
    raise EngineError(
        f"[{section}] has no key {key[:80]!r}, wanted one of {', '.join(known)}{advice}"
    )


def nearest(name: str, known: Iterable[str], least: float = _NEAR) -> str:
    """The known name that resembles one; "" where none does."""
    import difflib  # for slips alone

    found = difflib.get_close_matches(name[:80].lower(), list(known), 1, least)
    return found[0] if found else ""
