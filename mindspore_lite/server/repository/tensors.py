"""Types and dims as config.pbtxt writes them."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.grpc.model_config_pb2 import DataType


def type_name(number: int, where: str) -> str:
    """The protocol's name of a type; "" if none is given.

    Raises:
        ModelFileError: It is that of strings, or none.
    """
    if number not in DataType.values():
        raise ModelFileError(f"{where}: there is no data_type {number}")
    if number == DataType.Value("TYPE_STRING"):
        raise ModelFileError(f"{where}: TYPE_STRING is not supported; no engine takes strings")
    return DataType.Name(number).removeprefix("TYPE_") if number else ""


def dims_of(dims: Sequence[int], where: str, least: int = -1) -> tuple[int, ...]:
    """Dims as they may be declared.

    Raises:
        ModelFileError: They may not.
    """
    for dim in dims:
        if dim < least or dim == 0:
            wanted = "1 or more, or -1 for any size" if least < 0 else "1 or more"
            raise ModelFileError(f"{where}: dims are {list(dims)[:20]}, wanted {wanted}")
    return tuple(dims)
