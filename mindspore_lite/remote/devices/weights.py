"""One state of a model's weights, and the updates that a worker needs to reach it.

A worker that starts again begins with the weights of the file, so whatever was changed since is
kept here; but of a weight that was changed twice, only what came last.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mindspore_lite.remote.wire.bodies import Group as Group


class Weights:
    """One state of the weights; its users are counted under the dispatcher's lock."""

    def __init__(self, version: int = 0, groups: Sequence[Group] = ()) -> None:
        self.version = version
        self.groups = groups  # to be applied to the file's weights, one after the other
        self.users = 0  # requests under way that began with it

    def after(self, groups: Sequence[Group]) -> Weights:
        """The state that an update leads to; no groups restore the weights of the file.

        The update's own groups are the last ones there, as they are: the model judges them.
        """
        before = _still_needed(self.groups, groups) if groups else []
        return Weights(self.version + 1, [*before, *groups])


def _still_needed(groups: Sequence[Group], later: Sequence[Group]) -> list[Group]:
    """What of some groups is not given again by one of them, or later.

    The model knows which names mean one weight, we do not: what is given by several names is kept
    once for each. Unnamed tensors count by their places in a group, which therefore stays whole.
    """
    given: set[Hashable] = set()
    for group in later:
        given.update(_keys(group))
    kept: list[Group] = []
    for group in reversed(groups):
        keys = _keys(group)
        left = [pair for key, pair in zip(keys, group, strict=True) if key not in given]
        if left:
            is_named = all(name for name, _ in group)
            kept.append(left if is_named else group)
        given.update(keys)
    return kept[::-1]


def _keys(group: Group) -> list[Hashable]:
    """What identifies the weights of a group: their names, or places."""
    return [name or place for place, (name, _) in enumerate(group)]
