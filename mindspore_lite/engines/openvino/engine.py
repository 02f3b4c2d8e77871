"""The second CPU engine: OpenVINO.

What is kept in the cache is what OpenVINO compiled, weights included, to be mapped by a later
start. It packs many of the weights once more when it opens that, for itself: streams of a session
share them, sessions do not. A model whose weights may change is kept as its graph and weights, and
compiled at every start and update; so is one that OpenVINO would not read back as it wrote it.
"""

from __future__ import annotations

import io
import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from mindspore_lite.core import binding
from mindspore_lite.core.boundary import engine_failure
from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines import time_limit
from mindspore_lite.engines.base import Keep, ModelSource, Options
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.cache import load as cached
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.openvino import huge_pages, reading
from mindspore_lite.engines.openvino.faults import can_be_stored
from mindspore_lite.engines.openvino.reading import Ports
from mindspore_lite.engines.openvino.session import FORKED, OpenVinoSession
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.engines.prepare.skeleton import Parts
from mindspore_lite.engines.sandbox import JailedSource
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.weights.records import Identity, Variable

VERSION = str(ov.__version__)
_MAKERS = (
    *(f"prepare/{name}" for name in ("widen", "quirks", "variable")),
    *(f"openvino/{name}" for name in ("engine", "faults", "reading")),
)
_PRECISIONS = {"enforce_fp32": "f32", "preferred_fp16": "f16", "preferred_bf16": "bf16"}


class OpenVinoEngine:
    """Runs models on the CPU with OpenVINO.

    float32 stays float32 unless float16 or bfloat16 is asked for, which CPUs without instructions
    for it compute in float32 all the same. 64 bit integers and floats are computed in 32 bits.
    """

    capabilities = ENGINES["openvino"]
    name = capabilities.name

    def load(
        self, source: ModelSource, options: Options, keep: Keep | None = None
    ) -> OpenVinoSession:
        """Compile, or find compiled, and open; settings are checked first."""
        _check(options)
        store = cached.store_of(source)
        trouble = ""
        if store is not None:
            try:
                return _load_cached(store, source, options, keep)
            except cache.CacheTroubleError as exc:
                trouble = cached.in_memory_because(source, exc)
        session = _in_memory(reading.parts_of(source), source.replaced, options)
        if store is not None:  # last: a bad model is an error, not a fault of the cache
            cache.warn(store.place, trouble)
        return session

    def identity(self, source: ModelSource, options: Options) -> Identity:
        """Read or recall what the files hold; the cache is only asked, and need not be usable."""
        store = cache.usable(quietly=True)
        content = digest.read(source.snapshot, None if store is None else store.seen)
        return _identity(source, content, options)

    def compile(self, source: ModelSource, options: Options, folder: Path) -> None:
        """Translate and compile; precision is all that counts of the options."""
        _write(folder, reading.parts_of(source), options)
        if not (folder / artefact.BLOB).exists():
            raise _not_stored()

    def open(self, folder: Path, options: Options, extra: bytes = b"") -> OpenVinoSession:
        """Open what another process has compiled."""
        _check(options)
        try:
            return _opened(folder, {}, options)
        except OSError as exc:
            raise EngineError(f"the compiled model cannot be read: {exc.strerror or exc}") from exc


ENGINE = OpenVinoEngine  # what engines/select.py takes


@remembered
def _core() -> tuple[Any, int]:
    """OpenVINO itself, and the process that it was first used in."""
    return ov.Core(), os.getpid()


def _check(options: Options) -> None:
    """Refuse what cannot be, before any work is done."""
    binding.check(options.cores, options.threads)
    if options.precision not in _PRECISIONS:
        raise ValueError(f"precision is {options.precision!r}, wanted one of {list(_PRECISIONS)}")
    _check_process()
    if options.group is not None:
        warnings.warn(
            "a model of a group shares neither weights nor scratch memory on the openvino engine; "
            "use engine=onnxruntime, or one model with several workers",
            RuntimeWarning,
            stacklevel=3,
        )


