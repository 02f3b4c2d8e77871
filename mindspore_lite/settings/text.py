"""Settings as names and texts, as they travel to another process, and back.

    target                      cpu,gpu
    group_info_file             /path
    cpu.thread_num              4
    cpu.thread_affinity_core_list    0,1
    parallel.warm_up            true
Only what differs from the default is told. Lists are joined by commas. Section entries
(parallel.config_info) are not in here: a configuration travels on its own. A Spec as text has all
that was said, entries as `common_context.engine=torch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mindspore_lite.context import Context
from mindspore_lite.core.attributes import Setting, Settings
from mindspore_lite.settings.read import Sections
from mindspore_lite.settings.spec import ENVIRONMENT, Spec
from mindspore_lite.settings.weights import VARIABLE, as_lines

_ELSEWHERE = "parallel.config_info"


def to_map(context: Context) -> dict[str, str]:
    """The settings of a Context that differ from the default."""
    found = {}
    for name, owner, setting in _settings(context):
        value = getattr(owner, setting.name)
        if value != setting.default:
            found[name] = text_of(value)
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


def spec_text(spec: Spec) -> str:
    """One `name=value` line for each setting that differs from the default."""
    return "".join(
        f"{found.key.id}={text_of(found.value)}".replace("\n", "\\n") + "\n"
        for found in spec.settled.values()
        if found.value != found.key.default
    )


def request_of(spec: Spec, without: Collection[str] = ()) -> tuple[dict[str, str], Sections]:
    """Settings and configuration with which another process settles the same Spec.

    Paths are absolute, and the names of weights stand in it: the process may not find the files.
    Settings whose ids are in `without` are left out.
    """
    settings: dict[str, str] = {}
    config: Sections = {}
    for found in spec.settled.values():
        name = found.key.name
        is_usual = found.value == found.key.default or found.source == ENVIRONMENT
        if is_usual or name in VARIABLE or found.key.id in without:
            continue
        if found.section:
            config.setdefault(found.section, {})[name] = text_of(found.value)
        else:
            settings[found.key.id] = text_of(found.value)
    if spec.mindir_path is not None:
        config["model_file"]["mindir_path"] = str(spec.mindir_path)
    if spec.weights.variable:
        lines = as_lines(spec.weights.variable)
        config.setdefault("ascend_context", {})["variable_weights_lines"] = lines
    return settings, config


def _settings(context: Context) -> Iterator[tuple[str, Settings, Setting]]:
    parts = (context, context.cpu, context.gpu, context.ascend, context.parallel)
    for part in parts:
        prefix = part._path.removeprefix("context").removeprefix(".")
        for key, setting in vars(type(part)).items():
            name = f"{prefix}.{key}" if prefix else key
            if isinstance(setting, Setting) and name != _ELSEWHERE:
                yield name, part, setting


def text_of(value: object) -> str:
    """One value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return "" if value is None else str(value)


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
