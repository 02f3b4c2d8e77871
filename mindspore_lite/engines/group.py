"""What the models of a group share, and which group a model file belongs to."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindspore_lite.engines.onnxruntime.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class Group:
    """What the sessions of a group share."""

    weights: SharedWeights | None = None
    workspace: bool = False


def group_sharing(weights: bool, workspace: bool) -> Group:
    """A new group, whose sessions share equal weights, scratch memory, or both."""
    from mindspore_lite.engines.onnxruntime.shared_weights import SharedWeights  # for few programs

    return Group(SharedWeights() if weights else None, workspace)


_GROUPS: weakref.WeakValueDictionary[str, Group] = weakref.WeakValueDictionary()


def add_file(path: str, group: Group) -> None:
    """Let models that are built from this file be of the group, as long as it exists."""
    _GROUPS[os.path.realpath(path)] = group


def group_of(path: str) -> Group | None:
    """The group that the file was last added to."""
    return _GROUPS.get(os.path.realpath(path)) if _GROUPS else None
