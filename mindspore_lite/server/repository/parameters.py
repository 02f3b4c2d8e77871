"""The parameters of config.pbtxt: ours, those of ONNX Runtime that mean the same here, others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.server.repository.own_keys import PARAMETERS, SERVE, is_setting, value_of
from mindspore_lite.settings.names import nearest
from mindspore_lite.settings.table import ENTRIES

_WHERE = "config.pbtxt: parameter"
_INTRA, _INTER, _MODE = "intra_op_thread_count", "inter_op_thread_count", "execution_mode"
_RUNTIME = (_INTRA, _INTER, _MODE)


class Parameters:
    """What parameters say.

    Attributes:
        values: Of our own keys, by name.
        settings: Of the model, by section.
        context: Fields of the Context, by their names in settings/text.py.
        ignored: Those that have no meaning here.

    Raises:
        EngineError: A value makes no sense, or a name looks like one of ours and is none.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self.values: dict[str, Any] = {name: SERVE[name].default for name in PARAMETERS}
        self.settings: dict[str, dict[str, str]] = {}
        self.context: dict[str, str] = {}
        self.ignored: list[str] = []
        self._of_runtime({name: given[name] for name in _RUNTIME if name in given})
        for name, text in sorted(given.items()):
            if name in PARAMETERS:
                self.values[name] = value_of(SERVE[name], text, _WHERE)
            elif is_setting(name):
                section, _, key = name.partition(".")
                self.settings.setdefault(section, {})[key] = text
            elif name not in _RUNTIME:
                _check_spelling(name)
                self.ignored.append(f"parameters {name[:80]!r}")

    def _of_runtime(self, given: Mapping[str, str]) -> None:
        """The threads of ONNX Runtime; operators run side by side in its mode 1 alone."""
        numbers = {name: _number(name, text) for name, text in given.items()}
        if _INTRA in numbers:
            self.settings["parallel"] = {"thread_num": str(numbers[_INTRA])}
        if numbers.get(_MODE, 0) not in (0, 1):
            raise ModelFileError(f"{_WHERE} {_MODE} is {given[_MODE]!r}, wanted 0 or 1")
        if numbers.get(_MODE):
            if _INTER not in numbers:
                raise ModelFileError(f"{_WHERE} {_MODE} is 1, which needs {_INTER} as well")
            self.context["cpu.inter_op_parallel_num"] = str(numbers[_INTER])
        elif _INTER in numbers:
            self.ignored.append(f"parameters {_INTER!r}: {_MODE} is not 1")


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ModelFileError(f"{_WHERE} {name} is {text[:80]!r}, wanted a number from 0 on")
    return int(text)


def _check_spelling(name: str) -> None:
    known = [*PARAMETERS, *(f"{section}.{key}" for section, key in ENTRIES), *_RUNTIME]
    near = nearest(name, known)
    if near:
        raise EngineError(f"there is no parameter {name[:80]!r}; did you mean {near!r}?")
