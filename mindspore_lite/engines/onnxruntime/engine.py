"""The default CPU engine: ONNX Runtime sessions on weights mapped from the cache.

A model is compiled once, into an artefact of the cache, and always opened from there; without a
cache it is compiled in memory. See engines/cache/artefact.py for what is stored.
"""

from __future__ import annotations

import gc
import platform
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache as remembered
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from mindspore_lite.core import binding, machine
from mindspore_lite.core.boundary import engine_failure
from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.engines import time_limit
from mindspore_lite.engines.base import Keep, ModelSource, Options, Session
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.cache import load as cached
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.onnxruntime import folding, held, profile
from mindspore_lite.engines.onnxruntime.session import Native, OrtSession, readable
from mindspore_lite.engines.onnxruntime.workspace import ENTRIES, Workspace
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.alignment import align_weights
from mindspore_lite.engines.prepare.skeleton import LARGE_BYTES, Parts, take_apart
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.weights.records import Identity, Variable

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.engines.prepare.widen import Kernels

VERSION = str(ort.__version__)
_PROVIDERS = ["CPUExecutionProvider"]
_SUMS_IN_32_BITS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})  # of products of int8
_FATAL = 4  # log level; every failure comes as an exception too, and warnings are about compiling


class OnnxRuntimeEngine:
    """Runs models on the CPU with ONNX Runtime.

    Precision "enforce_fp32" computes as the model says. "preferred_fp16" lets float32 matrix
    products use bfloat16 on arm64; on x86 it changes nothing, since there is no faster kernel, and
    engines/short_floats.py picks another engine or says so.
    """

    capabilities = ENGINES["onnxruntime"]
    name = capabilities.name

    def load(self, source: ModelSource, options: Options, keep: Keep | None = None) -> Session:
        """Compile, or find compiled, and open; binding and precision are checked first."""
        binding.check(options.cores, options.threads)
        profile.check(options.profile)
        entries = _precision_entries(options.precision)
        parts = remembered(lambda: _parts_of(source))
        store = cached.store_of(source)
        trouble = ""
        if store is not None:
            try:
                session = _load_cached(store, source, parts, options, entries, keep)
                if parts.cache_info().currsize:
                    parts.cache_clear()
                    gc.collect()  # graphs hold themselves in circles
                machine.trim_heap()
                return session
            except cache.CacheTroubleError as exc:
                trouble = cached.in_memory_because(source, exc)
        session = _open_in_memory(parts(), source.replaced, options, entries)
        if options.group is not None and options.group.weights is not None:
            warnings.warn(
                "a model of a group shares no weights, because it is not in the compile cache: "
                "encrypted models are never stored there, others are unless it is off or unusable",
                RuntimeWarning,
                stacklevel=2,
            )
        if store is not None:  # last: a bad model is an error, not a fault of the cache
            cache.warn(store.place, trouble)
        return session

    def identity(self, source: ModelSource, options: Options) -> Identity:
        """Read or recall what the files hold; the cache is only asked, and need not be usable."""
        store = cache.usable(quietly=True)
        content = digest.read(source.snapshot, None if store is None else store.seen)
        return _identity(source, content, _precision_entries(options.precision))

    def compile(self, source: ModelSource, options: Options, folder: Path) -> None:
        """Translate and optimise; precision is all that counts of the options."""
        entries = _precision_entries(options.precision)
        _compile(folder, _parts_of(source), entries, options.max_seconds)

    def open(self, folder: Path, options: Options, extra: bytes = b"") -> Session:
        """Open an artefact that another process has made, which is all there is to it."""
        binding.check(options.cores, options.threads)
        profile.check(options.profile)
        try:
            session = _open_stored(folder, options, _precision_entries(options.precision))
        except OSError as exc:
            raise EngineError(f"the compiled model cannot be read: {exc.strerror or exc}") from exc
        machine.trim_heap()
        return session


ENGINE = OnnxRuntimeEngine  # what engines/select.py takes


