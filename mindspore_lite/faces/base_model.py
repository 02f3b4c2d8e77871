"""What all model classes have in common: kinds of files, a path, `with`, and a text."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from enum import Enum
from types import TracebackType
from typing import ClassVar, NoReturn, Self

from mindspore_lite.core import checks


class ModelType(Enum):
    """What kind of file a model is in; ONNX is an addition of mslite.

    Examples:
        >>> from mindspore_lite.faces.base_model import ModelType
        >>> print(ModelType.MINDIR)
        ModelType.MINDIR
    """

    MINDIR = 0
    ONNX = 3
    MINDIR_LITE = 4


class BaseModel(ABC):
    """Something that is built from a model file, used in one process, and closed."""

    _info_keys: ClassVar[tuple[str, ...]] = (
        "current_pid",
        "weights_version",
        "shareable_weight_mem_handle",
        "spec",
    )

    def __init__(self) -> None:
        self.model_path_ = ""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def get_model_info(self, key: str | None = None) -> str:
        """One fact about the model as text, `""` where there is nothing to tell.

        Keys: current_pid, weights_version (how many times update_weights() succeeded),
        shareable_weight_mem_handle, spec (the settings that are not the default's, one
        `name=value` a line); of a Model also user_info (JSON), input_shape, dynamic_dims.

        Raises:
            TypeError: The key is no str.
            ValueError: There is no such key.
        """
        wanted = checks.string("key", key)
        if wanted not in self._info_keys:
            raise ValueError(
                f"there is no model info {key!r}, wanted one of {', '.join(self._info_keys)}"
            )
        return str(os.getpid()) if wanted == "current_pid" else self._info(wanted)

    @abstractmethod
    def _info(self, key: str) -> str:
        """What get_model_info() tells, but for what it knows itself."""

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
