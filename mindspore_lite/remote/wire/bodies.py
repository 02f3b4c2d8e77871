"""The body of each message; docs/wire.md describes it byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire.fields import MAX_US, Reader, Writer, microseconds
from mindspore_lite.remote.wire.memory import Block, Made
from mindspore_lite.remote.wire.tensors import (
    Described,
    Region,
    read_arrays,
    read_tensor,
    write_arrays,
    write_tensor,
)
from mindspore_lite.serving.call import HIGHEST, LOWEST, Call
from mindspore_lite.settings.read import Sections

_PREDICT = struct.Struct("<IQbIQQ")
MODEL, RUNNER = 0, 1  # kinds of what a worker hosts
NO_ROOM = Region(0, 0, 0)
MAX_KEY = 1024
WEIGHTS_NOTES = "weights_notes"  # a fact of INFO: the warnings of the last update

Group = Sequence[tuple[str, np.ndarray]]  # of weights: their names, or "" for one by its place


class Predict(NamedTuple):
    """A run: the model, where outputs may go, what is to be computed."""

    model: int
    room: Region  # block 0: nowhere
    call: Call


@dataclass(frozen=True)
class Build:
    """What to load and how.

    `content` holds no tensor: the file at `path`; one: the model's bytes; two: and its weights'.
    `settings` are those of a Context by their names ("cpu.thread_num"), all as text.
    """

    kind: int
    model_type: int
    path: str = ""
    content: list[Described] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    config_path: str = ""
    config: Sections = field(default_factory=dict)
    key: bytes = b""
    key_mode: str = ""


@dataclass(frozen=True)
class Description:
    """A model's ends, and what there was to say about it when it was built."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


def write_predict(out: Writer, model: int, call: Call, room: Region) -> None:
    """Append the head of PREDICT; the list of inputs follows."""
    out.data += _PREDICT.pack(model, microseconds(call.timeout_s), call.priority, *room)


def read_predict(body: Reader, blocks: Mapping[int, Block]) -> Predict:
    """The body of PREDICT; the inputs lie in the blocks, or are copied out of the frame."""
    model, timeout_us, priority, *room = body.unpacked(_PREDICT, "PREDICT")
    if not LOWEST <= priority <= HIGHEST:
        raise WireError(f"the priority is {priority}, wanted {LOWEST} to {HIGHEST}")
    inputs = read_arrays(body, blocks, "inputs")
    body.end("PREDICT")
    timeout_s = min(timeout_us, MAX_US) / 1e6 if timeout_us else None
    return Predict(model, Region(*room), Call(inputs, timeout_s, priority))


def write_build(
    out: Writer, build: Build, content: Sequence[np.ndarray], places: Sequence[Region | None]
) -> None:
    """Append the body of BUILD; the content is the model's bytes, and its weights', as uint8."""
    out.u8(build.kind)
    out.u32(build.model_type)
    out.path(build.path)
    write_arrays(out, ("model", "weights")[: len(content)], content, places)
    out.u32(len(build.settings))
    for name, value in build.settings.items():
        out.text(name)
        out.text(value)
    out.path(build.config_path)
    entries = [(s, k, v) for s, pairs in build.config.items() for k, v in pairs.items()]
    out.u32(len(entries))
    for entry in entries:
        for word in entry:
            out.text(word)
    out.blob(build.key)
    out.text(build.key_mode)


def read_build(body: Reader) -> Build:
    """The body of BUILD."""
    kind, model_type = body.u8("the kind"), body.u32("the model type")
    path = body.path("the path")
    content = body.items("contents", lambda: read_tensor(body), most=2)
    settings = dict(
        body.items("settings", lambda: (body.text("a setting"), body.text("its value")))
    )
    config_path = body.path("the configuration's path")
    config: Sections = {}
    for section, name, value in body.items(
        "entries", lambda: (body.text("a section"), body.text("a key"), body.text("its value"))
    ):
        config.setdefault(section, {})[name] = value
    key = bytes(body.blob("the decryption key", MAX_KEY))
    key_mode = body.text("the decryption mode")
    body.end("BUILD")
    return Build(kind, model_type, path, content, settings, config_path, config, key, key_mode)


def write_update(
    out: Writer, model: int, groups: Sequence[Group], places: Sequence[Region | None]
) -> None:
    """Append the body of UPDATE_WEIGHTS or DERIVE; the places are those of all groups in a row."""
    out.u32(model)
    out.u32(len(groups))
    start = 0
    for group in groups:
        names, arrays = [name for name, _ in group], [array for _, array in group]
        write_arrays(out, names, arrays, places[start : start + len(group)])
        start += len(group)


def read_update(body: Reader) -> tuple[int, list[list[Described]]]:
    """The body of UPDATE_WEIGHTS or DERIVE: the model, and the groups."""
    model = body.u32("the model")
    groups = body.items(
        "groups of weights", lambda: body.items("weights", partial(read_tensor, body))
    )
    body.end("a change of weights")
    return model, groups


def write_description(out: Writer, description: Description) -> None:
    """Append inputs and outputs, as two lists of tensors without data."""
    for infos in (description.inputs, description.outputs):
        out.u32(len(infos))
        for info in infos:
            write_tensor(out, info.name, info.dtype, info.shape)


def read_description(body: Reader) -> Description:
    """Two lists of tensors without data."""

    def infos(what: str) -> tuple[TensorInfo, ...]:
        found = body.items(what, lambda: read_tensor(body))
        return tuple(TensorInfo(t.name, t.dtype, t.shape) for t in found)

    return Description(infos("inputs"), infos("outputs"))


def write_made(out: Writer, made: list[Made]) -> None:
    """Append a list of blocks that the worker made."""
    out.u32(len(made))
    for one in made:
        out.u32(one.block)
        out.u32(one.descriptor)
        out.u64(one.size)


def read_made(body: Reader) -> list[Made]:
    """A list of blocks that the worker made."""
    return body.items(
        "blocks",
        lambda: Made(body.u32("a block"), body.u32("a descriptor"), body.u64("a size")),
    )
