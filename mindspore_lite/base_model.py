"""What all model classes have in common: kinds of files, a path, `with`, and a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from types import TracebackType
from typing import NoReturn, Self


class ModelType(Enum):
    """What kind of file a model is in; ONNX is an addition of mslite.

    Examples:
        >>> from mindspore_lite.base_model import ModelType
        >>> print(ModelType.MINDIR)
        ModelType.MINDIR
    """

    MINDIR = 0
    ONNX = 3
    MINDIR_LITE = 4


class BaseModel(ABC):
    """Something that is built from a model file, used in one process, and closed."""

    def __init__(self) -> None:
        self.model_path_ = ""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return f"model_path: {self.model_path_}."

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be pickled; build it in the process that uses it")