def _check_process() -> None:
    if _core()[1] != os.getpid():
        raise EngineError(f"the model cannot be built here: {FORKED}")


def _not_stored() -> EngineError:
    return EngineError(
        "[build] sandbox is on, but OpenVINO cannot store this model compiled, as with an LSTM, "
        f"and would compile it in this process; {reading.INSTEAD}, or leave [build] sandbox out"
    )


def _settings(options: Options) -> dict[str, Any]:
    return {
        "INFERENCE_PRECISION_HINT": _PRECISIONS[options.precision],
        "NUM_STREAMS": options.streams,  # no more than there are threads
        "INFERENCE_NUM_THREADS": options.streams * options.threads,  # no more than cores
        "ENABLE_HYPER_THREADING": True,  # the number of threads was chosen with care
        "ENABLE_CPU_PINNING": False,  # which would choose cores of its own
    }


def _identity(source: ModelSource, content: digest.Content, options: Options) -> Identity:
    engine, makers = f"{OpenVinoEngine.name} {VERSION}", digest.code_of(*_MAKERS)
    return cached.identity(source, content, engine, makers, {"precision": options.precision})


def _load_cached(
    store: cache.Cache, source: ModelSource, options: Options, keep: Keep | None
) -> OpenVinoSession:
    """The session on a cached artefact, which is built first if need be."""
    content = digest.read(source.snapshot, store.seen)
    identity = _identity(source, content, options)
    key = digest.key(identity)

    def opened(folder: Path) -> OpenVinoSession | None:
        if isinstance(source, JailedSource) and not (folder / artefact.BLOB).exists():
            raise _not_stored()  # built before, without a sandbox
        try:
            session = _opened(folder, source.replaced, options)
        except (EngineError, OSError, ValueError, KeyError):
            return None
        if keep is not None:
            keep(folder, identity)
        return session

    def build() -> Path:
        parts = reading.parts_of(source)
        return cached.write(
            store, key, parts.size_bytes, lambda folder: _write(folder, parts, options)
        )

    how = cached.builder(source, options, OpenVinoEngine.name, (store, key, content), build)
    return cached.find_or_build(store, key, opened, how)


def _write(folder: Path, parts: Parts, options: Options) -> None:
    """Write what _opened reads: a blob, or what a model with changing weights is made of."""
    model = _read(parts.skeleton, parts.weights, options)
    (folder / artefact.SKELETON).write_bytes(parts.skeleton)
    ends = reading.ports(model, parts.skeleton)
    offsets = []
    plain = Options(precision=options.precision, max_seconds=options.max_seconds)
    compiled = None if parts.variable else _compiled(model, plain)
    if compiled is not None and can_be_stored(compiled, parts.skeleton):
        (folder / artefact.BLOB).write_bytes(_exported(compiled).getbuffer())
    else:
        offsets = _write_weights(folder / artefact.WEIGHTS, parts.weights)
    told = {
        "inputs": [_told(info) for info in ends.inputs],
        "outputs": [_told(info) for info in ends.outputs],
        "metadata": ends.metadata,
        "places": ends.places,
        "weights": offsets,
    }
    (folder / artefact.PORTS).write_text(json.dumps(told))


def _exported(compiled: Any) -> io.BytesIO:
    blob = io.BytesIO()
    try:
        compiled.export_model(blob)
    except Exception as exc:
        raise cache.CacheTroubleError(
            f"OpenVINO could not export it ({reading.readable(exc)})"
        ) from exc
    return blob


def _told(info: TensorInfo) -> tuple[str, str, tuple[int, ...]]:
    return info.name, info.dtype.name, info.shape


def _write_weights(path: Path, weights: Mapping[str, np.ndarray]) -> list[Any]:
    """Write weights one behind the other; returns name, type, shape and place of each."""
    rows = []
    with open(path, "wb") as data:
        for name, array in weights.items():
            data.write(bytes(-data.tell() % ALIGNMENT))
            rows.append([name, array.dtype.name, array.shape, data.tell()])
            data.write(array.reshape(-1).view(np.uint8).data)
    return rows


