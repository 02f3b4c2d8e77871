"""Configuration: a file or a dict of the user goes in, sections of key and value come out."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path

from mindspore_lite import checks
from mindspore_lite.core.boundary import resource_error
from mindspore_lite.core.files import open_file
from mindspore_lite.errors import ModelFileError

Sections = dict[str, dict[str, str]]

MAX_BYTES = 16 << 20  # guess: a thousand times what people write
MAX_LINES = 100_000  # blank lines and comments do not count; the limit of the documented grammar


def read_config(path: str | os.PathLike[str]) -> Sections:
    """Read a configuration file of `[section]` and `key=value` lines.

    A line that means nothing does not make the file unreadable: it is left out with a warning that
    names the file and the line. Of two equal keys or sections the first one counts.

    Raises:
        OSError: The file cannot be opened.
        ValueError: The file is not UTF-8 text, or longer than MAX_LINES.
    """
    sections: Sections = {}
    section: dict[str, str] | None = None
    skipping = False  # inside a section whose head was refused, which has been said already
    for number, line in useful_lines(path):
        if line.startswith("["):
            section, problem = _open_section(sections, line)
            skipping = section is None
        elif skipping:
            continue
        else:
            problem = _add_entry(section, line)
        if problem:
            warnings.warn(f"{os.fspath(path)}:{number}: {problem}", UserWarning, stacklevel=2)
    return sections


# the short form in which the original's documents write two entries, outside of any section
SHORT = {
    "pids": ("ascend_context", "shareable_weight_pid_list"),
    "shared_mem_handle": ("ascend_context", "shareable_weight_mem_handle"),
}


def checked_sections(value: object, name: str) -> Sections:
    """A deep copy of a dict of dicts of str; `name` is what type errors call it.

    The keys of SHORT may stand outside of a section, with a str or a whole number as their value.
    """
    sections: Sections = {}
    for key, entries in checks.instance(name, value, dict).items():
        checks.string(f"{name}_key", key)
        if key in SHORT and not isinstance(entries, dict):
            section, entry_key = SHORT[key]
            is_number = isinstance(entries, Integral) and not isinstance(entries, bool)
            text = str(int(entries)) if is_number else checks.string(f"{name}_value", entries)
            sections.setdefault(section, {})[entry_key] = text
            continue
        copied = sections.setdefault(key, {})
        for entry_key, entry in checks.instance(f"{name}_value", entries, dict).items():
            checks.string(f"{name}_value_key", entry_key)
            copied[entry_key] = checks.string(f"{name}_value_value", entry)
    return sections


def merged(base: Sections, over: Sections) -> Sections:
    """A new dict with the entries of both; where both have a key, that of `over` counts."""
    return {
        name: {**base.get(name, {}), **over.get(name, {})} for name in dict.fromkeys([*base, *over])
    }


def read_settings(doing: str, path: str, over: object) -> Sections:
    """The configuration of a build: a file, if there is one, and entries that count before it."""
    sections: Sections = {}
    if path:
        if not os.path.exists(path):
            raise ModelFileError(f"{doing} failed, config_path does not exist: {path!r}")
        try:
            sections = read_config(path)
        except (OSError, ValueError, MemoryError) as exc:
            failed = f"{doing} failed, load configuration failed! Error is "
            limit = resource_error(exc)
            raise (limit.prefixed(failed) if limit else ModelFileError(f"{failed}{exc}")) from exc
    return merged(sections, checked_sections(over, "config_dict")) if over else sections


def model_file(settings: Sections) -> Path | None:
    """Where the side files of a model are looked for, if the configuration says so."""
    for section, entries in settings.items():  # the original's documents write [model_File]
        if section.lower() == "model_file" and entries.get("mindir_path"):
            return Path(entries["mindir_path"]).absolute()
    return None


def with_absolute_paths(settings: Sections) -> Sections:
    """The same for a process whose working directory is another."""
    path = model_file(settings)
    if path is None:
        return settings
    entry = {"mindir_path": os.path.abspath(path)}
    return merged(settings, {name: entry for name in settings if name.lower() == "model_file"})


def useful_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of each line that is neither blank nor a comment."""
    name = f"configuration file {os.fspath(path)!r}"
    try:
        text = _content(path, name).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{name} is not UTF-8 text: "
            f"{exc.reason} (byte 0x{exc.object[exc.start]:02x}); save it as UTF-8"
        ) from exc
    count = 0
    for number, raw in enumerate(io.StringIO(text, newline=None), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        count += 1
        if count > MAX_LINES:
            raise ValueError(f"{name} has more than {MAX_LINES} lines")
        yield number, line


def _content(path: str | os.PathLike[str], name: str) -> bytes:
    try:
        file = open_file(Path(path))
    except ModelFileError as exc:
        if isinstance(exc.__cause__, OSError | ValueError):  # callers name the file themselves
            raise exc.__cause__ from None
        raise ValueError(f"{exc}; give the path of a text file") from None
    if file.size >= MAX_BYTES:
        raise ValueError(f"{name} has more than {MAX_BYTES} bytes")
    return bytes(file.load())


def _open_section(sections: Sections, line: str) -> tuple[dict[str, str] | None, str]:
    """The section that a `[name]` line begins, or None and what is wrong with the line."""
    name = line[1:-1].strip()
    if not line.endswith("]") or not name:
        return (
            None,
            f"{line!r} is no [section]; it and the lines up to the next section are ignored",
        )
    if name in sections:
        return None, f"section [{name}] was already there; the first one counts, this is ignored"
    sections[name] = {}
    return sections[name], ""


def _add_entry(section: dict[str, str] | None, line: str) -> str:
    """Put a `key=value` line into its section; the return value is what is wrong with it, or ""."""
    key, equals, value = (part.strip() for part in line.partition("="))
    if not equals or not key:
        return f"{line!r} is neither [section] nor key=value and is ignored"
    if section is None:
        return f"{line!r} stands before the first [section] and is ignored"
    if key in section:
        return f"key {key!r} was already there; the first one counts, this is ignored"
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    section[key] = value
    return ""
