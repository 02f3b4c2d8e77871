"""A service is one running model, wherever it runs: the protocol that all faces use.

    SingleService   one session; every caller runs it on its own thread (Model)
    PooledService   workers behind a queue (ModelParallelRunner)
    RemoteService   a model of a worker process (mslite.connect; remote/service.py)
    SplitService    one process per device, a batch over all (MultiDeviceRunner; remote/devices/)

A face turns its callers' arguments into a Call and errors into its callers' words. It decides
nothing, and touches no private member of a service.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from mindspore_lite.core.paths import nowhere
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.serving.call import Call
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.text import spec_text
from mindspore_lite.tensor import Tensor

INFO_KEYS = ("current_pid", "weights_version", "shareable_weight_mem_handle", "spec")


Inputs = Sequence[Tensor | np.ndarray] | Mapping[str, Tensor | np.ndarray]
Ended = Callable[[list[Any] | BaseException], None]


class Described(Protocol):
    """What is known of a model that runs in this program, on however many processes."""

    spec: Spec

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""

    @property
    def weights_handle(self) -> str:
        """By which other processes use the weights; "" where they are not shared."""


class Service(Protocol):
    """One running model. Everything may be called from many threads at once."""

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What it takes."""

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What it gives."""

    def arrays(self, inputs: Inputs) -> list[np.ndarray]:
        """What a user gave, in order and checked, as a Call carries it."""

    def run(self, call: Call) -> list[Any]:
        """Compute the outputs of one call, whose inputs may be any arrays that fit the model.

        Raises:
            concurrent.futures.CancelledError: It was cancelled by what `call.known` was given.
            LiteError: It failed, was refused, or had no answer in time.
        """

    def submit(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Begin a call with inputs of arrays() and the time it may take; returns what cancels it.

        That returns True to one caller, if the call had not ended. Otherwise `ended` is called
        once, on another thread, with the outputs or the error.

        Raises:
            LiteError: The call was not taken.
        """

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, all or none; no groups restore those of the file."""

    def probe(self, timeout_s: float) -> bool:
        """Whether it takes calls, as found out now, within a time."""

    def statistics(self) -> Any:
        """What was done so far, as a record; None where nothing is counted."""

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken within a time, None being as long as it takes; release all."""


def existing(path: str) -> str:
    """The path of a model file that is there."""
    if not os.path.exists(path):
        raise ModelFileError(f"build_from_file failed, model_path does not exist: {nowhere(path)}")
    return path


def warn_unbuilt(asked: str, closed: bool) -> None:
    """Say that a model has no inputs or outputs yet; the original only logs it."""
    why = "was closed" if closed else "is not built; call build_from_file() first"
    warnings.warn(f"{asked}() is empty: the model {why}", UserWarning, stacklevel=3)


def unnamed(spec: Spec) -> Spec:
    """Refuse a name where it would have no effect: only a worker's models are shared by one."""
    if spec.name or spec.version:
        raise EngineError(
            f"[service] name is {spec.name!r}, but only models of a worker are shared by name; use "
            "mslite.connect(), or leave the section out"
        )
    return spec


def fact(service: Described | None, key: str, more: Sequence[str] = ()) -> str:
    """What get_model_info() says of a service, "" before there is one.

    `more` are attributes of it that are texts.

    Raises:
        ValueError: There is no such key.
    """
    known = (*INFO_KEYS, *more)
    if key not in known:
        raise ValueError(f"there is no model info {key!r}, wanted one of {', '.join(known)}")
    if key == "current_pid":
        return str(os.getpid())
    if service is None:
        return ""
    facts: dict[str, Callable[[], str]] = {
        "weights_version": lambda: str(service.weights_version),
        "shareable_weight_mem_handle": lambda: service.weights_handle,
        "spec": lambda: spec_text(service.spec),
    }
    return facts[key]() if key in facts else str(getattr(service, key))
