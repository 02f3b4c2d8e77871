"""The calls of the model repository over gRPC: what server/control.py does, as messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mindspore_lite.server.access import Need
from mindspore_lite.server.control import index_of
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.grpc import inference_pb2 as pb
from mindspore_lite.server.request import invalid


def methods(core: Core) -> list[tuple[str, Callable[[Any], Any], Need]]:
    """What clients can call, and what they need for it."""
    return [
        ("RepositoryIndex", partial(_index, core), Need.USE),
        ("RepositoryModelLoad", partial(_load, core), Need.ADMIN),
        ("RepositoryModelUnload", partial(_unload, core), Need.ADMIN),
    ]


def _index(core: Core, request: Any) -> Any:
    _check_name(request)
    if core.control is None:
        found = index_of(core.models, {}, ready=request.ready)
    else:
        found = core.control.index(ready=request.ready)
    return pb.RepositoryIndexResponse(models=found)


def _load(core: Core, request: Any) -> Any:
    _check_name(request)
    parameters = {name: _text(name, value) for name, value in request.parameters.items()}
    core.controlled().load(request.model_name, parameters).result()
    return pb.RepositoryModelLoadResponse()


def _unload(core: Core, request: Any) -> Any:
    _check_name(request)
    core.controlled().unload(request.model_name).result()
    return pb.RepositoryModelUnloadResponse()


def _check_name(request: Any) -> None:
    if request.repository_name:
        raise RequestError(Kind.UNSUPPORTED, "repositories have no names here; leave it out")


def _text(name: str, value: Any) -> str:
    """A parameter of a load; the bytes of files are refused by their names."""
    kind = value.WhichOneof("parameter_choice")
    if kind == "string_param" or name.startswith("file:"):
        return str(value.string_param)
    raise invalid(f"parameter {name[:200]!r} must be a string")
