"""The PyTorch engine: sessions on the host or on a card.

What is kept in the cache is the graph after the passes, with its weights next to it: a later start
neither translates nor copies, and sessions on the host use the mapped pages themselves. What torch
compiles of it is kept apart (plan_cache.py, compile.py).
"""

from __future__ import annotations

import warnings
from functools import cache as remembered
from pathlib import Path

import onnx
import onnx_ir as ir
import torch
from google.protobuf.message import DecodeError

from mindspore_lite.core import binding
from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.engines.base import Keep, ModelSource, Options
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.cache import load as cached
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.skeleton import Parts, take_apart
from mindspore_lite.engines.prepare.widen import Kernels, widen
from mindspore_lite.engines.torch import ipc, stored_graph
from mindspore_lite.engines.torch.card_session import CardSession
from mindspore_lite.engines.torch.cards import Card, card_for
from mindspore_lite.engines.torch.compile import check_tuning
from mindspore_lite.engines.torch.kernels.taken import rows
from mindspore_lite.engines.torch.precision import half_of
from mindspore_lite.engines.torch.program import Program
from mindspore_lite.engines.torch.session import TorchSession, on_host
from mindspore_lite.errors import EngineError
from mindspore_lite.passes.check_nodes import check_nodes
from mindspore_lite.passes.folding import refuse_unknown
from mindspore_lite.passes.for_card import prepare
from mindspore_lite.passes.guard_division import guard_division
from mindspore_lite.passes.opset import upgraded
from mindspore_lite.weights.records import Identity

VERSION = str(torch.__version__)
_MAKERS = (
    *("prepare/widen", "prepare/variable"),
    *(f"torch/{name}" for name in ("engine", "stored_graph", "kernels/taken")),
)

AnySession = TorchSession | CardSession


class TorchEngine:
    """Runs models with PyTorch: on the CPU, on NVIDIA cards, on Ascend cards with torch_npu.

    Precisions are those of precision.py: without a half type, float32 stays float32, and on cards
    `tf32` says whether its products may round their operands.
    """

    capabilities = ENGINES["torch"]
    name = capabilities.name

    def load(self, source: ModelSource, options: Options, keep: Keep | None = None) -> AnySession:
        """Prepare the graph, or find it prepared, and open it; settings are checked first."""
        card = _checked(options)
        store = cache.usable() if source.storable else None
        trouble = ""
        if store is not None:
            try:
                return _load_cached(store, source, options, card, keep)
            except cache.CacheTroubleError as exc:
                trouble = str(exc)
        model, skeleton = _prepared(source)
        session = _in_memory(model, skeleton, source, options, card)
        if store is not None:  # last: a bad model is an error, not a fault of the cache
            cache.warn(store.place, trouble)
        return session

    def identity(self, source: ModelSource, options: Options) -> Identity:
        """Read or recall what the files hold; the cache is only asked, and need not be usable."""
        store = cache.usable(quietly=True)
        content = digest.read(source.snapshot, None if store is None else store.seen)
        return _identity(source, content, options)

    def open(self, folder: Path, options: Options, extra: bytes = b"") -> AnySession:
        """Open a graph that another process has prepared; extra: its weights on the card."""
        card = _checked(options)
        try:
            return _opened(*stored_graph.read(folder), folder, None, options, card, extra)
        except OSError as exc:
            raise EngineError(f"the compiled model cannot be read: {exc.strerror or exc}") from exc


ENGINE = TorchEngine  # what engines/select.py takes


def _checked(options: Options) -> Card | None:
    """The card of the options, found to be there; None is the host."""
    binding.check(options.cores, options.threads)
    half_of(options.precision)
    check_tuning(options.tuning)
    if options.group is not None:
        warnings.warn(
            "a model of a group shares neither weights nor scratch memory on the torch engine; use "
            "engine=onnxruntime on target 'cpu', or one model with several workers",
            RuntimeWarning,
            stacklevel=3,
        )
    return None if options.device == "cpu" else card_for(options.device)


def _identity(source: ModelSource, content: digest.Content, options: Options) -> Identity:
    engine, makers = f"{TorchEngine.name} {VERSION}", digest.code_of(*_MAKERS)
    kind = {"kind of device": options.device.partition(":")[0]}
    return cached.identity(source, content, engine, makers, kind)


def _load_cached(
    store: cache.Cache, source: ModelSource, options: Options, card: Card | None, keep: Keep | None
) -> AnySession:
    """The session on a cached graph, which is prepared first if need be."""
    content = digest.read(source.snapshot, store.seen)
    identity = _identity(source, content, options)
    key = digest.key(identity)

    def read(folder: Path) -> tuple[ir.Model, bytes, Path] | None:
        try:
            model, skeleton = stored_graph.read(folder)
        except (OSError, ValueError, DecodeError):
            return None
        if keep is not None:
            keep(folder, identity)
        return model, skeleton, folder

    def build() -> Path:
        model, skeleton = _prepared(source)
        size = len(skeleton) + sum(
            value.const_value.nbytes
            for value in model.graph.initializers.values()
            if value.const_value is not None
        )
        return cached.write(
            store, key, size, lambda folder: stored_graph.write(folder, model, skeleton)
        )

    return _opened(*cached.find_or_build(store, key, read, build), source, options, card)


def _prepared(source: ModelSource) -> tuple[ir.Model, bytes]:
    """The graph after the passes, and its skeleton from before them."""
    model = source.translate()
    check_nodes(model)
    refuse_unknown(model, source.budget, "PyTorch")
    model = upgraded(model)
    names = variable.mark(model, source.variable)
    variable.hold_open(model, names)
    widen(model, _kernels)
    guard_division(model)
    variable.settle(model, names)
    parts = take_apart(model, names)
    model = _whole(parts)
    prepare(model, names)
    return model, parts.skeleton


def _whole(parts: Parts) -> ir.Model:
    """A model from its parts."""
    model = ir.serde.deserialize_model(onnx.ModelProto.FromString(parts.skeleton))
    for name, array in parts.weights.items():
        model.graph.initializers[name].const_value = ir.Tensor(array, name=name)
    return model


@remembered
def _kernels() -> Kernels:
    return Kernels("PyTorch", rows())


def _opened(
    model: ir.Model,
    skeleton: bytes,
    folder: Path,
    source: ModelSource | None,
    options: Options,
    card: Card | None,
    extra: bytes = b"",
) -> AnySession:
    variables = variable.from_file(model.metadata_props, folder / artefact.WEIGHTS)
    program = Program(model, skeleton, variables, options, card, key=folder.name)
    return _session(program, source, extra, mapped=not variables)


def _in_memory(
    model: ir.Model, skeleton: bytes, source: ModelSource, options: Options, card: Card | None
) -> AnySession:
    """A session on a model that is stored nowhere."""
    tensors = {name: value.const_value for name, value in model.graph.initializers.items()}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}
    variables = variable.from_memory(model.metadata_props, arrays)
    program = Program(model, skeleton, variables, options, card)
    return _session(program, source, b"", mapped=False)


def _session(
    program: Program, source: ModelSource | None, extra: bytes, mapped: bool
) -> AnySession:
    replaced = {} if source is None else source.replaced
    if program.card is None:
        return on_host(program, replaced, mapped)
    if replaced:
        program.store.update(replaced)
    if extra:
        ipc.adopt(program.store, extra)
    return CardSession(program)
