"""What the runners have in common: one built model, many callers who bring their own Tensors."""

from __future__ import annotations

import os
from typing import Generic, Protocol, TypeVar

from mindspore_lite import checks, feeds
from mindspore_lite.base_model import BaseModel
from mindspore_lite.context import Context
from mindspore_lite.engines.base import TensorInfo
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.tensor import Tensor, TensorMeta


class Loaded(Protocol):
    """What a built runner holds knows at least the model's ends."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


L = TypeVar("L", bound=Loaded)


class BaseRunner(BaseModel, Generic[L]):
    """A model that any number of threads run at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: L | None = None
        self._closed = False

    def get_inputs(self) -> list[Tensor]:
        """The model's inputs in order, to be filled and passed to predict(); [] before the build.

        Every call returns new Tensors, so each caller has its own.
        """
        if self._loaded is None:
            return []
        return [Tensor._unfilled(i.name, i.shape, i.dtype) for i in self._loaded.inputs]

    def get_outputs(self) -> tuple[TensorMeta, ...]:
        """What is known of the outputs before a run; a dim known only afterwards is -1."""
        return () if self._loaded is None else feeds.metas(self._loaded.outputs)

    @property
    def _building(self) -> str:
        """What stands before the reason why a build failed."""
        return f"{type(self).__name__}'s build from file failed! Error is "

    def _checked(self, model_path: str, context: Context | None) -> Context:
        """The context of a build whose arguments are in order."""
        checks.string("model_path", model_path)
        if not os.path.exists(model_path):
            raise ModelFileError(
                f"build_from_file failed, model_path does not exist: {model_path!r}"
            )
        context = Context() if context is None else checks.instance("context", context, Context)
        if self._loaded is not None and not self._closed:
            raise EngineError(
                f"{self._building}this runner is built from {self.model_path_!r} already; "
                "make another one, or close() this one first"
            )
        return context

    def _usable(self, prefix: str) -> L:
        if self._loaded is None:
            raise EngineError(f"{prefix}the runner is not built; call build_from_file() first")
        return self._loaded
