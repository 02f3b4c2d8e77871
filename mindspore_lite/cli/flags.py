"""The flag grammar of the original's tools.

A flag is written `--name=value` or `--name value`; one that is true or false also `--name` and
`--no-name`. A lone `--` ends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TRUTH = ("true", "false")


@dataclass(frozen=True)
class Flag:
    """One flag: what it does, and whether it is true or false."""

    what: str
    is_bool: bool = False


@dataclass
class Parsed:
    """The texts of the flags that were given, and everything wrong with the arguments."""

    flags: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def parse(arguments: Sequence[str], known: Mapping[str, Flag]) -> Parsed:
    """Read arguments by the table of known flags."""
    parsed = Parsed()
    waiting = [argument.strip() for argument in arguments][::-1]
    while waiting:
        argument = waiting.pop()
        if argument == "--":
            break
        if not argument.startswith("--"):
            parsed.problems.append(f"Failed: flag {argument} is not valid.")
            continue
        name, equals, value = argument[2:].partition("=")
        if name.startswith("no-") and name[3:] in known and known[name[3:]].is_bool and not equals:
            name, equals, value = name[3:], "=", "false"
        if name not in known:
            parsed.problems.append(f"{name} is not a valid flag")
            if not equals and waiting and not waiting[-1].startswith("--"):
                waiting.pop()  # its value, which is no complaint of its own
            continue
        if not equals:
            value = _value_after(known[name], waiting)
        _add(parsed, name, value, known[name])
    return parsed


def _value_after(flag: Flag, waiting: list[str]) -> str:
    """The argument after a flag, where it is its value."""
    if flag.is_bool:
        return waiting.pop() if waiting and waiting[-1].lower() in TRUTH else "true"
    return waiting.pop() if waiting and not waiting[-1].startswith("--") else ""


def _add(parsed: Parsed, name: str, value: str, flag: Flag) -> None:
    value = value.strip()
    if name in parsed.flags:
        parsed.problems.append(f"Failed: already parsed flag: {name}")
    elif not value and not flag.is_bool:
        parsed.problems.append(f"No value provided for non-boolean type: {name}")
    elif flag.is_bool and value.lower() not in TRUTH:
        parsed.problems.append(f"{name} must be true or false, but got {value!r}")
    parsed.flags[name] = value.lower() if flag.is_bool else value


def usage(known: Mapping[str, Flag]) -> str:
    """All flags, one a line."""
    width = max(map(len, known)) + 2
    return "\n".join(f"  --{name:<{width}}{flag.what}" for name, flag in known.items())
