"""remote/worker/groups.py: models of one client that share weights or scratch memory."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from support.models import dense_net, written
from support.workers import file_build

from mindspore_lite.remote.wire.bodies import MODEL, RUNNER
from mindspore_lite.remote.worker.groups import Groups, others
from mindspore_lite.remote.worker.served_model import Running, Served, built
from mindspore_lite.serving.call import Call

TWO = np.ones((2, 3), np.float32)


def both(name: str, share: str) -> dict[str, str]:
    return {"group.name": name, "group.share": share}


def test_models_of_one_name_are_in_one_group() -> None:
    groups = Groups()
    first = groups.group(both("a", "weight"))
    assert first is not None and first is groups.group(both("a", "weight"))
    assert groups.group(both("b", "weight")) is not first


@pytest.mark.parametrize(
    ("share", "weights", "workspace"),
    [("weight", True, False), ("workspace", False, True), ("workspace, weight", True, True)],
)
def test_a_group_shares_what_is_said(share: str, weights: bool, workspace: bool) -> None:
    group = Groups().group(both("a", share))
    assert group is not None
    assert (group.weights is not None, group.workspace) == (weights, workspace)


def test_a_model_without_a_group_has_none() -> None:
    assert Groups().group({"target": "cpu"}) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"group.name": "a"},
        {"group.share": "weight"},
        both("", "weight"),
        both("a", "heat"),
        both("a", ""),
    ],
)
def test_half_a_group_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"settings group.name and group.share are .*, wanted"):
        Groups().group(settings)


def test_a_group_goes_with_the_last_of_its_models() -> None:
    groups = Groups()
    first = groups.group(both("a", "weight"))
    number = len(groups._groups)
    del first
    gc.collect()
    assert (number, len(groups._groups)) == (1, 0)


def test_settings_of_a_context_are_left_when_those_of_groups_are_taken() -> None:
    assert others({"target": "cpu", **both("a", "weight")}) == {"target": "cpu"}


def test_a_hosted_model_is_in_its_group_and_runs(tmp_path: Path) -> None:
    path = written(tmp_path / "dense.mindir", dense_net())
    build = file_build(path, 0, MODEL, **both("a", "weight"))
    group = Groups().group(build.settings)
    alone, grouped = built(file_build(path, 0, MODEL), []), built(build, [], group)
    assert isinstance(grouped, Served)
    assert grouped._service.built.options.group is group
    (wanted,), (got,) = (hosted.predict(Call([TWO]), Running()) for hosted in (alone, grouped))
    assert got.tobytes() == wanted.tobytes()


def test_a_runner_cannot_be_in_a_group(tmp_path: Path) -> None:
    path = written(tmp_path / "dense.mindir", dense_net())
    build = file_build(path, 0, RUNNER, **both("a", "weight"))
    with pytest.raises(ValueError, match="a ModelParallelRunner cannot be in a group"):
        built(build, [], Groups().group(build.settings))
