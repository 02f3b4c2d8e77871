"""ModelGroup: models of one process that share equal weights, or scratch memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.core.paths import nowhere
from mindspore_lite.engines.group import Group, add_file, group_sharing
from mindspore_lite.errors import EngineError, LiteError, ModelFileError
from mindspore_lite.faces.base_model import BaseModel
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving.build import build
from mindspore_lite.serving.single import SingleService
from mindspore_lite.settings.formats import ModelType
from mindspore_lite.settings.spec import settle


class ModelGroupFlag(Enum):
    """What the models of a group share.

    Examples:
        >>> from mindspore_lite.model_group import ModelGroupFlag
        >>> print(ModelGroupFlag.SHARE_WEIGHT)
        ModelGroupFlag.SHARE_WEIGHT
    """

    SHARE_WEIGHT = 1
    SHARE_WORKSPACE = 2
    SHARE_WEIGHT_WORKSPACE = 3


class Member(BaseModel):
    """A model that can be in a group: what Model is."""

    def __init__(self) -> None:
        super().__init__()
        self._service: SingleService | None = None
        self._group: Group | None = None


class ModelGroup:
    """Models that share memory with each other.

    With shared weights, those that are equal in several models are in memory once; models must be
    kept in the compile cache for that. With shared scratch memory, models that run one after the
    other use the same, so that the largest of them decides; groups share it among themselves too.
    Results are the same to the last bit, with and without a group.

    Models belong to a group when they are built after they were added, or when they are built from
    a file that was added, as long as the ModelGroup exists. They may be closed in any order.

    Examples:
        >>> import mindspore_lite as mslite
        >>> from mindspore_lite.cli.demo import DIGITS_MODEL
        >>> group = mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WEIGHT)
        >>> models = [mslite.Model(), mslite.Model()]
        >>> group.add_model(models)
        >>> for model in models:
        ...     model.build_from_file(str(DIGITS_MODEL), mslite.ModelType.MINDIR)
    """

    def __init__(self, flags: ModelGroupFlag = ModelGroupFlag.SHARE_WORKSPACE) -> None:
        if not isinstance(flags, ModelGroupFlag):
            raise LiteError(
                "Parameter flags should be ModelGroupFlag.SHARE_WORKSPACE or "
                "ModelGroupFlag.SHARE_WEIGHT or ModelGroupFlag.SHARE_WEIGHT_WORKSPACE, "
                f"but got {flags!r}"
            )
        self._flags = flags
        self._group = group_sharing(
            flags is not ModelGroupFlag.SHARE_WORKSPACE, flags is not ModelGroupFlag.SHARE_WEIGHT
        )
        self._paths: list[str] = []
        self._workspace_size = 0

    @property
    def workspace_size(self) -> int:
        """Bytes of scratch memory of the most demanding file; 0 before it was worked out."""
        return self._workspace_size

    def add_model(self, models: Sequence[str | os.PathLike[str]] | Sequence[Member]) -> None:
        """Add models before they are built, or the files that models will be built from.

        Args:
            models: Models, to share weights, or paths, to share scratch memory; either for both. A
                Model can be in one group only. A path may be added before its file exists; the
                group that it was last added to counts.

        Raises:
            TypeError: Not a list or tuple, or its elements are not all paths or all Models.
            RuntimeError: It is empty, does not go with the flags, or a Model is built or in a group
                already; then nothing was added.
        """
        if not isinstance(models, list | tuple):
            raise checks.wrong_type("models", "list/tuple", models)
        if not models:
            raise EngineError("models cannot be empty")
        kind = Member if isinstance(models[0], Member) else (str, os.PathLike)
        for at, model in enumerate(models):
            if not isinstance(model, kind):
                where = f" at index {at}"
                raise checks.wrong_type("models element", "all str or Model", model, where)
        if kind is Member:
            self._add_models(models)
        else:
            self._add_paths([checks.path("models element", path) for path in models])

    def _add_models(self, models: Sequence[Member]) -> None:
        if self._flags is ModelGroupFlag.SHARE_WORKSPACE:
            raise _refused("SHARE_WORKSPACE takes paths of model files, got Models")
        for at, model in enumerate(models):
            if model._service is not None:
                raise _refused(f"the Model at index {at} is built already; add it before")
            if model._group is not None:
                raise _refused(f"the Model at index {at} is in a group already")
        for model in models:
            model._group = self._group

    def _add_paths(self, paths: Sequence[str]) -> None:
        if self._flags is ModelGroupFlag.SHARE_WEIGHT:
            raise _refused("SHARE_WEIGHT takes Models, got paths")
        for path in paths:
            add_file(path, self._group)
        self._paths += (path for path in paths if path not in self._paths)

    def cal_max_size_of_workspace(self, model_type: ModelType, context: Context) -> None:
        """Build every file that was added once, and work out `workspace_size`.

        The scratch memory of one run counts; sizes that a model leaves open count as 1. A following
        build is quick, for the compiled models are in the cache.

        Args:
            model_type: What kind of files they are.
            context: Where and how the models will run.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: No files were added, or one of them cannot be built.
        """
        checks.instance("context", context, Context)
        kind = checks.instance("model_type", model_type, ModelType).name
        with boundary("ModelGroup's cal max size of workspace failed. "):
            if not self._paths:
                raise EngineError("no paths of model files were added; call add_model() first")
            self._workspace_size = max(self._scratch(path, kind, context) for path in self._paths)

    def _scratch(self, path: str, kind: str, context: Context) -> int:
        if not Path(path).exists():
            raise ModelFileError(f"model_path does not exist: {nowhere(path)}")
        from mindspore_lite.passes.scratch import scratch_bytes

        built = build(ModelInput(kind, Path(path)), settle(context), group=self._group)
        try:
            # inputs of any rank have no graph before their first run
            return 0 if built.any_rank else scratch_bytes(built.session.skeleton())
        finally:
            built.session.close()


def _refused(why: str) -> EngineError:
    return EngineError(f"ModelGroup's add model failed. {why}")
