"""A native session of ONNX Runtime that many threads may run: arrays go in, arrays come out.

Who owns what: one native session serves all callers, for its `run` may be entered by many threads.
A running call holds its own reference to the session and to the arrays that it may read weights
from; `close` only drops the Session's reference, so memory and threads go when the last run ends.
ONNX Runtime's threads do not survive a fork: the child's copies of its sessions are marked, and
never destroyed, because their destructor would wait for threads that do not exist.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort

from mindspore_lite.core import binding, dtypes
from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Opener, Options, SessionInfo, Stop
from mindspore_lite.engines.onnxruntime import profile
from mindspore_lite.engines.onnxruntime.workspace import Lease
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.engines.sessions.run_failure import run_failure
from mindspore_lite.errors import ClosedError, EngineError, InputError, LiteError, StoppedError
from mindspore_lite.weights.records import Variable

_MOST_TEXT = 4000  # characters of an error that are looked at
_NUMPY_NAMES = {"float": "float32", "double": "float64"}
_PLAIN = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
)


# operators that divide by a size of their inputs: none of them may be 0, for the process would end.
# In ONNX's encoding field 4 of a node, its operator, is 0x22, the length and the name
_FRAGILE = re.compile(
    rb"\x22(?:\x09Attention|\x04STFT|\x12MultiHeadAttention|\x13GroupQueryAttention)"
)


class Native(NamedTuple):
    """A native session, the arrays it may read its weights from, its share of scratch memory."""

    lease: Lease | None
    weights: tuple[Any, ...]
    session: Any
    run: Callable[[list[str], dict[str, np.ndarray], Any], list[np.ndarray]]


class OrtSession:
    """A compiled model that many threads may run at once; see engines/base.py for the contract."""

    def __init__(
        self,
        native: Native,
        skeleton: bytes,
        options: Options,
        variables: tuple[Variable, ...] = (),
        opener: Opener | None = None,
    ) -> None:
        """opener: what opens the model with other weights, if there are variables."""
        self._opener = opener
        metadata = dict(native.session.get_modelmeta().custom_metadata_map)
        inward, outward = (io_types.declared(metadata, s) for s in ("inputs", "outputs"))
        inputs = [_info(arg, "input") for arg in native.session.get_inputs()]
        outputs = [_info(arg, "output") for arg in native.session.get_outputs()]
        self.info = SessionInfo(
            inputs=tuple(io_types.seen(one, inward) for one in inputs),
            outputs=tuple(io_types.seen(one, outward) for one in outputs),
            metadata=metadata,
            variables=variables,
            mapped=not native.weights,
        )
        self._native: Native | None = native
        self._forked = False
        self._skeleton = skeleton
        self._wants_rows = _FRAGILE.search(skeleton) is not None
        self._options = ort.RunOptions()  # else ONNX Runtime makes one for each run: 0.7 us
        self._cores = _callers(options)
        self._profile = options.profile
        self._input_names = [one.name for one in inputs]
        self._output_names = [one.name for one in outputs]
        self._inward = {n: inward[n] for n in self._input_names if n in inward}
        self._outward = {at: outward[n] for at, n in enumerate(self._output_names) if n in outward}
        _SESSIONS.add(self)

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs; they are ours alone, ONNX Runtime never writes to them again."""
        native = self._native
        if native is None:
            raise self._unusable()
        if len(inputs) != len(self._input_names):
            raise InputError(
                f"the model was given {len(inputs)} inputs, wanted {len(self._input_names)}: "
                f"{self._input_names}"
            )
        if self._wants_rows and not all(array.size for array in inputs):
            raise InputError(
                "an input has no elements, and the model has operators that ONNX Runtime cannot "
                "compute then (Attention, STFT); leave such requests out"
            )
        feed = dict(zip(self._input_names, inputs))  # noqa: B905 - counted above
        if self._inward:
            for name, kind in self._inward.items():
                feed[name] = io_types.inward(feed[name], kind)
        options = self._options
        if stop is not None:
            if stop.fired:
                raise StoppedError("the run was told to stop before it began")
            options = stop.handle(ort.RunOptions, _terminate)
        outputs: list[np.ndarray]
        try:
            if self._cores:
                with binding.bound(self._cores):
                    outputs = native.run(self._output_names, feed, options)
            else:
                outputs = native.run(self._output_names, feed, options)
        except LiteError:
            raise
        except Exception as exc:
            if stop is not None and stop.fired:
                raise StoppedError("the run was told to stop") from exc
            text = f"ONNX Runtime could not run the model: {readable(exc)}"
            raise run_failure(text, exc, self.info.inputs, self._skeleton, inputs) from exc
        for found in outputs:
            if found is None:
                raise self._without_value(outputs)
        if self._outward:
            for at, kind in self._outward.items():
                outputs[at] = io_types.outward(outputs[at], kind)
        return outputs

    def skeleton(self) -> bytes:
        """The untouched ONNX graph without its large weights."""
        return self._skeleton

    def opener(self) -> Opener:
        """Opens the artefact, or compiles in memory, with other weights."""
        if self._opener is None:
            raise self._unusable()
        return self._opener

    def close(self) -> None:
        """Drop the native session; runs under way finish undisturbed."""
        native, self._native = self._native, None
        self._opener = None  # which holds files, or weights
        if native is not None and self._profile:
            profile.write(native.session, self._profile)

    def _without_value(self, outputs: Sequence[np.ndarray | None]) -> Exception:
        names = zip(self._output_names, outputs, strict=True)
        empty = [name for name, found in names if found is None]
        return EngineError(
            f"the outputs {empty} were not computed: the model leaves them empty; end it in values "
            "that are always there"
        )

    def _unusable(self) -> Exception:
        if self._forked:
            return EngineError(
                "the session was made before this process was forked, and its threads stayed with "
                "the parent; build the model in the child, or use the spawn start method"
            )
        return ClosedError("the session is closed; build the model again to run it")

    def _leave_to_parent(self) -> None:
        if self._native is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._native))  # never destroyed
            self._native = None
            self._forked = True


def _after_fork() -> None:
    for session in list(_SESSIONS):
        session._leave_to_parent()


_SESSIONS: weakref.WeakSet[OrtSession] = weakref.WeakSet()
after_fork_in_child(_after_fork)


def _terminate(options: Any) -> None:
    options.terminate = True


def readable(exc: BaseException) -> str:
    """An error of ONNX Runtime without its codes, source paths and line breaks."""
    text = str(exc)[:_MOST_TEXT]  # it may hold names of the file, of any length
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"/\S+\.(?:cc|h):\d+ .*?\)(?: const)? ", "", text)
    return " ".join(text.split()) or type(exc).__name__


def _callers(options: Options) -> tuple[int, ...]:
    """The core to which a run binds the thread that calls it."""
    return options.cores[:1] if options.binds_caller else ()


def _info(arg: Any, kind: str) -> TensorInfo:
    match = re.fullmatch(r"tensor\((\w+)\)", arg.type)
    name = _NUMPY_NAMES.get(match[1], match[1]) if match else ""
    if name == "string":
        raise EngineError(dtypes.no_strings(kind, arg.name))
    if name not in _PLAIN and name not in _NUMPY_NAMES.values():
        raise EngineError(
            f"{kind} {arg.name!r} is a {arg.type}, which ONNX Runtime cannot exchange with NumPy; "
            "end the model in tensors of a plain type, such as float32"
        )
    shape = tuple(dim if isinstance(dim, int) else -1 for dim in arg.shape)
    return TensorInfo(arg.name, np.dtype(name), shape)
