"""From a model and a Spec to a running session: what all model classes share of building."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.core import cores
from mindspore_lite.core.files import Stamp
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo, for_target
from mindspore_lite.engines import ascend, choice, sandbox, short_floats
from mindspore_lite.engines.base import (
    CardSession,
    Engine,
    Group,
    Options,
    Reopening,
    Session,
    SessionInfo,
)
from mindspore_lite.engines.select import engine_for
from mindspore_lite.engines.sessions.any_rank import AnyRankSession
from mindspore_lite.engines.sessions.any_shape import AnyShapeSession, accepts
from mindspore_lite.engines.sessions.io_types import declared, inner_shape, outer_shape, seen
from mindspore_lite.engines.sessions.state import StatefulSession, carrying
from mindspore_lite.errors import EngineError, ModelFileError, ShapeError, UnsupportedOpError
from mindspore_lite.graph.open_rank import End, OpenRankError, Trial
from mindspore_lite.graph.source import ModelInput, ModelSource, Shapes, source_of
from mindspore_lite.settings import ascend_shapes
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.weights import WeightSettings

if TYPE_CHECKING:
    from mindspore_lite.weights.sharing.server import Share


@dataclass(frozen=True)
class Built:
    """A model that can run: its session, and the shapes that callers see at the moment."""

    given: ModelInput
    stamps: tuple[Stamp, ...]  # how its files looked, to notice when one is exchanged
    engine: Engine
    options: Options
    spec: Spec
    session: Session
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    any_rank: frozenset[str] = frozenset()  # inputs that may be resized to another number of dims
    shapes: Shapes | None = None  # of the session's inputs, where they are not those of the file
    # variable weights that are not those of the file, by name
    replaced: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    version: int = 0  # of the weights: how many times they were changed
    share: Share | None = None  # by which other processes use the weights

    @property
    def weights(self) -> WeightSettings:
        """Which weights may change, and how."""
        return self.spec.weights

    def close(self) -> None:
        """Close the session, and share its weights no more. Harmless when repeated."""
        self.session.close()
        if self.share is not None:
            self.share.close()


def build(
    given: ModelInput, spec: Spec, options: Options | None = None, *, group: Group | None = None
) -> Built:
    """Load a model for the first target of a spec; options None follow from the spec."""
    spec = choice.settled(spec, given)
    if given.path is not None and given.path.is_dir():
        raise ModelFileError(f"{given.name} is a directory, wanted a model file")
    if given.kind == "MINDIR_LITE":
        raise ModelFileError(
            "model type MINDIR_LITE (.ms files of the edge runtime) cannot be loaded; convert the "
            "original model to MindIR and pass ModelType.MINDIR"
        )
    engine = _engine(spec, options)
    if options is None:
        options = replace(_options(spec), group=group)
    given = replace(
        given,
        variable=spec.weights.variable,
        budget=spec.budget,
        carries_state=True,
        strict_bfloat16=spec.bfloat16 == "strict",
    )
    if given.budget.sandbox:
        sandbox.check(engine, given)
    source = source_of(given)
    stamps = source.snapshot.stamps
    any_rank: tuple[str, ...] = ()
    session: Session
    share = None
    try:
        with _settings_errors(), _sandboxed(source, given, None) as source:
            session, share = _opened(engine, source, options, spec)
    except OpenRankError as exc:
        if spec.weights.variable:
            raise EngineError(
                f"the number of dims of inputs {list(exc.trial.open)} is open, and the weights of "
                "such a model cannot change; export it with a fixed number of dims"
            ) from None

        def load(shapes: Shapes) -> Session:
            return _load(engine, given, stamps, shapes, options)

        any_rank, session = exc.trial.open, _any_rank_session(exc.trial, load)
    session = _carrying(given, session)
    _check_opened(spec, session, share)
    return Built(
        given=given,
        stamps=stamps,
        engine=engine,
        options=options,
        spec=spec,
        session=session,
        inputs=for_target(spec.target, session.info.inputs),
        outputs=session.info.outputs,
        any_rank=frozenset(any_rank),
        share=share,
    )


def _check_opened(spec: Spec, session: Session, share: Share | None) -> None:
    """Refuse what only the opened model shows, as shapes that do not fit; it is closed then."""
    try:
        _check_shapes(spec, session)
        if short_floats.is_picked(spec) and ANY_RANK not in [i.shape for i in session.info.inputs]:
            short_floats.check(session.skeleton())
    except BaseException:
        session.close()
        if share is not None:
            share.close()
        raise


def _check_shapes(spec: Spec, session: Session) -> None:
    """Refuse shapes of [ascend_context] that do not fit, layer by layer."""
    if not spec.input_shape and not spec.dynamic_dims:
        return
    infos = {info.name: info for info in session.info.inputs}
    inputs = {name: None if i.shape == ANY_RANK else i.shape for name, i in infos.items()}
    said = ascend_shapes.input_shape(spec.input_shape)
    sizes = ascend_shapes.dynamic_dims(spec.dynamic_dims)
    if found := ascend_shapes.problems(said, sizes, inputs):
        known = ", ".join(f"{name}:{list(dims or ())}" for name, dims in inputs.items())
        raise ShapeError(
            f"[ascend_context] does not fit the model: {'; '.join(found)}. Its inputs: {known}"
        )
    from mindspore_lite.passes.shapes import output_shapes

    for shapes in ascend_shapes.all_shapes(said, sizes, inputs):
        inside = {name: inner_shape(infos[name], dims) for name, dims in shapes.items()}
        try:
            output_shapes(session.skeleton(), inside)
        except ShapeError as exc:
            raise exc.prefixed("[ascend_context] dynamic_dims: ") from exc.__cause__


def updated(built: Built, replaced: Mapping[str, np.ndarray]) -> Built:
    """The same model with other weights: those of the file, but for the ones given here.

    The file itself is not read: what is compiled of it has them.
    """
    session, before = built.session, built.replaced
    if isinstance(session, StatefulSession):
        new = {name: array for name, array in replaced.items() if array is not before.get(name)}
        session.change(partial(_reopened, replaced=replaced), new if replaced else None)
    else:
        session = _reopened(session, replaced)
    return replace(built, replaced=replaced, session=session, version=built.version + 1)


def _reopened(session: Session, replaced: Mapping[str, np.ndarray]) -> Session:
    if isinstance(session, CardSession):
        session.update(replaced)
        return session
    assert isinstance(session, Reopening)  # else it has no weights that may change
    with _settings_errors():
        return session.opener()(replaced)


def _opened(
    engine: Engine, source: ModelSource, options: Options, spec: Spec
) -> tuple[Session, Share | None]:
    """The session of a model, whose weights may be shared with others, or be another process's."""
    weights = spec.weights
    if weights.handle is None and weights.pids is None:
        return sandbox.load(engine, source, options), None
    from mindspore_lite.engines.sharing import load_shared, open_shared  # most programs never do

    if weights.handle is not None:
        session = open_shared(engine, source, options, _device(spec), weights.handle)
        return session, None
    assert weights.pids is not None
    return load_shared(engine, source, options, _device(spec), weights.pids)


