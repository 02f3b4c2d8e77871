"""One model on one device: makes and keeps a plan for each combination of input shapes.

Shared by all twins of a session: the graph, the weights, and a plan for each combination of shapes
that was met lately. A plan holds no memory but its code; what a stream needs for it is a Replay.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir
import torch

from mindspore_lite.core.dtypes import no_strings
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Options, Variable
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.engines.torch import code_cache, plan_cache, rows
from mindspore_lite.engines.torch import compile as compiler
from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.kernels.lower import Lowered, Target, check_operators, lower
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy, torch_type
from mindspore_lite.engines.torch.precision import half_of, switched
from mindspore_lite.engines.torch.store import Store
from mindspore_lite.errors import EngineError

MAX_PLANS = 16  # shapes besides those of batches; beyond, those unused for longest go; guess

Shapes = tuple[tuple[int, ...], ...]
_warned: set[str] = set()


@dataclass(frozen=True)
class ExecutionPlan:
    """How outputs are computed for inputs of given shapes."""

    shapes: Shapes
    run: compiler.Run  # tensors of the device in, tensors out
    dynamic: str = ""  # why it cannot be captured; empty when it can


class Program:
    """One model on one device; `card` None is the host."""

    def __init__(
        self,
        model: ir.Model,
        skeleton: bytes,
        variables: tuple[Variable, ...],
        options: Options,
        card: Card | None,
        key: str = "",
    ) -> None:
        """key: the name of the model in the cache; "" if it has none."""
        check_operators(model)
        compiler.check_tuning(options.tuning)
        self.name = model.graph.name or "without a name"
        self.options = options
        self.most_plans = MAX_PLANS + len(set(options.batches))  # those are prepared to stay
        self.card = card
        self.skeleton = skeleton
        self.variables = variables
        self.metadata = dict(model.metadata_props)
        self.inner_inputs = _infos(model.graph.inputs, "input")  # as the graph has them
        self.inner_outputs = _infos(model.graph.outputs, "output")
        self.types = [torch_type(int(v.dtype)) for v in model.graph.inputs if v.dtype is not None]
        self.store = Store(card, {one.name: one.first for one in variables})
        self._key = key
        # makes another program of the same graph, with weights of its own; keeps none alive
        self.again = partial(Program, model, skeleton, variables, options, card, key)
        self._independent: bool | None = None  # of its rows; None until that was tried
        self._trying = threading.Lock()
        self._model = model
        names = frozenset(one.name for one in variables)
        device = torch.device("cpu") if card is None else card.device
        self._target = Target(device, half_of(options.precision), names)
        self._plans: OrderedDict[Shapes, ExecutionPlan] = OrderedDict()
        self._lock = threading.Lock()  # of the plans

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._target.device

    def plan(self, shapes: Shapes) -> ExecutionPlan:
        """What computes inputs of these shapes, made first if need be."""
        found = self._found(shapes)
        if found is not None:
            return found
        with compiler.BUILDING:
            found = self._found(shapes)  # another thread may have been faster
            if found is None:
                found = self._made(shapes)
                with self._lock:
                    self._plans[shapes] = found
                    while len(self._plans) > self.most_plans:
                        self._plans.popitem(last=False)
            return found

    def rows_are_independent(self, shapes: Shapes) -> bool:
        """Whether rows may be computed with others; tried on the host, once, and kept."""
        with self._trying:
            if self._independent is None:
                name = code_cache.name_of([self._key, "rows"])
                known = code_cache.read(name) if self._key else None
                self._independent = self._try_rows(shapes) if known is None else known == b"1"
                if self._key and known is None:
                    code_cache.write(name, b"1" if self._independent else b"0")
            return self._independent

    def _try_rows(self, shapes: Shapes) -> bool:
        store = Store(None, {one.name: one.first for one in self.variables})
        alone, three = (self._on_host(store, rows.with_rows(shapes, n)) for n in (1, 3))
        try:
            return rows.independent(self.inner_inputs, shapes, alone, three)
        except Exception:  # noqa: BLE001 - the model takes no made-up input
            return False

    def _on_host(self, store: Store, shapes: Shapes) -> rows.Compute:
        def compute(arrays: rows.Arrays) -> rows.Arrays:
            lowered = lower(self._model, shapes, Target(torch.device("cpu")))
            store.fill(lowered)
            with torch.inference_mode():
                return [to_numpy(one) for one in lowered.module(*map(of_numpy, arrays))]

        return compute

    def _found(self, shapes: Shapes) -> ExecutionPlan | None:
        with self._lock:
            found = self._plans.get(shapes)
            if found is not None:
                self._plans.move_to_end(shapes)
            return found

    def _made(self, shapes: Shapes) -> ExecutionPlan:
        compiler.tell(f"preparing inputs of {', '.join(str(list(dims)) for dims in shapes)}")
        place = self._place(shapes)
        if place is not None:
            with self._on_card():
                run = plan_cache.find(place, self.store, self.device, self._examples(shapes))
            if run is not None:
                return ExecutionPlan(shapes, run)
        lowered = lower(self._model, shapes, self._target)
        self.store.fill(lowered)
        if lowered.dynamic:
            if self.card is not None:
                warn_of_steps(self.name, lowered.dynamic[0])
            return ExecutionPlan(shapes, lowered.module, lowered.dynamic[0])
        if self.card is None or self.card.kind != "cuda":  # torch_npu has no compiler of its own
            return ExecutionPlan(shapes, lowered.module)
        with self._on_card():
            return ExecutionPlan(shapes, self._compiled(lowered, self._examples(shapes), place))

    def _compiled(
        self, lowered: Lowered, examples: Sequence[torch.Tensor], place: plan_cache.Kept | None
    ) -> compiler.Run:
        def measure(run: compiler.Run) -> float:
            assert self.card is not None
            return replay_ms(self.card, lambda: list(run(*examples)))

        def taped(run: compiler.Run) -> bool:
            return place is not None and plan_cache.keep(place, run, examples, lowered)

        options = self.options
        origin = f"{self._key} {options.precision}" if self._key else ""
        return compiler.compiled(lowered.module, examples, options.tuning, measure, origin, taped)

    @contextmanager
    def _on_card(self) -> Iterator[None]:
        """Let torch work on the card, with the switches of this model."""
        assert self.card is not None
        options = self.options
        stream = self.card.current()
        with self.card.using(stream), switched(options.tf32, options.tuning == "full"):
            yield

    def _examples(self, shapes: Shapes) -> list[torch.Tensor]:
        return [
            torch.zeros(dims, dtype=dtype, device=self.device)
            for dims, dtype in zip(shapes, self.types, strict=True)
        ]

    def _place(self, shapes: Shapes) -> plan_cache.Kept | None:
        """Where a compiled plan is kept; None: nowhere."""
        options = self.options
        if not self._key or self.card is None or self.card.kind != "cuda":
            return None
        if options.tuning == "off":
            return None
        parts = (options.precision, options.tuning, options.tf32, shapes, str(self.device))
        name = code_cache.name_of([self._key, "plan", self.card.properties(), repr(parts)])
        tensors = {n: value.const_value for n, value in self._model.graph.initializers.items()}
        arrays = {n: of_numpy(one.numpy()) for n, one in tensors.items() if one is not None}
        return plan_cache.Kept(name, arrays, self._target.variable)


def replay_ms(card: Card, run: Callable[[], Sequence[torch.Tensor]], count: int = 20) -> float:
    """How long a run takes when it is recorded and replayed."""
    stream = card.stream()
    stream.wait_stream(card.current())
    with card.using(stream), torch.no_grad():
        for _ in range(3):
            run()
        stream.synchronize()
        graph, outputs = card.captured(run, stream, card.pool())
        begin, end = card.event(timed=True), card.event(timed=True)
        graph.replay()
        begin.record(stream)
        for _ in range(count):
            graph.replay()
        end.record(stream)
        end.synchronize()
        del outputs
    return float(begin.elapsed_time(end)) / count


def warn_of_steps(name: str, reason: str) -> None:
    """Say once that a model is slower than it could be."""
    text = f"model {name!r} cannot be recorded and replayed, but runs step by step: {reason}"
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _infos(values: Sequence[ir.Value], kind: str) -> tuple[TensorInfo, ...]:
    """What the graph declares of its inputs or outputs."""
    found = []
    for value in values:
        if value.dtype == ir.DataType.STRING:
            raise EngineError(no_strings(kind, str(value.name)))
        if not isinstance(value.type, ir.TensorType):
            raise EngineError(
                f"{kind} {value.name!r} is of type {value.type}, for which torch has no tensors; "
                "end the model in tensors of a plain type, such as float32"
            )
        torch_type(int(value.type.dtype))  # raises where torch has none
        dims = () if value.shape is None else value.shape
        shape = tuple(dim if isinstance(dim, int) else -1 for dim in dims)
        found.append(TensorInfo(str(value.name), np.dtype(value.type.dtype.numpy()), shape))
    return tuple(found)


def seen(infos: Sequence[TensorInfo], kinds: Mapping[str, str]) -> tuple[TensorInfo, ...]:
    """Inputs or outputs as callers see them."""
    return tuple(io_types.seen(info, kinds) for info in infos)