def _opened(folder: Path, replaced: Mapping[str, np.ndarray], options: Options) -> OpenVinoSession:
    """Open an artefact, with other weights in place of those of the file."""
    told = read_json((folder / artefact.PORTS).read_bytes())
    inputs, outputs = (
        [TensorInfo(name, np.dtype(kind), tuple(dims)) for name, kind, dims in told[side]]
        for side in ("inputs", "outputs")
    )
    ends = Ports(inputs, outputs, told["metadata"], told["places"])
    skeleton = (folder / artefact.SKELETON).read_bytes()
    if not (folder / artefact.BLOB).exists():
        first = _mapped_weights(folder / artefact.WEIGHTS, told["weights"])
        return _from_weights(ends, skeleton, first, replaced, options)
    # private pages that OpenVINO may write to, which it never does
    blob = np.memmap(folder / artefact.BLOB, np.uint8, "c")
    try:
        with (
            binding.bound(options.cores),  # threads that are made now inherit these
            huge_pages.for_new_memory(),
        ):
            tensor = ov.Tensor(blob, shared_memory=True)
            compiled = _core()[0].import_model(tensor, "CPU", _settings(options))
    except Exception as exc:
        text = f"OpenVINO could not open the model: {reading.readable(exc)}"
        raise engine_failure(text, exc) from exc
    return OpenVinoSession(compiled, (blob, tensor), ends, skeleton, options)


def _mapped_weights(path: Path, rows: list[Any]) -> dict[str, np.ndarray]:
    data = np.memmap(path, np.uint8, "r") if rows else np.empty(0, np.uint8)
    found = {}
    for name, kind, shape, offset in rows:
        dtype = np.dtype(BY_NAME[kind].numpy)
        size = math.prod(shape) * dtype.itemsize
        found[name] = np.asarray(data[offset : offset + size]).view(dtype).reshape(shape)
    return found


def _in_memory(
    parts: Parts, replaced: Mapping[str, np.ndarray], options: Options
) -> OpenVinoSession:
    """Compile a model that is stored nowhere."""
    model = _read(parts.skeleton, parts.weights, options)
    ends = reading.ports(model, parts.skeleton)
    return _from_weights(ends, parts.skeleton, parts.weights, replaced, options)


def _from_weights(
    ends: Ports,
    skeleton: bytes,
    first: Mapping[str, np.ndarray],
    replaced: Mapping[str, np.ndarray],
    options: Options,
) -> OpenVinoSession:
    variables = variable.from_memory(ends.metadata, first)
    return _Opener(ends, skeleton, first, variables, options)(replaced)


@dataclass(frozen=True)
class _Opener:
    """Compiles a model whose graph and weights are here, with other weights in place of some."""

    ends: Ports
    skeleton: bytes
    first: Mapping[str, np.ndarray]
    variables: tuple[Variable, ...]
    options: Options

    def __call__(self, replaced: Mapping[str, np.ndarray]) -> OpenVinoSession:
        weights = {**self.first, **replaced}
        _check_process()
        with huge_pages.for_new_memory():
            compiled = _compiled(_read(self.skeleton, weights, self.options), self.options)
        opener = self if self.variables else None
        return OpenVinoSession(
            compiled, weights, self.ends, self.skeleton, self.options, self.variables, opener
        )


def _read(skeleton: bytes, weights: Mapping[str, np.ndarray], options: Options) -> Any:
    return time_limit.within(
        options.max_seconds,
        "reading the model in OpenVINO",
        lambda: reading.read(_core()[0], skeleton, weights),
    )


def _compiled(model: Any, options: Options) -> Any:
    try:
        with binding.bound(options.cores):  # threads that are made now inherit these
            return time_limit.within(
                options.max_seconds,
                "compiling the model in OpenVINO",
                lambda: _core()[0].compile_model(model, "CPU", _settings(options)),
            )
    except LiteError:
        raise
    except Exception as exc:
        text = f"OpenVINO could not compile the model: {reading.readable(exc)}; {reading.INSTEAD}"
        raise engine_failure(text, exc) from exc
