"""A Context as names and texts, as it travels to another process, and back.

    target                      cpu,gpu
    group_info_file             /path
    cpu.thread_num              4
    cpu.thread_affinity_core_list    0,1
    parallel.warm_up            true
Only what differs from the default is told. Lists are joined by commas. Section entries
(parallel.config_info) are not in here: a configuration travels on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mindspore_lite.context import Context
from mindspore_lite.settings import Setting, Settings

_ELSEWHERE = "parallel.config_info"


def to_map(context: Context) -> dict[str, str]:
    """The settings of a Context that differ from the default."""
    found = {}
    for name, owner, setting in _settings(context):
        value = getattr(owner, setting.name)
        if value != setting.default:
            found[name] = _text(value)
    return found


def from_map(values: Mapping[str, str]) -> Context:
    """A Context with these settings, each checked as if it had been set.

    Raises:
        ValueError: There is no such setting, or it cannot have the value.
    """
    context = Context()
    known = {name: (owner, setting) for name, owner, setting in _settings(context)}
    for name, text in values.items():
        if name not in known:
            raise ValueError(f"there is no setting {name!r}, wanted one of {', '.join(known)}")
        owner, setting = known[name]
        setattr(owner, setting.name, _value(name, text, setting.default))
    return context


def _settings(context: Context) -> Iterator[tuple[str, Settings, Setting]]:
    parts = (context, context.cpu, context.gpu, context.ascend, context.parallel)
    for part in parts:
        prefix = part._path.removeprefix("context").removeprefix(".")
        for key, setting in vars(type(part)).items():
            name = f"{prefix}.{key}" if prefix else key
            if isinstance(setting, Setting) and name != _ELSEWHERE:
                yield name, part, setting


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _value(name: str, text: str, default: object) -> object:
    """The text as a value of the default's type; the setting itself checks the rest."""
    words = {"true": True, "false": False}
    try:
        if isinstance(default, bool):
            return words[text.lower()]
        if isinstance(default, int | float):
            return type(default)(text)
        if isinstance(default, list):
            items = [item.strip() for item in text.split(",") if item.strip()]
            return items if default and isinstance(default[0], str) else [int(i) for i in items]
    except (KeyError, ValueError):
        wanted = "true or false" if isinstance(default, bool) else "a number"
        wanted = "numbers joined by commas" if isinstance(default, list) else wanted
        raise ValueError(f"setting {name!r} is {text!r}, wanted {wanted}") from None
    return text
