"""Settings about weights: which of them may change, and with which processes they are shared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.settings.read import useful_lines

# a file, names with commas between them, and what such a file holds, for processes without it
VARIABLE = ("variable_weights_file", "variable_weights_list", "variable_weights_lines")


class Entry(NamedTuple):
    """A line of the file: what callers call the weight, and the node that uses it, if given."""

    name: str
    node: str = ""


def read_names(path: Path) -> tuple[Entry, ...]:
    """Read a file of one `name` or `name,node` per line; blank lines and comments are left out."""
    if not os.path.exists(path):  # false for a name that no file system takes, too
        raise ModelFileError(f"variable weight name list is not exists: {str(path)!r}")
    if not path.is_file():  # a pipe would be waited for
        raise ModelFileError(f"variable weight name list {str(path)!r} is no plain file")
    try:
        found = entries(list(useful_lines(path)), str(path))
    except (OSError, ValueError) as exc:
        raise ModelFileError(f"variable weight name list cannot be read: {exc}") from exc
    if not found:
        raise ModelFileError(f"variable weight name list {str(path)!r} holds no names")
    return found


def entries(lines: Iterable[tuple[int, str]], where: str) -> tuple[Entry, ...]:
    """What numbered lines say; `where` is what errors call the whole of them."""
    found: dict[Entry, None] = {}
    for number, line in lines:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) > 2 or not all(parts):
            raise ModelFileError(
                f"{where}:{number}: only support 1 or 2 row name list, a weight or a weight and "
                f"its node with a comma between them, but got {line!r}"
            )
        found[Entry(*parts)] = None
    return tuple(found)


def as_lines(found: Iterable[Entry]) -> str:
    """Entries as they stand in a file."""
    return "\n".join(",".join(filter(None, entry)) for entry in found)


@dataclass(frozen=True)
class WeightSettings:
    """Which weights may change and how; with whom they are shared, or whose are taken."""

    variable: tuple[Entry, ...] = ()
    mode: str = "replace"  # or "delta": what is given is added to the first weights
    layout: str = "graph"  # or "framework": how square matrices of an update lie
    pids: tuple[int, ...] | None = None  # processes that may use our weights; None: nobody asked
    handle: int | None = None  # another process's weights, which are to be used


def weight_settings(value: Callable[[str], Any], config_path: str) -> WeightSettings:
    """What settled values say together; relative names are looked for beside `config_path`, too.

    Raises:
        EngineError: They do not go together.
        ModelFileError: A file of names cannot be read, or names nothing.
    """
    file, listed, written = map(value, VARIABLE)
    variable = read_names(_found(file, config_path)) if file else ()
    variable += tuple(Entry(name.strip()) for name in listed.split(",") if name.strip())
    lines = enumerate(written.split("\n") if written else (), start=1)
    variable += entries(lines, "variable_weights_lines")
    pids, handle = value("shareable_weight_pid_list"), value("shareable_weight_mem_handle")
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
    mode, layout = value("variable_weights_mode"), value("variable_weights_layout")
    return WeightSettings(variable, mode, layout, pids, handle)


def _found(file: str, config_path: str) -> Path:
    """The file where the working directory has it, else beside the configuration file."""
    beside = Path(config_path).parent / file
    if config_path and not os.path.exists(file) and os.path.exists(beside):
        return beside
    return Path(file)
