"""From a path and a Context to a running session: what all model classes share of building."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from mindspore_lite.context import Context
from mindspore_lite.engines.base import Engine, Options, Session, TensorInfo
from mindspore_lite.engines.border import inner_shape, outer_shape
from mindspore_lite.engines.select import engine_for
from mindspore_lite.errors import EngineError, ModelFileError, ShapeError, UnsupportedOpError
from mindspore_lite.graph.source import Shapes, Source, mindir_source, onnx_source
from mindspore_lite.pool import cores

_SOURCES = {"MINDIR": mindir_source, "ONNX": onnx_source}


@dataclass(frozen=True)
class Built:
    """A model that can run: its session, and the shapes that callers see at the moment."""

    path: Path
    kind: str  # a name of ModelType
    files: tuple[Path, ...]  # what was built, and how it looked, to notice when it is exchanged
    stamps: tuple[tuple[int, ...], ...]
    engine: Engine
    options: Options
    session: Session
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


def build(path: Path, kind: str, context: Context) -> Built:
    """Load a model file for the first target of the context."""
    if path.is_dir():
        raise ModelFileError(f"{str(path)!r} is a directory, wanted a model file")
    if kind not in _SOURCES:
        raise ModelFileError(
            f"model type {kind} (.ms files of the edge runtime) cannot be loaded; convert the "
            "original model to MindIR and pass ModelType.MINDIR"
        )
    engine = engine_for(_target(context))
    options = _options(context)
    source = _source(path, kind)
    stamps = _stamps(source.files)
    session = _load(engine, source, options)
    return Built(
        path=path,
        kind=kind,
        files=source.files,
        stamps=stamps,
        engine=engine,
        options=options,
        session=session,
        inputs=session.inputs,
        outputs=session.outputs,
    )


def resized(built: Built, shapes: list[tuple[int, ...]]) -> Built:
    """The same model for other input shapes; the session stays where it can serve them."""
    wanted = {i.name: dims for i, dims in zip(built.inputs, shapes, strict=True)}
    _check_dims(built, wanted)
    session = built.session
    if not all(_accepts(i.shape, wanted[i.name]) for i in session.inputs):
        session = _relaxed(built, wanted)
    from mindspore_lite.graph.shapes import output_shapes

    inside = {i.name: inner_shape(i, wanted[i.name]) for i in session.inputs}
    found = output_shapes(session.skeleton(), inside)
    inputs = tuple(replace(i, shape=wanted[i.name]) for i in session.inputs)
    outputs = tuple(
        replace(o, shape=outer_shape(o, s)) for o, s in zip(session.outputs, found, strict=True)
    )
    return replace(built, session=session, inputs=inputs, outputs=outputs)


def _target(context: Context) -> str:
    first, *others = [target.lower() for target in context.target]
    ignored = [target for target in others if target not in (first, "cpu")]
    if ignored:
        warnings.warn(
            f"the first target decides: the model runs on {first!r}, {ignored} is not used",
            UserWarning,
            stacklevel=4,
        )
    return first


def _options(context: Context) -> Options:
    """Threads and cores as the context asks for; what it leaves open is decided here, not there."""
    cpu = context.cpu
    usable = cores.usable()
    inter_op = cpu.inter_op_parallel_num or 1
    threads = cpu.thread_num or max(cores.default_threads(usable), inter_op)
    if inter_op > threads:
        raise EngineError(
            f"inter_op_parallel_num is {inter_op}, wanted at most thread_num, which is {threads}"
        )
    try:
        bound = usable.pick(cpu.thread_affinity_mode, threads, cpu.thread_affinity_core_list)
    except ValueError as exc:
        raise EngineError(str(exc)) from exc
    return Options(threads, inter_op, bound, cpu.precision_mode)


def _source(path: Path, kind: str, shapes: Shapes | None = None) -> Source:
    return _SOURCES[kind](path, shapes)


def _load(engine: Engine, source: Source, options: Options) -> Session:
    try:
        return engine.load(source, options)
    except ValueError as exc:  # a setting of the environment, or cores that went away
        raise EngineError(str(exc)) from exc


def _check_dims(built: Built, wanted: dict[str, tuple[int, ...]]) -> None:
    for info in built.session.inputs:
        dims = wanted[info.name]
        if len(dims) != len(info.shape):
            raise ShapeError(
                f"input {info.name!r} has {len(info.shape)} dims {list(info.shape)}, "
                f"got {list(dims)}"
            )
        if any(d <= 0 or d > 2**31 - 1 for d in dims):
            raise ShapeError(f"input {info.name!r} got {list(dims)}; every dim must be 1 or more")


def _accepts(pattern: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return all(p in (-1, d) for p, d in zip(pattern, dims, strict=True))


def _relaxed(built: Built, wanted: dict[str, tuple[int, ...]]) -> Session:
    """A session whose differing dims are free, so that the next resize costs nothing.

    Some layers need to know the size; then the session is made for just these shapes.
    """
    if _stamps(built.files) != built.stamps:
        raise ShapeError(f"{str(built.path)!r} changed since it was built; build it again")
    free = {
        i.name: [p if p == d else None for p, d in zip(i.shape, wanted[i.name], strict=True)]
        for i in built.session.inputs
    }
    try:
        return _load(built.engine, _source(built.path, built.kind, free), built.options)
    except UnsupportedOpError:
        fixed = {name: list(dims) for name, dims in wanted.items()}
        return _load(built.engine, _source(built.path, built.kind, fixed), built.options)


def _stamps(files: tuple[Path, ...]) -> tuple[tuple[int, ...], ...]:
    """What tells one state of files from another; without ctime, which chmod changes."""
    try:
        found = [os.stat(file) for file in files]
    except OSError as exc:
        raise ModelFileError(f"cannot read {exc.filename!r}: {exc.strerror or exc}") from exc
    return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in found)
