"""What the text of a setting may be: how it is read, and the words that errors say was wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mindspore_lite.core import checks
from mindspore_lite.settings import ascend_shapes

MOST_ROWS = 65536  # of a bucket; guess: a greater number is a slip of the pen
MOST_BUCKETS = 64  # each is compiled on its own; guess
MOST_SHARE = 1000.0  # of a model against others; guess
MAX_HANDLE = 2**64 - 1

_DIGITS = 18  # of any number; more would not fit into 64 bits
_PID = "[0-9]{1,10}"  # more digits than any system has
_PIDS = re.compile(rf"\s*{_PID}\s*(,\s*{_PID}\s*)*,?\s*", re.ASCII)
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    wanted: str
    read: Callable[[str], Any]  # raises ValueError or KeyError
    takes_nothing: bool = True  # whether an empty text says nothing; otherwise it is an error


def cleaned(text: str) -> str:
    """A text without the blanks and quotes around it."""
    return text.strip().strip('"').strip()


def words(*known: str) -> Kind:
    """One of some words, in capitals or not."""

    def read(text: str) -> str:
        found = text.strip("[]").lower()
        if found not in known:
            raise ValueError
        return found

    return Kind(f"one of {', '.join(known)}", read)


def exact(*known: str) -> Kind:
    """One of some words as they stand."""
    return Kind(" or ".join(map(repr, known)), dict(zip(known, known, strict=True)).__getitem__)


def _number(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS) or int(text) < least:
        raise ValueError
    return int(text)


def _seconds(text: str) -> float:
    if "_" in text:  # which Python takes, and other languages do not
        raise ValueError
    return checks.seconds("", float(text))


def _size(text: str) -> int:
    match = re.fullmatch(rf"([0-9]{{1,{_DIGITS}}})([KMG]?)", text.upper(), re.ASCII)
    if match is None or not int(match[1]):
        raise ValueError
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def _buckets(text: str) -> tuple[int, ...]:
    found = sorted({_number(part.strip(), 1) for part in text.strip("[]").split(",")})
    if found[-1] > MOST_ROWS or len(found) > MOST_BUCKETS:
        raise ValueError
    return tuple(found)


def _pids(text: str) -> tuple[int, ...]:
    if not _PIDS.fullmatch(text):
        raise ValueError
    # the original's example lists its own empty place, a 0, too: no process has that id
    return tuple(number for part in text.split(",") if part.strip() and (number := int(part)))


def _handle(text: str) -> int:
    digits = text.lstrip("0") if text.isascii() and text.isdecimal() else ""
    if not 0 < len(digits) <= len(str(MAX_HANDLE)) or int(digits) > MAX_HANDLE:
        raise ValueError
    return int(digits)


def _share(text: str) -> float:
    if "_" in text or not 0 < float(text) <= MOST_SHARE:
        raise ValueError
    return float(text)


def _bytes(text: str) -> int:
    return 0 if text == "0" else _size(text)


def _versions(text: str) -> tuple[str, ...]:
    """("all",), ("latest", "2") or the numbers."""
    if text == "all":
        return (text,)
    if text.startswith("latest:"):
        return ("latest", str(_number(text.removeprefix("latest:").strip(), 1)))
    return tuple(str(_number(part.strip(), 1)) for part in text.split(","))


def _as_text(parse: Callable[[str], object]) -> Callable[[str], str]:
    """A text that can be parsed, as it is: so it can be sent to other processes."""

    def read(text: str) -> str:
        parse(text)
        return text

    return read


TEXT = Kind("a text", str)
NUMBER = Kind("a number that is 0 or more", _number, takes_nothing=False)
POSITIVE = Kind("a number that is 1 or more", lambda text: _number(text, 1), takes_nothing=False)
SECONDS = Kind("a number of seconds, or 0 for no limit", _seconds, takes_nothing=False)
SIZE = Kind("a number of 1 or more, which may end in K, M or G", _size)
ON_OFF = Kind("on or off", lambda text: _SWITCH[text.lower()])
FLAG = Kind("true or false", ON_OFF.read, takes_nothing=False)
TRUTH = Kind("one of true, false", lambda text: words("true", "false").read(text) == "true")
IDS = Kind(
    "numbers with commas between them, such as 0,1",
    lambda text: [_number(part.strip()) for part in text.strip("[]").split(",")],
)
SHAPES = Kind("shapes such as x:[1,-1,3];y:[4]", _as_text(ascend_shapes.input_shape))
PROFILES = Kind(
    "sizes such as [1~4],[8] for each input, with ; between them",
    _as_text(ascend_shapes.dynamic_dims),
)
BUCKETS = Kind(f"up to {MOST_BUCKETS} numbers of 1 to {MOST_ROWS}, such as 1,2,4,8", _buckets)
# with these an empty text is no wish, but a mistake: a process would hold its own weights
PIDS = Kind("process ids with commas between them, such as '12, 34'", _pids, takes_nothing=False)
HANDLE = Kind(
    'the number that get_model_info("shareable_weight_mem_handle") gave in the process that shares',
    _handle,
    takes_nothing=False,
)
SHARE = Kind(f"a number above 0, at most {MOST_SHARE:g}", _share, takes_nothing=False)
BYTES = Kind("a number of bytes, which may end in K, M or G; 0 is off", _bytes, takes_nothing=False)
VERSIONS = Kind(
    "latest:N, all, or numbers with commas between them, such as 1,3",
    _versions,
    takes_nothing=False,
)
