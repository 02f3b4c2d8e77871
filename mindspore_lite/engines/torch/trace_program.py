"""A Tape: the recorded steps of compiled code, which a later start runs without compiling.

Loading what torch's compiler keeps takes seconds, since its own modules and Triton's are imported
first. For given sizes all that compiled code does is make tensors, call torch's operators and start
kernels, always the same ones in the same order. That list is short, and is followed here
with torch alone. trace.py makes it.

Steps are lists of plain values, tensors are numbers: first those of the inputs and weights, then
one for each that a step makes.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.torch import kernel_launch

Launch = Callable[..., None]
Step = list[Any]  # what is done, then what it needs

_WORDS = {"dtype": torch.dtype, "layout": torch.layout, "format": torch.memory_format}


class UnknownValueError(ValueError):
    """A step has a value that cannot be written down."""


@dataclass(frozen=True)
class Kernel:
    """Code for a card, and how it is started."""

    code: bytes
    name: str
    threads: int
    shared: int  # bytes of memory that the threads of a block have in common


@dataclass(frozen=True)
class Tape:
    """The steps for inputs of given sizes."""

    steps: list[Step]
    outputs: list[int]
    kernels: list[Kernel]


def written(tape: Tape, more: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> bytes:
    """A tape, plain values and tensors as the content of a file."""
    kernels = [asdict(kernel) | {"code": number} for number, kernel in enumerate(tape.kernels)]
    text = json.dumps(
        {"steps": tape.steps, "outputs": tape.outputs, "kernels": kernels, "more": more}
    )
    codes = [torch.frombuffer(bytearray(one.code), dtype=torch.uint8) for one in tape.kernels]
    content = io.BytesIO()
    torch.save({"text": text, "codes": codes, "tensors": dict(tensors)}, content)
    return content.getvalue()


def read(content: bytes) -> tuple[Tape, dict[str, Any], dict[str, torch.Tensor]]:
    """What was written; raises anything for the content of another file."""
    found = torch.load(io.BytesIO(content), weights_only=True)
    text = read_json(found["text"])
    kernels = [
        Kernel(**one | {"code": found["codes"][one["code"]].numpy().tobytes()})
        for one in text["kernels"]
    ]
    return Tape(text["steps"], text["outputs"], kernels), text["more"], found["tensors"]


class Player:
    """Follows a tape: inputs and weights go in, the outputs come out; kernels run on the device."""

    def __init__(self, tape: Tape, device: torch.device, load: Any = None) -> None:
        """load: makes of a kernel what starts it; the driver of CUDA does unless told."""
        self._outputs = tape.outputs
        load = load or kernel_launch.loaded
        self._launches: list[Launch] = [load(kernel, device) for kernel in tape.kernels]
        makers: dict[str, Callable[..., Any]] = {
            "empty": self._empty,
            "view": self._view,
            "call": self._call,
            "run": self._run,
        }
        self._steps = [makers[step[0]](*step[1:]) for step in tape.steps]
        self._unused = _last_uses(tape)

    def __call__(self, *given: torch.Tensor, spoiled: bool = False) -> list[torch.Tensor]:
        """The outputs; `spoiled`: nothing of use is in new memory, as a check."""
        values = dict(enumerate(given))
        for at, step in enumerate(self._steps):
            step(values, spoiled)
            for number in self._unused[at]:
                del values[number]
        return [values[number] for number in self._outputs]

    def _empty(self, made: int, size: list[int], stride: list[int], dtype: Any, device: Any) -> Any:
        kind, place = decoded(dtype, {}), decoded(device, {})

        def step(values: dict[int, Any], spoiled: bool) -> None:
            values[made] = torch.empty_strided(size, stride, dtype=kind, device=place)
            if spoiled:
                values[made].fill_(float("nan") if kind.is_floating_point else 1)

        return step

    def _view(self, made: int, source: int, size: list[int], stride: list[int], offset: int) -> Any:
        def step(values: dict[int, Any], spoiled: bool) -> None:
            start = values[source].storage_offset() + offset
            values[made] = values[source].as_strided(size, stride, start)

        return step

    def _call(
        self, made: list[int | None], name: str, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        space, operator, overload = name.split(".")
        function = getattr(getattr(getattr(torch.ops, space), operator), overload)

        def step(values: dict[int, Any], spoiled: bool) -> None:
            given = [decoded(arg, values) for arg in args]
            found = function(*given, **{key: decoded(v, values) for key, v in keywords.items()})
            for number, one in zip(made, results(found), strict=True):
                if number is not None:
                    values[number] = one

        return step

    def _run(self, kernel: int, grid: list[int], kinds: str, args: list[Any]) -> Any:
        launch = self._launches[kernel]

        def step(values: dict[int, Any], spoiled: bool) -> None:
            launch(grid, kinds, [decoded(arg, values) for arg in args])

        return step


def encoded(value: Any, number: Callable[[torch.Tensor], int]) -> Any:
    """A value of a step as plain data, in which tensors are numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encoded(one, number) for one in value]
    if isinstance(value, torch.Tensor):
        return {"tensor": number(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for word, kind in _WORDS.items():
        if isinstance(value, kind):
            return {word: str(value).removeprefix("torch.")}
    raise UnknownValueError(f"{type(value).__name__} in a step")


def decoded(value: Any, values: Mapping[int, torch.Tensor]) -> Any:
    """What was encoded, with tensors for their numbers."""
    if isinstance(value, list):
        return [decoded(one, values) for one in value]
    if not isinstance(value, dict):
        return value
    ((word, content),) = value.items()
    if word == "tensor":
        return values[content]
    return torch.device(content) if word == "device" else getattr(torch, content)


def results(found: Any) -> Sequence[Any]:
    """What an operator returned, as a sequence."""
    return found if isinstance(found, list | tuple) else [found]


def _last_uses(tape: Tape) -> list[list[int]]:
    """For each step, the tensors that are not needed after it."""
    last: dict[int, int] = {}
    for at, step in enumerate(tape.steps):
        last |= dict.fromkeys(_numbers(step), at)
    found: dict[int, list[int]] = defaultdict(list)
    for number, at in last.items():
        if number not in tape.outputs:
            found[at].append(number)
    return [found[at] for at in range(len(tape.steps))]


def _numbers(step: Step) -> list[int]:
    """The tensors that a step makes or uses."""
    kind, first = step[:2]
    if kind == "empty":
        return [first]
    if kind == "view":
        return [first, step[2]]
    found = [one for one in first if one is not None] if kind == "call" else []
    rest = [step[3:]]
    while rest:
        one = rest.pop()
        if isinstance(one, dict) and "tensor" in one:
            found.append(one["tensor"])
        elif isinstance(one, list | dict):
            rest.extend(one.values() if isinstance(one, dict) else one)
    return found
