"""The model groups of one client, from the settings of its builds.

    group.name     any text; models of a client that have the same are in one group
    group.share    weight, workspace, or both joined by a comma

A group lasts as long as a model of it does.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping

from mindspore_lite.engines.group import Group, group_sharing

NAME, SHARE = "group.name", "group.share"
_SHARED = ("weight", "workspace")


class Groups:
    """Those of one client, by their names. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: weakref.WeakValueDictionary[tuple[str, bool, bool], Group]
        self._groups = weakref.WeakValueDictionary()

    def group(self, settings: Mapping[str, str]) -> Group | None:
        """The group that a model with these settings is in, if any.

        Raises:
            ValueError: A group needs both settings, and what it shares must be known.
        """
        name, share = settings.get(NAME), settings.get(SHARE)
        if name is None and share is None:
            return None
        said = {word.strip() for word in (share or "").split(",")}
        if not name or not said <= set(_SHARED):
            raise ValueError(
                f"settings {NAME} and {SHARE} are {name!r} and {share!r}, wanted a name, and "
                "weight, workspace or both joined by a comma"
            )
        weights, workspace = (word in said for word in _SHARED)
        with self._lock:
            found = self._groups.get((name, weights, workspace))
            if found is None:
                found = group_sharing(weights, workspace)
                self._groups[name, weights, workspace] = found
            return found


def others(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are not about groups: those of a Context."""
    return {name: value for name, value in settings.items() if name not in (NAME, SHARE)}
