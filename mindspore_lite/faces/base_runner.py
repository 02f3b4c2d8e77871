"""What the runners share: one built model, many callers with their own Tensors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.errors import ClosedError, EngineError
from mindspore_lite.faces.base_model import BaseModel
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.service import Inputs, Service, existing, warn_unbuilt
from mindspore_lite.settings.formats import ModelType
from mindspore_lite.tensor import Tensor, TensorMeta

S = TypeVar("S", bound=Service)


def checked_context(context: object) -> Context:
    """The context of a build; None is the CPU with automatic settings."""
    if isinstance(context, ModelType):
        raise TypeError(
            f"context must be Context, but got {context}. Only Model takes the kind of a file; a "
            "runner knows it by the name or the first bytes: build_from_file(model_path, context)."
        )
    return Context() if context is None else checks.instance("context", context, Context)


class BaseRunner(BaseModel, Generic[S]):
    """A model that any number of threads run at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: S | None = None
        self._closed = False

    def get_inputs(self) -> list[Tensor]:
        """The model's inputs in order, to be filled and passed to predict(); [] before the build.

        Every call returns new Tensors, so each caller has its own.
        """
        if self._loaded is None:
            warn_unbuilt("get_inputs", self._closed)
            return []
        return [Tensor._unfilled(i.name, i.shape, i.dtype) for i in self._loaded.inputs]

    def get_outputs(self) -> tuple[TensorMeta, ...]:
        """What is known of the outputs before a run; a dim known only afterwards is -1."""
        if self._loaded is None:
            warn_unbuilt("get_outputs", self._closed)
            return ()
        return feeds.metas(self._loaded.outputs)

    @abstractmethod
    def submit(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> Future[list[Tensor]]:
        """Begin a run and return at once."""

    async def predict_async(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> list[Tensor]:
        """predict() for coroutines: the event loop is free while the model computes."""
        import asyncio  # most programs never need it, and it is slow to load

        future = self.submit(inputs, outputs, timeout_s=timeout_s, priority=priority)
        return await asyncio.wrap_future(future)

    def update_weights(self, weights: Sequence[Sequence[Tensor]]) -> None:
        """Change weights that were named in `variable_weights_file` when the model was built.

        All of them change for all workers, or none. Requests under way finish on the weights they
        began with; those that are made after the call use the new ones; none fails, or sees some
        of each. What a Tensor holds is copied.

        Args:
            weights: Lists of Tensors, applied one after the other. A Tensor with a name replaces
                the weight of that name, one without a name that at its place in the file. Weights
                that are not given stay as they are. `[]` restores all weights of the model file.

        Raises:
            TypeError: The argument is no list of lists of Tensors.
            RuntimeError: The runner is not built or closed, a weight is not one of those named, or
                a Tensor has another shape or type than its weight.
        """
        groups = update.checked(weights)
        loaded = self._usable(update.FAILED)
        with boundary(update.FAILED):
            if self._closed:
                raise ClosedError("the runner was closed; build it again to use it")
            loaded.update_weights(groups)

    @property
    def _building(self) -> str:
        """What stands before the reason why a build failed."""
        return f"{type(self).__name__}'s build from file failed! Error is "

    def _checked(self, model_path: str, context: Context | None) -> Context:
        """The context of a build whose arguments are in order."""
        existing(model_path)
        context = checked_context(context)
        if self._loaded is not None and not self._closed:
            raise EngineError(
                f"{self._building}this runner is built from {self.model_path_!r} already; "
                "make another one, or close() this one first"
            )
        return context

    def _usable(self, prefix: str) -> S:
        if self._loaded is None:
            raise EngineError(f"{prefix}the runner is not built; call build_from_file() first")
        return self._loaded