def _device(spec: Spec) -> str:
    """What processes must have in common to share weights."""
    return spec.target if spec.target == "cpu" else f"{spec.target}:{spec.device_id}"


def _any_rank_session(trial: Trial, load: Callable[[Shapes], Session]) -> Session:
    """A session that compiles when the number of dims of its inputs is known."""

    def infos(ends: tuple[End, ...], side: str) -> Iterator[TensorInfo]:
        border = declared(trial.metadata, side)
        return (seen(TensorInfo(*end), border) for end in ends)

    inputs = tuple(
        replace(i, shape=ANY_RANK) if i.name in trial.open else i
        for i in infos(trial.inputs, "inputs")
    )
    outputs = tuple(replace(o, shape=ANY_RANK) for o in infos(trial.outputs, "outputs"))
    return AnyRankSession(SessionInfo(inputs, outputs, trial.metadata), load)


def resized(built: Built, shapes: list[tuple[int, ...]]) -> Built:
    """The same model for other input shapes; the session stays where it can serve them."""
    wanted = {i.name: dims for i, dims in zip(built.inputs, shapes, strict=True)}
    _check_dims(built, wanted)
    session, now = built.session, built.shapes
    if not accepts(session.info.inputs, [wanted[i.name] for i in session.info.inputs]):
        _check_weights(built, wanted)
        session, now = _relaxed(built, wanted)
    found = _output_shapes(session, wanted)
    shaped = tuple(replace(i, shape=wanted[i.name]) for i in session.info.inputs)
    inputs = for_target(built.spec.target, shaped)
    outputs = tuple(
        replace(o, shape=outer_shape(o, s))
        for o, s in zip(session.info.outputs, found, strict=False)  # a state's come last
    )
    return replace(built, session=session, inputs=inputs, outputs=outputs, shapes=now)


