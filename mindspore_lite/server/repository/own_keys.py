"""Our own keys of a model's configuration: those of SERVE_KEYS, and settings of the model.

A repository is as little trusted as the models in it: what names other files, weakens the limits of
a build or shares memory with other processes is for the server's own configuration alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindspore_lite.errors import EngineError
from mindspore_lite.settings.kinds import cleaned
from mindspore_lite.settings.names import canonical, nearest, without_effect
from mindspore_lite.settings.read import Layer
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.table import ENTRIES, SECTIONS, SERVE_KEYS, Key
from mindspore_lite.settings.text import from_map

Sections = dict[str, dict[str, str]]
SERVE = {key.name: key for key in SERVE_KEYS}
PARAMETERS = (
    "share",
    "isolation",
    "cache_bytes",
    "evictable",
)  # that config.pbtxt may have as well

_SERVER_SECTIONS = ("build", "service", "model_file")
_SERVER_KEYS = (
    "profile", "variable_weights_file", "shareable_weight_pid_list", "shareable_weight_mem_handle",
)  # fmt: skip


def value_of(key: Key, text: str, where: str) -> Any:
    """The value of one of SERVE_KEYS.

    Raises:
        EngineError: The text makes no sense.
    """
    plain = cleaned(text)
    if key.kind.takes_nothing and not plain:
        return key.default
    try:
        return key.kind.read(plain)
    except (ValueError, KeyError):
        wanted = key.kind.wanted
        raise EngineError(f"{where} {key.name} is {plain[:80]!r}, wanted {wanted}") from None


def check_serve_key(name: str, where: str) -> None:
    """Refuse a key that is none of SERVE_KEYS.

    Raises:
        EngineError: It is none.
    """
    if name not in SERVE:
        near = nearest(name, SERVE, 0.4)
        advice = f"; did you mean {near!r}?" if near else ""
        known = ", ".join(SERVE)
        raise EngineError(f"{where} has no key {name[:80]!r}, wanted one of {known}{advice}")


def is_setting(name: str) -> bool:
    """Whether `section.key` begins with a section of ours."""
    section, dot, _ = name.partition(".")
    return bool(dot) and canonical(section) in SECTIONS


def check_settings(sections: Sections, context: Mapping[str, str]) -> tuple[str, ...]:
    """Check the settings of a model; returns those that have no effect here.

    Raises:
        EngineError: A name or value is wrong, or is not for models to set.
    """
    for section, entries in sections.items():
        for key in entries:
            owned = canonical(section) in _SERVER_SECTIONS or key in _SERVER_KEYS
            if owned and (canonical(section), key) in ENTRIES:
                raise EngineError(
                    f"[{section}] {key} cannot be set in a model's folder; set it for the server, "
                    "by --config"
                )
    layer = Layer("model", sections)
    unread = without_effect([layer])
    settle(from_map(context), [layer])
    return unread
