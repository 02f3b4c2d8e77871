"""What a ServeConfig means for a model that is loaded: its Spec, checks, and warm-ups.

spec = spec_of(config, context)                     how it runs
service = started(path, spec, ...)
check_declared(config, service)                     it is the model that the file describes
warm_up(config, service)                            every worker has computed what the file asks
models.load(name, version, start, options_of(config, path))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mindspore_lite.context import Context
from mindspore_lite.core import synthetic
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.datatypes import DATATYPES, of_dtype
from mindspore_lite.server.models import ModelOptions, PoolLike
from mindspore_lite.server.repository.records import Declared, ServeConfig, WarmUp, WarmUpInput
from mindspore_lite.server.request import fits
from mindspore_lite.serving.service import unnamed
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.names import canonical
from mindspore_lite.settings.read import Layer, read_layers
from mindspore_lite.settings.spec import Spec, settle
from mindspore_lite.settings.table import ENTRIES
from mindspore_lite.settings.text import from_map, to_map

_PLATFORMS = {"ONNX": "onnx_onnxv1", "MINDIR": "mslite_mindir"}


def spec_of(
    config: ServeConfig, context: Context, first: Sequence[Layer] = (), *, stacklevel: int = 4
) -> Spec:
    """How a model runs: what its own file says, before the server's configuration and Context.

    Args:
        config: Of the model.
        context: Of the server, with its configuration.
        first: What counts before all of that.
        stacklevel: Of warnings.

    Raises:
        LiteError: Settings make no sense, or do not go together.
    """
    asked = context.parallel
    layers = [*first, *read_layers("serve", asked.config_path, asked.config_info)]
    if config.settings or config.context:
        sections = {name: dict(entries) for name, entries in config.settings.items()}
        layers.insert(len(first), Layer(config.source, sections))
        # of some settings the Context counts before a configuration; not here, where it is general
        named = {field for field in _fields(config)}
        general = {field: text for field, text in to_map(context).items() if field not in named}
        context = from_map({**general, **config.context})
    return unnamed(settle(context, layers, stacklevel=stacklevel))


def options_of(config: ServeConfig, path: Path) -> ModelOptions:
    """What the server says of a model beyond its file."""
    return ModelOptions(
        platform=_PLATFORMS.get(model_kind(path), "mslite"),
        max_batch_size=config.max_batch_size,
        labels=config.labels,
        config=config,
        file=path.name,
    )


def start_checked(config: ServeConfig, start: Callable[[], PoolLike]) -> PoolLike:
    """A service that is what its configuration declares, and warmed up as that asks.

    Raises:
        LiteError: It cannot be started, is another one, or fails a warm-up.
    """
    service = start()
    try:
        check_declared(config, service)
        warm_up(config, service)
    except BaseException:
        service.close(0.0)
        raise
    return service


def check_declared(config: ServeConfig, service: PoolLike) -> None:
    """Check that a model is as its configuration declares it.

    Raises:
        ModelFileError: An input or output is another one.
    """
    for what, declared, found in (
        ("input", config.inputs, service.inputs),
        ("output", config.outputs, service.outputs),
    ):
        by_name = {info.name: info for info in found}
        for one in declared:
            if one.name not in by_name:
                raise ModelFileError(
                    f"{config.source} declares the {what} {one.name[:80]!r}, and the model has "
                    f"{', '.join(by_name)[:300]}"
                )
            _check_tensor(config, f"{what} {one.name!r}", one, by_name[one.name])
        if config.max_batch_size:
            for info in found:
                _check_batch(config, f"{what} {info.name!r}", info)


def warm_up(config: ServeConfig, service: PoolLike) -> None:
    """Let every worker compute the warm-ups of a model.

    Raises:
        LiteError: One does not fit the model, or fails.
    """
    for one in config.warm_ups:
        arrays = list(_arrays(config, one, service.inputs))
        for _ in range(one.count):
            service.warm_up_with(arrays)


def _fields(config: ServeConfig) -> Iterator[str]:
    """Fields of the Context whose settings the file of the model names."""
    for section, entries in config.settings.items():
        for name in entries:
            key = ENTRIES.get((canonical(section), name))
            if key is not None and key.context:
                yield key.context


def _check_tensor(config: ServeConfig, what: str, said: Declared, found: TensorInfo) -> None:
    kind = of_dtype(found.dtype)
    if said.datatype and (kind is None or kind.name != said.datatype):
        raise ModelFileError(
            f"{config.source} declares {what} as {said.datatype}, and the model has "
            f"{kind.name if kind else found.dtype}"
        )
    if said.dims is None or found.shape == ANY_RANK:
        return
    shape = found.shape[1:] if config.max_batch_size else found.shape
    if not fits(shape, said.dims):
        batch = " behind the batch" if config.max_batch_size else ""
        raise ModelFileError(
            f"{config.source} declares {what} with dims {list(said.dims)}, and the model has "
            f"{list(shape)}{batch}"
        )


def _check_batch(config: ServeConfig, what: str, found: TensorInfo) -> None:
    if found.shape == ANY_RANK or found.shape[:1] == (-1,):
        return
    if found.shape[:1] == (1,) and config.max_batch_size == 1:
        return
    raise ModelFileError(
        f"{config.source} has max_batch_size {config.max_batch_size}, but {what} of the model has "
        f"shape {list(found.shape)}, whose first dim is no batch of any size; set it to 0"
    )


def _arrays(
    config: ServeConfig, asked: WarmUp, inputs: Sequence[TensorInfo]
) -> Iterator[np.ndarray]:
    where = f"{config.source}: model_warmup {asked.name[:80]!r}"
    names = [info.name for info in inputs]
    if set(names) != set(asked.inputs):
        given = ", ".join(asked.inputs)[:300]
        raise ModelFileError(f"{where} has inputs {given}, and the model {', '.join(names)[:300]}")
    for info in inputs:
        one = asked.inputs[info.name]
        if DATATYPES[one.datatype].dtype != info.dtype:
            raise ModelFileError(
                f"{where}: input {info.name!r} is {one.datatype}, and the model has {info.dtype}"
            )
        array = _array(one, asked.batch_size)
        if info.shape != ANY_RANK and not fits(info.shape, array.shape):
            raise ModelFileError(
                f"{where}: input {info.name!r} has shape {list(array.shape)}, and the model "
                f"{list(info.shape)}"
            )
        yield array


def _array(one: WarmUpInput, rows: int) -> np.ndarray:
    dtype = DATATYPES[one.datatype].dtype
    shape = (rows, *one.dims) if rows else one.dims
    if one.kind == "zero_data":
        return np.zeros(shape, dtype)
    if one.kind == "random_data":
        return synthetic.array(dtype, shape)
    row = np.frombuffer(one.data, dtype).reshape(one.dims)
    return np.repeat(row[None], rows, axis=0) if rows else row.copy()