def any_shape(built: Built) -> Session:
    """A session that also takes requests of other sizes, without a resize."""
    if built.any_rank:  # which leaves all sizes open
        return built.session

    return AnyShapeSession(built.session, partial(relaxed, built))


def any_shape_updated(before: Session, built: Built) -> Session:
    """any_shape() of a model after an update; what `before` has compiled is used again."""
    assert isinstance(before, AnyShapeSession)  # a model of any rank has no variable weights
    return before.updated(built.session, partial(relaxed, built), built.replaced)


def relaxed(built: Built, shapes: list[tuple[int, ...]]) -> Session:
    """A session for inputs of other sizes, with the same weights."""
    wanted = {i.name: dims for i, dims in zip(built.inputs, shapes, strict=True)}
    _check_dims(built, wanted)
    _check_weights(built, wanted)
    session = _relaxed(built, wanted)[0]
    _output_shapes(session, wanted)  # now the constants that depend on sizes are known, too
    return session


def warn_of_unused_targets(spec: Spec, stacklevel: int) -> None:
    """Say it when a spec names devices that the first one leaves unused."""
    first, *others = spec.targets
    ignored = [target for target in others if target not in (first, "cpu")]
    if ignored:
        warnings.warn(
            f"the first target decides: the model runs on {first!r}, {ignored} is not used",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_cpu_settings(spec: Spec, stacklevel: int) -> None:
    """Say it when a spec asks for threads or cores, which a card does not have."""
    names = ("thread_num", "inter_op_parallel_num", "thread_affinity_mode")
    said = [f"cpu.{name}" for name in (*names, "thread_affinity_core_list") if getattr(spec, name)]
    if said:
        warnings.warn(
            f"{said} have no effect on target {spec.target!r}: the card computes",
            UserWarning,
            stacklevel=stacklevel,
        )


def applied(spec: Spec, options: Options, number: int | None = None) -> Options:
    """Options for one session, on the given device or the one of the spec."""
    device = f"{spec.device_kind}:{spec.device_id if number is None else number}"
    return replace(
        options,
        precision=spec.precision,
        device=device if spec.on_card else "cpu",
        tf32=spec.allow_tf32,
        tuning=spec.tuning,
        batches=spec.batch_buckets,
        profile=spec.profile,
        max_seconds=spec.budget.max_seconds,
    )


def _engine(spec: Spec, options: Options | None) -> Engine:
    """The engine of a target, whose device is there."""
    number = spec.device_id if options is None else int(options.device.partition(":")[2] or 0)
    engine = engine_for(spec.target, spec.engine, number)
    if spec.target == "ascend" and not spec.on_card:
        ascend.check_device("context.ascend.device_id", spec.device_id)
    return engine


def _options(spec: Spec) -> Options:
    """What the spec asks for; what it leaves open is decided here, not there."""
    warn_of_unused_targets(spec, stacklevel=8)
    if spec.on_card:
        warn_of_cpu_settings(spec, stacklevel=8)
        return applied(spec, Options())
    usable = cores.usable()
    inter_op = spec.inter_op_parallel_num or 1
    threads = spec.thread_num or max(cores.default_threads(usable), inter_op)
    if inter_op > threads:
        raise EngineError(
            f"inter_op_parallel_num is {inter_op}, wanted at most thread_num, which is {threads}"
        )
    try:
        bound = usable.pick(spec.thread_affinity_mode, threads, spec.thread_affinity_core_list)
    except ValueError as exc:
        raise EngineError(str(exc)) from exc
    return applied(spec, Options(threads, inter_op, bound))


def _load(
    engine: Engine,
    given: ModelInput,
    stamps: tuple[Stamp, ...],
    shapes: Shapes | None,
    options: Options,
    replaced: Mapping[str, np.ndarray] | None = None,
) -> Session:
    """Another session of a model that was built before, whose files must be what they were."""
    try:
        source = source_of(given, shapes)
    except ModelFileError as exc:
        if isinstance(exc.__cause__, OSError):  # it is gone, or out of reach
            raise
        raise ShapeError(f"{given.name} changed since it was built; build it again") from exc
    if source.snapshot.stamps != stamps:
        raise ShapeError(f"{given.name} changed since it was built; build it again")
    if replaced:
        source = replace(source, replaced=replaced)
    with _settings_errors(), _sandboxed(source, given, shapes) as source:
        return sandbox.load(engine, source, options)


def _carrying(given: ModelInput, session: Session) -> Session:
    """The session, with its state where it has one; what an ONNX file says of one is not ours."""
    return carrying(session) if given.kind == "MINDIR" else session


def check_stateless(built: Built) -> None:
    """Refuse a network that keeps a state where no caller could rely on it."""
    if isinstance(built.session, StatefulSession):
        built.session.close()
        raise EngineError(
            f"the network keeps its parameters {list(built.session.names)} from one run to the "
            "next: the workers of a runner would disagree about them, and so would programs that "
            "share a model by its name; build it as a Model of your own, or export it with these "
            "as inputs and outputs"
        )


@contextmanager
def _sandboxed(
    source: ModelSource, given: ModelInput, shapes: Shapes | None
) -> Iterator[ModelSource]:
    """The source as an engine shall have it: for a child to compile, if the budget says so."""
    if not given.budget.sandbox:
        yield source
        return
    with sandbox.jailed(source, given, shapes) as jailed:
        yield jailed


@contextmanager
def _settings_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as exc:  # a setting of the environment, or cores that went away
        raise EngineError(str(exc)) from exc


def _check_dims(built: Built, wanted: dict[str, tuple[int, ...]]) -> None:
    for info in built.session.info.inputs:
        dims = wanted[info.name]
        if len(dims) != len(info.shape) and info.name not in built.any_rank:
            raise ShapeError(
                f"input {info.name!r} has {len(info.shape)} dims {list(info.shape)}, "
                f"got {list(dims)}"
            )
        if any(d <= 0 or d > 2**31 - 1 for d in dims):
            raise ShapeError(f"input {info.name!r} got {list(dims)}; every dim must be 1 or more")


def _check_weights(built: Built, wanted: dict[str, tuple[int, ...]]) -> None:
    """Refuse sizes that the model's weights rule out, which is cheaper than compiling for them."""
    if built.any_rank:
        return  # which has no graph yet
    from mindspore_lite.passes.shapes import check_weights

    inside = {i.name: inner_shape(i, wanted[i.name]) for i in built.session.info.inputs}
    check_weights(built.session.skeleton(), inside)


def _output_shapes(session: Session, wanted: dict[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    from mindspore_lite.passes.shapes import output_shapes

    inside = {i.name: inner_shape(i, wanted[i.name]) for i in session.info.inputs}
    return output_shapes(session.skeleton(), inside)


def _freed(pattern: tuple[int, ...], dims: tuple[int, ...]) -> list[int | None]:
    """The pattern with None where it differs from the dims."""
    if len(pattern) != len(dims):
        return [None] * len(dims)
    return [p if p == d else None for p, d in zip(pattern, dims, strict=True)]


def _relaxed(built: Built, wanted: dict[str, tuple[int, ...]]) -> tuple[Session, Shapes]:
    """A session whose differing dims are free, so that the next resize costs nothing; its shapes.

    Some layers need to know the size; then the session is made for just these shapes.
    """
    free = {i.name: _freed(i.shape, wanted[i.name]) for i in built.session.info.inputs}

    def loaded(shapes: Shapes) -> Session:
        made = _load(built.engine, built.given, built.stamps, shapes, built.options, built.replaced)
        return _carrying(built.given, made)

    try:
        return loaded(free), free
    except UnsupportedOpError:
        fixed = {name: list(dims) for name, dims in wanted.items()}
        return loaded(fixed), fixed
