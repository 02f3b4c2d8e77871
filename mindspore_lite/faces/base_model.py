"""What all model classes share: kinds of files, a path, `with`, and a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, NoReturn, Self

from mindspore_lite.core import checks
from mindspore_lite.serving.service import Described, fact


class BaseModel(ABC):
    """Something that is built from a model file, used in one process, and closed."""

    _info_keys: ClassVar[tuple[str, ...]] = ()  # of get_model_info(), beyond those of all

    def __init__(self) -> None:
        self.model_path_ = ""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def get_model_info(self, key: str | None = None) -> str:
        """One fact about the model as text, `""` where there is nothing to say.

        Keys: current_pid, weights_version (how many times update_weights() succeeded),
        shareable_weight_mem_handle, spec (the settings that are not the default's, one
        `name=value` a line); of a Model also user_info (JSON), input_shape, dynamic_dims.

        Raises:
            TypeError: The key is no str.
            ValueError: There is no such key.
        """
        return fact(self._described, checks.string("key", key), self._info_keys)

    @property
    @abstractmethod
    def _described(self) -> Described | None:
        """What is built; None before that."""

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
