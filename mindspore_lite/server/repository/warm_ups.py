"""model_warmup of config.pbtxt: requests that every worker computes before a model is ready."""

from __future__ import annotations

import math

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig, ModelWarmup
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.records import WarmUp, WarmUpInput
from mindspore_lite.server.repository.tensors import dims_of, type_name

MAX_COUNT = 1000  # runs of one warm-up; guess
MAX_BYTES = 64 << 20  # of one input, of all rows; guess
FOLDER = "warmup"


def read_warm_ups(message: ModelConfig, folder: Folder) -> tuple[WarmUp, ...]:
    """The warm-ups of a configuration, with the content of the files that they name.

    Raises:
        ModelFileError: They make no sense, or a file cannot be read.
    """
    return tuple(_warm_up(one, message.max_batch_size, folder) for one in message.model_warmup)


def _warm_up(given: ModelWarmup, most: int, folder: Folder) -> WarmUp:
    where = f"config.pbtxt: model_warmup {given.name[:80]!r}"
    rows = (given.batch_size or 1) if most else given.batch_size
    if rows > most:
        raise ModelFileError(f"{where}: batch_size is {rows}, more than max_batch_size, {most}")
    if given.count > MAX_COUNT:
        raise ModelFileError(f"{where}: count is {given.count}, wanted at most {MAX_COUNT}")
    inputs = {
        name: _input(one, rows, folder, f"{where}: input {name[:80]!r}")
        for name, one in sorted(given.inputs.items())
    }
    return WarmUp(given.name, inputs, rows, given.count or 1)


def _input(given: ModelWarmup.Input, rows: int, folder: Folder, where: str) -> WarmUpInput:
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
    data = folder.read(f"{FOLDER}/{given.input_data_file}", MAX_BYTES)
    if len(data) != size:
        raise ModelFileError(
            f"{where}: file {given.input_data_file[:80]!r} has {len(data)} bytes, {datatype} of "
            f"dims {list(dims)} takes {size}"
        )
    return WarmUpInput(datatype, dims, kind, data, given.input_data_file)
