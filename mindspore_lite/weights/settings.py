"""What a configuration says about weights: its sections go in, checked settings come out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mindspore_lite.config import Sections
from mindspore_lite.errors import EngineError
from mindspore_lite.weights.names import Entry, as_lines, entries, read_names

SECTIONS = ("ascend_context", "common_context")  # the first that has a key decides
MODES = ("replace", "delta")
MAX_HANDLE = 2**64 - 1

# a file, names with commas between them, and what such a file holds, for processes without it
_VARIABLE = ("variable_weights_file", "variable_weights_list", "variable_weights_lines")

_PID = "[0-9]{1,10}"  # more digits than any system has
_PIDS = re.compile(rf"\s*{_PID}\s*(,\s*{_PID}\s*)*,?\s*", re.ASCII)


@dataclass(frozen=True)
class WeightSettings:
    """Which weights may change and how; with whom they are shared, or whose are taken."""

    variable: tuple[Entry, ...] = ()
    mode: str = "replace"  # or "delta": what is given is added to the first weights
    pids: tuple[int, ...] | None = None  # processes that may use our weights; None: nobody asked
    handle: int | None = None  # another process's weights, which are to be used


NOTHING_SAID = WeightSettings()


def weight_settings(sections: Sections, config_path: str = "") -> WeightSettings:
    """Read the entries about weights; `config_path` is the file that some of them come from."""
    file, listed, written = (_entry(sections, key) or "" for key in _VARIABLE)
    mode = _entry(sections, "variable_weights_mode") or "replace"
    # with these an empty text is no wish, but a mistake: a process would hold its own weights
    pids = _entry(sections, "shareable_weight_pid_list")
    handle = _entry(sections, "shareable_weight_mem_handle")
    if mode not in MODES:
        raise EngineError(f"variable_weights_mode is {mode!r}, wanted 'replace' or 'delta'")
    variable = read_names(_found(file, config_path)) if file else ()
    variable += tuple(Entry(name.strip()) for name in listed.split(",") if name.strip())
    lines = enumerate(written.split("\n") if written else (), start=1)
    variable += entries(lines, "variable_weights_lines")
    if pids is not None and handle is not None:
        raise EngineError(
            "shareable_weight_pid_list and shareable_weight_mem_handle are both set; the process "
            "that shares its weights sets the first, those that use them the second"
        )
    if variable and (pids, handle) != (None, None):
        raise EngineError(
            "weights that may change (variable_weights_file) cannot be shared with other "
            "processes; leave one of the two out"
        )
    return WeightSettings(
        variable,
        mode,
        None if pids is None else _pids(pids),
        None if handle is None else _handle(handle),
    )


def spelled_out(sections: Sections, settings: WeightSettings) -> Sections:
    """The sections with the names themselves, for a process that may not find the file of them."""
    found = {
        section: {key: text for key, text in pairs.items() if key not in _VARIABLE}
        for section, pairs in sections.items()
    }
    if settings.variable:
        found.setdefault(SECTIONS[0], {})["variable_weights_lines"] = as_lines(settings.variable)
    return found


def _entry(sections: Sections, key: str) -> str | None:
    """The text of the first section that has one; "" where it is empty, None where none has it."""
    found = [sections[name][key] for name in SECTIONS if key in sections.get(name, {})]
    texts = [text.strip().strip('"') for text in found]
    return next(filter(None, texts), "") if texts else None


def _found(file: str, config_path: str) -> Path:
    """The file where the working directory has it, else beside the configuration file."""
    beside = Path(config_path).parent / file
    if config_path and not os.path.exists(file) and os.path.exists(beside):
        return beside
    return Path(file)


def _pids(text: str) -> tuple[int, ...]:
    if not _PIDS.fullmatch(text):
        raise EngineError(
            f"shareable_weight_pid_list is {text!r}, wanted process ids with commas between them, "
            "such as '12, 34'"
        )
    # the original's example lists its own empty place, a 0, too: no process has that id
    return tuple(number for part in text.split(",") if part.strip() and (number := int(part)))


def _handle(text: str) -> int:
    digits = text.lstrip("0") if text.isascii() and text.isdecimal() else ""
    if not 0 < len(digits) <= len(str(MAX_HANDLE)) or int(digits) > MAX_HANDLE:
        raise EngineError(
            f"shareable_weight_mem_handle is {text[:40]!r}, wanted the number that "
            'get_model_info("shareable_weight_mem_handle") gave in the process that shares'
        )
    return int(digits)
