"""model_warmup of config.pbtxt: requests that every worker computes before a model is ready."""

from __future__ import annotations

import math

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig, ModelWarmup
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.records import WarmUp, WarmUpInput
from mindspore_lite.server.repository.tensors import dims_of, type_name

MAX_COUNT = 1000  # runs of all warm-ups of a model; guess
MAX_BYTES = 64 << 20  # of one input, of all rows; and of all files of a model; guess
FOLDER = "warmup"


def read_warm_ups(message: ModelConfig, folder: Folder) -> tuple[WarmUp, ...]:
    """The warm-ups of a configuration, with the content of the files that they name.

    Raises:
        ModelFileError: They make no sense, or a file cannot be read.
    """
    count = sum(one.count or 1 for one in message.model_warmup)
    if count > MAX_COUNT:
        raise ModelFileError(
            f"config.pbtxt: model_warmup asks for {count} runs, wanted at most {MAX_COUNT}"
        )
    data = _Data(folder)
    return tuple(_warm_up(one, message.max_batch_size, data) for one in message.model_warmup)


class _Data:
    """The files of warm-ups, each read once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[str, bytes] = {}
        self._left = MAX_BYTES

    def of(self, name: str) -> bytes:
        """The content of one."""
        if name not in self._read:
            self._read[name] = self._folder.read(f"{FOLDER}/{name}", self._left)
            self._left -= len(self._read[name])
        return self._read[name]


def _warm_up(given: ModelWarmup, most: int, files: _Data) -> WarmUp:
    where = f"config.pbtxt: model_warmup {given.name[:80]!r}"
    rows = (given.batch_size or 1) if most else given.batch_size
    if rows > most:
        raise ModelFileError(f"{where}: batch_size is {rows}, more than max_batch_size, {most}")
    inputs = {
        name: _input(one, rows, files, f"{where}: input {name[:80]!r}")
        for name, one in sorted(given.inputs.items())
    }
    return WarmUp(given.name, inputs, rows, given.count or 1)


def _input(given: ModelWarmup.Input, rows: int, files: _Data, where: str) -> WarmUpInput:
    kind = given.WhichOneof("input_data_type")
    if kind is None or not getattr(given, kind):
        raise ModelFileError(f"{where} wants zero_data, random_data or input_data_file")
    datatype = type_name(given.data_type, where)
    if not datatype:
        raise ModelFileError(f"{where} has no data_type")
    dims = dims_of(given.dims, where, least=1)
    size = math.prod(dims) * DATATYPES[datatype].item_bytes
    if size * max(rows, 1) > MAX_BYTES:
        raise ModelFileError(f"{where} has more than {MAX_BYTES} bytes")
    if kind != "input_data_file":
        return WarmUpInput(datatype, dims, kind)
    data = files.of(given.input_data_file)
    if len(data) != size:
        raise ModelFileError(
            f"{where}: file {given.input_data_file[:80]!r} has {len(data)} bytes, {datatype} of "
            f"dims {list(dims)} takes {size}"
        )
    return WarmUpInput(datatype, dims, kind, data, given.input_data_file)