def _parts_of(source: ModelSource) -> Parts:
    # these load onnx, as translating does
    from mindspore_lite.passes.check_nodes import check_nodes
    from mindspore_lite.passes.infer_shapes import refuse_negative_sizes

    model = source.translate()
    check_nodes(model)
    refuse_negative_sizes(model)
    most = folding.settle(model, source.budget)
    names = variable.mark(model, source.variable)
    variable.hold_open(model, names)
    fit(model)
    variable.settle(model, names)
    return replace(take_apart(model, names), most_folded=most)


def fit(model: ir.Model) -> None:
    """Change a model in place until ONNX Runtime computes it, rightly and fast."""
    # these load onnx, as translating does
    from mindspore_lite.engines.prepare.quirks import (
        guard_empty_batches,
        keep_zeros_before_max_pool,
    )
    from mindspore_lite.engines.prepare.widen import widen
    from mindspore_lite.passes.fuse_hard_sigmoid import fuse_hard_sigmoid
    from mindspore_lite.passes.guard_division import guard_division

    fuse_hard_sigmoid(model)
    widen(model, _kernels)
    guard_division(model)
    keep_zeros_before_max_pool(model)
    guard_empty_batches(model)


@remembered
def _kernels() -> Kernels:
    """What ONNX Runtime can compute on the CPU, as it says itself."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    from mindspore_lite.engines.prepare.widen import Kernels

    found = (
        (k.domain, k.op_name, *k.version_range, k.type_constraints)
        for k in get_all_opkernel_def()
        if k.provider in _PROVIDERS
    )
    return Kernels("ONNX Runtime", found)


@remembered
def quantiser() -> Any:
    """ONNX Runtime's tools of quantisation, their messages in the logger mindspore_lite.quantiser.

    They log by functions of the module `logging`, which sets the root logger up to print.
    """
    import logging
    import sys

    import onnxruntime.quantization as tools

    logger = logging.getLogger("mindspore_lite.quantiser")
    logger.addHandler(logging.NullHandler())
    for name, module in list(sys.modules.items()):
        if name.startswith(tools.__name__) and getattr(module, "logging", None) is logging:
            module.logging = logger  # type: ignore[attr-defined]
    return tools


def _load_cached(
    store: cache.Cache,
    source: ModelSource,
    parts: Callable[[], Parts],
    options: Options,
    entries: dict[str, str],
    keep: Keep | None,
) -> OrtSession:
    """The session on a cached artefact, which is built first if need be."""
    content = digest.read(source.snapshot, store.seen)
    identity = _identity(source, content, entries)
    key = digest.key(identity)

    def opened(folder: Path) -> OrtSession | None:
        try:
            session = _open_stored(folder, options, entries, source)
        except (EngineError, OSError):
            return None
        if keep is not None:
            keep(folder, identity)
        return session

    def build() -> Path:
        made = parts()
        try:
            return cached.write(
                store,
                key,
                made.size_bytes,
                lambda folder: _compile(folder, made, entries, options.max_seconds),
            )
        except EngineError as exc:
            # a full disk or a bad model, ONNX Runtime does not say: compiling in memory will
            raise cache.CacheTroubleError(f"compiling failed ({exc})") from exc

    how = cached.builder(source, options, OnnxRuntimeEngine.name, (store, key, content), build)
    return cached.find_or_build(store, key, opened, how)


def _identity(source: ModelSource, content: digest.Content, entries: dict[str, str]) -> Identity:
    makers = digest.code_of("prepare/widen", "prepare/quirks", "prepare/variable")
    engine = f"{OnnxRuntimeEngine.name} {VERSION}"
    return cached.identity(source, content, engine, makers, {"precision": str(entries)})


def _compile(folder: Path, parts: Parts, entries: dict[str, str], limit_s: float) -> None:
    """Write model.onnx, weights.bin and skeleton.onnx."""
    settings = _settings(Options(), entries | folding.entries(parts))
    settings.optimized_model_filepath = str(folder / artefact.MODEL)
    if parts.variable:
        # blocked layouts are left to the opening: laid around the convolutions that may change,
        # they were measured to take a third more time
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    for name, value in {
        "session.optimized_model_external_initializers_file_name": artefact.WEIGHTS,
        "session.optimized_model_external_initializers_min_size_in_bytes": str(LARGE_BYTES),
        "session.save_external_prepacked_constant_initializers": "1",
    }.items():
        settings.add_session_config_entry(name, value)
    model, weights = folder / artefact.MODEL, folder / artefact.WEIGHTS
    changing = {name: parts.weights[name] for name in parts.variable}
    fixed = {name: w for name, w in parts.weights.items() if name not in changing}
    _native(variable.opened(parts.skeleton, parts.variable), fixed, settings, limit_s)
    try:
        align_weights(model, weights)
        if changing:
            variable.store(model, weights, changing)
        (folder / artefact.SKELETON).write_bytes(parts.skeleton)
    except OSError as exc:
        raise cache.CacheTroubleError(f"storing failed ({exc.strerror or exc})") from exc


def _open_stored(
    folder: Path, options: Options, entries: dict[str, str], source: ModelSource | None = None
) -> OrtSession:
    """Open an artefact; without a source it has no weights that may change."""
    skeleton = (folder / artefact.SKELETON).read_bytes()
    entries = entries | folding.unfolded(skeleton)
    if source is not None and source.variable:
        stored = _Stored(held.Held(folder), options, entries)
        native = stored(source.replaced)
        metadata = native.session.get_modelmeta().custom_metadata_map
        variables = variable.from_file(metadata, folder / artefact.WEIGHTS)
        return _Opener(stored, skeleton, options, variables).session(native)
    native = _by_path(folder, {}, options, entries, optimised=True)
    return OrtSession(native, skeleton, options)


@dataclass(frozen=True)
class _Opener:
    """What another session of a model with variable weights is opened from."""

    native: Callable[[Mapping[str, np.ndarray]], Native]
    skeleton: bytes
    options: Options
    variables: tuple[Variable, ...]

    def __call__(self, replaced: Mapping[str, np.ndarray]) -> OrtSession:
        return self.session(self.native(replaced))

    def session(self, native: Native) -> OrtSession:
        """The session around a native one."""
        return OrtSession(native, self.skeleton, self.options, self.variables, self)


@dataclass(frozen=True)
class _Stored:
    """Opens an artefact with other weights, also after its folder was removed."""

    held: held.Held
    options: Options
    entries: dict[str, str]

    def __call__(self, replaced: Mapping[str, np.ndarray]) -> Native:
        if self.held.is_there():
            try:
                native = _by_path(self.held.folder, replaced, self.options, self.entries)
            except (EngineError, OSError):
                if self.held.is_there():
                    raise
            else:
                if self.held.is_there():  # all the time: what was removed never comes back
                    return native
        graph, weights = self.held.apart
        return _opened(graph, {**weights, **replaced}, self.options, self.entries, None)


def _by_path(
    folder: Path,
    replaced: Mapping[str, np.ndarray],
    options: Options,
    entries: dict[str, str],
    *,
    optimised: bool = False,
) -> Native:
    """Open the artefact in a folder; optimised: as a whole, when it was stored."""

    def load(model: str | bytes, more: dict[str, str]) -> Native:
        return _opened(model, replaced, options, entries | more, None, optimised=optimised)

    if options.group is not None and options.group.weights is not None:
        return options.group.weights.opened(folder, load)
    return load(str(folder / artefact.MODEL), {})


def _open_in_memory(
    parts: Parts, replaced: Mapping[str, np.ndarray], options: Options, entries: dict[str, str]
) -> OrtSession:
    """Compile a model that is stored nowhere."""
    open_native = partial(_native_in_memory, parts, options, entries | folding.entries(parts))
    native = open_native(replaced)
    if not parts.variable:
        return OrtSession(native, parts.skeleton, options)
    metadata = native.session.get_modelmeta().custom_metadata_map
    variables = variable.from_memory(metadata, parts.weights)
    return _Opener(open_native, parts.skeleton, options, variables).session(native)


def _native_in_memory(
    parts: Parts, options: Options, entries: dict[str, str], replaced: Mapping[str, np.ndarray]
) -> Native:
    weights = {**parts.weights, **replaced}
    try:
        return _opened(parts.skeleton, weights, options, entries, options.max_seconds)
    except EngineError as exc:
        if not parts.variable:
            raise
        raise EngineError(
            f"{exc}; if a weight that may change decides a size, as the shape of a Reshape does, "
            "leave it out of the list: such a weight cannot change"
        ) from exc.__cause__


def _opened(
    model: str | bytes,
    weights: Mapping[str, np.ndarray],
    options: Options,
    entries: dict[str, str],
    limit_s: float | None,
    *,
    optimised: bool = False,
) -> Native:
    """Open a model; one from the cache was compiled within its time, and has no limit here.

    On a thread of its own the C library would take memory from another arena, and keep 16 MiB.
    """
    lease = _workspace.lease() if options.group is not None and options.group.workspace else None
    settings = _settings(options, entries | ENTRIES if lease is not None else entries)
    if optimised:
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    with binding.bound(options.cores):  # threads that get no core of their own inherit these
        native = _native(model, weights, settings, limit_s)
    return native._replace(lease=lease)


def _register_allocator() -> None:
    """Put a fresh allocator of scratch memory into the environment."""
    kind, memory = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, ort.OrtMemType.DEFAULT
    # it grows by what a run needs, not by the next power of two
    growth = ort.OrtArenaCfg({"max_mem": 0, "arena_extend_strategy": 1})
    ort.create_and_register_allocator(ort.OrtMemoryInfo("Cpu", kind, 0, memory), growth)


_workspace = Workspace(_register_allocator)


def _settings(options: Options, entries: dict[str, str]) -> Any:
    settings = ort.SessionOptions()
    # else bytes that look like its own format are taken for that, and were checked as ONNX
    settings.add_session_config_entry("session.load_model_format", "ONNX")
    settings.log_severity_level = _FATAL
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = options.inter_op_threads
    if options.inter_op_threads > 1:
        settings.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    if options.cores and options.threads > 1:
        # the caller is the first thread; ONNX Runtime counts processors from 1
        affinities = ";".join(str(core + 1) for core in options.cores[1 : options.threads])
        settings.add_session_config_entry("session.intra_op_thread_affinities", affinities)
    for name, value in entries.items():
        settings.add_session_config_entry(name, value)
    if options.profile:
        profile.switch_on(settings, options.profile)
    return settings


def _native(
    model: str | bytes, weights: Mapping[str, np.ndarray], settings: Any, limit_s: float | None
) -> Native:
    values = tuple(_ort_value(array) for array in weights.values())
    try:
        if values:
            settings.add_external_initializers(list(weights), list(values))
        load = partial(ort.InferenceSession, model, settings, providers=_PROVIDERS)
        # a thread that is made here sits on the cores of this one
        what = "loading the model in ONNX Runtime"
        session = load() if limit_s is None else time_limit.within(limit_s, what, load)
    except LiteError:
        raise
    except Exception as exc:
        text = f"ONNX Runtime could not load the model: {readable(exc)}"
        raise engine_failure(text, exc) from exc
    session.disable_fallback()  # it would print, and try the same provider again
    # `run` of the session checks what we checked, and takes 1 us longer than the one it calls
    return Native(None, values, session, getattr(session, "_sess", session).run)


def _ort_value(array: np.ndarray) -> Any:
    """The array as ONNX Runtime sees it, in the same memory, which the result keeps alive."""
    if array.dtype.name == "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), 16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def _precision_entries(precision: str) -> dict[str, str]:
    """The session settings of a precision; part of the artefact's key: they change packing."""
    if precision not in ("enforce_fp32", "preferred_fp16"):
        raise ValueError(f"precision is {precision!r}, wanted 'enforce_fp32' or 'preferred_fp16'")
    entries = {"session.x64quantprecision": "1"} if _int8_sums_overflow() else {}
    if precision == "preferred_fp16" and platform.machine() in ("aarch64", "arm64"):
        entries["mlas.enable_gemm_fastmath_arm64_bfloat16"] = "1"
    return entries


def _int8_sums_overflow() -> bool:
    """Whether products of int8 are added in 16 bits, where sums overflow: x86 without VNNI.

    There, weights must become uint8 to be right, at half the speed. ONNX Runtime would do that with
    VNNI as well, and does not open again what it then stores.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    return _SUMS_IN_32_BITS.isdisjoint(digest.cpu_features().split())
