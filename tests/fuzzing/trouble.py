"""What a case may be found guilty of, and where that is counted as one and the same."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import mindspore_lite

_PACKAGE = str(Path(mindspore_lite.__file__).resolve().parent)
_DUMPED = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')  # as faulthandler writes it


@dataclass(frozen=True)
class Trouble:
    """One finding: `what` and `place` together say whether another one is the same."""

    what: str  # the class of an exception, the name of a signal, "cpu", "memory", "file", "wait"
    place: str  # the innermost frame of ours
    text: str  # a traceback, or what else helps

    @property
    def key(self) -> str:
        """A name for the folder of the finding."""
        return re.sub(r"[^\w.-]+", "-", f"{self.what}-{self.place}").strip("-")[:120]

    def record(self) -> dict[str, Any]:
        """As it is sent to another process."""
        return asdict(self)


def of_exception(error: BaseException) -> Trouble:
    """An exception that is none of ours."""
    frames = [
        (frame.f_code.co_filename, frame.f_code.co_name) for frame in _frames(error.__traceback__)
    ]
    text = "".join(traceback.format_exception(error))
    return Trouble(type(error).__name__, _innermost(frames[::-1]), text)


def of_stack(what: str, text: str) -> Trouble:
    """Something that is being done at this moment."""
    frames = [(frame.filename, frame.name) for frame in traceback.extract_stack()]
    stack = "".join(traceback.format_stack())
    return Trouble(what, _innermost(frames[::-1]), f"{text}\n{stack}")


def of_dump(what: str, text: str) -> Trouble:
    """A process that ended, with what faulthandler wrote: the innermost frames come first.

    Of several threads the one counts that is inside of the package; the first is the current one.
    """
    current = text.partition("Current thread")[2].partition("\nThread")[0]
    found = [(file, name) for file, _, name in _DUMPED.findall(current)]
    if not any(file.startswith(_PACKAGE) for file, _ in found):
        found += [(file, name) for file, _, name in _DUMPED.findall(text)]
    return Trouble(what, _innermost(found), text)


def _frames(trace: TracebackType | None) -> list[Any]:
    return [frame for frame, _ in traceback.walk_tb(trace)]


def _innermost(frames: Sequence[tuple[str, str]]) -> str:
    """The first frame of the package, or else the first of all."""
    for file, name in frames:
        if file.startswith(_PACKAGE):
            return f"{Path(file).relative_to(_PACKAGE)}:{name}"
    return f"{Path(frames[0][0]).name}:{frames[0][1]}" if frames else "nowhere"
