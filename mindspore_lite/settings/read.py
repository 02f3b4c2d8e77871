"""Reads configurations: INI files and dicts of sections, each of keys and values."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mindspore_lite.core import checks
from mindspore_lite.core.boundary import resource_error
from mindspore_lite.core.checks import Sections as Sections
from mindspore_lite.core.files import open_file
from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import ModelFileError

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

    def warn(number: int, problem: str) -> None:
        warnings.warn(f"{os.fspath(path)}:{number}: {problem}", UserWarning, stacklevel=4)

    return parse_config(useful_lines(path), warn)


def parse_config(
    lines: Iterable[tuple[int, str]], complain: Callable[[int, str], None]
) -> Sections:
    """The sections of a file's useful lines; lines that mean nothing are complained of."""
    sections: Sections = {}
    section: dict[str, str] | None = None
    skipping = False  # inside a section whose head was refused, which has been said already
    for number, line in lines:
        if line.startswith("["):
            section, problem = _open_section(sections, line)
            skipping = section is None
        elif skipping:
            continue
        else:
            problem = _add_entry(section, line)
        if problem:
            complain(number, problem)
    return sections


def merged(base: Sections, over: Sections) -> Sections:
    """A new dict with the entries of both; where both have a key, that of `over` counts."""
    return {
        name: {**base.get(name, {}), **over.get(name, {})} for name in dict.fromkeys([*base, *over])
    }


@dataclass(frozen=True)
class Layer:
    """One configuration of a build."""

    source: str  # what a Spec says its settings came from
    sections: Sections
    path: str = ""  # of the file


def read_layers(doing: str, path: str, over: object) -> tuple[Layer, ...]:
    """The configuration of a build: entries of a dict, which count first, and those of a file."""
    file: tuple[Layer, ...] = ()
    if path:
        if not os.path.exists(path):
            raise ModelFileError(f"{doing} failed, config_path does not exist: {nowhere(path)}")
        try:
            file = (Layer(f"config file {path}", read_config(path), path),)
        except (OSError, ValueError, MemoryError) as exc:
            failed = f"{doing} failed, load configuration failed! Error is "
            limit = resource_error(exc)
            raise (limit.prefixed(failed) if limit else ModelFileError(f"{failed}{exc}")) from exc
    return (*layers_of(over), *file)


def layers_of(sections: object) -> tuple[Layer, ...]:
    """The same of a dict alone."""
    return (Layer("config_dict", checks.sections("config_dict", sections)),) if sections else ()


def useful_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of each line that is neither blank nor a comment."""
    name = f"configuration file {os.fspath(path)!r}"
    return useful_lines_of(_content(path, name), name)


def useful_lines_of(content: bytes, name: str) -> Iterator[tuple[int, str]]:
    """The same of the content of a file."""
    try:
        text = content.decode("utf-8-sig")
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
