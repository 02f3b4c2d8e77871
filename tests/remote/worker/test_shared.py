"""worker/shared.py: clients that call a model by the same name share it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.models import dense_net, dense_values, written
from support.updates import SIDE, telling_net, variable, versions
from support.workers import HostHere, file_build, host_here

from mindspore_lite.errors import ClosedError, EngineError, InputError, LiteError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build
from mindspore_lite.remote.wire.client import Model
from mindspore_lite.remote.worker.shared import named

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def of_name(build: Build, name: str = "m", **more: str) -> Build:
    return replace(build, config={**build.config, "service": {"name": name, **more}})


@pytest.fixture
def dense(tmp_path: Path) -> Build:
    path = written(tmp_path / "dense.mindir", dense_net(-1))
    return file_build(path, kind=RUNNER, **{"parallel.workers_num": "2"})


def done(model: Model) -> int:
    return int(json.loads(model.statistics())["done"])


def hosted(here: HostHere) -> int:
    return len(here.host._registry.services())


def test_two_clients_have_one_runner(dense: Build) -> None:
    with host_here() as here:
        ours, theirs = (here.session().build(of_name(dense)) for _ in range(2))
        for model in (ours, theirs):
            np.testing.assert_array_equal(model.predict([X])[0], dense_values(X))
        assert done(ours) == done(theirs) == 2
        assert hosted(here) == 1
        alone = here.session().build(dense)
        assert done(alone) == 0
        assert hosted(here) == 1


def test_it_ends_with_the_last_client(dense: Build) -> None:
    with host_here() as here:
        first, second = here.session(), here.session()
        ours, theirs = first.build(of_name(dense)), second.build(of_name(dense))
        ours.close()
        with pytest.raises(ClosedError):
            ours.predict([X])
        np.testing.assert_array_equal(theirs.predict([X])[0], dense_values(X))
        theirs.close()
        assert hosted(here) == 0
        again = first.build(of_name(dense))
        assert done(again) == 0


def test_a_client_that_leaves_takes_only_its_share(dense: Build) -> None:
    with host_here() as here:
        first, second = here.session(), here.session()
        first.build(of_name(dense))
        theirs = second.build(of_name(dense))
        first.close()
        np.testing.assert_array_equal(theirs.predict([X])[0], dense_values(X))
        second.close()
        here.idle()
        assert hosted(here) == 0


def test_what_runs_can_be_joined_without_a_file(dense: Build) -> None:
    join = Build(RUNNER, 0, config={"service": {"name": "m"}})
    with host_here() as here:
        with pytest.raises(ClosedError, match="there is no model 'm'; there are: none"):
            here.session().build(join)
        here.session().build(of_name(dense))
        np.testing.assert_array_equal(here.session().build(join).predict([X])[0], dense_values(X))


def test_versions_stand_beside_each_other(tmp_path: Path, dense: Build) -> None:
    other = replace(dense, path=str(written(tmp_path / "2.mindir", dense_net(-1, 5.0))))
    with host_here() as here:
        one = here.session().build(of_name(dense, version="1"))
        two = here.session().build(of_name(other, version="2"))
        np.testing.assert_array_equal(one.predict([X])[0], dense_values(X))
        np.testing.assert_array_equal(two.predict([X])[0], dense_values(X, 5.0))
        newest = here.session().build(Build(RUNNER, 0, config={"service": {"name": "m"}}))
        np.testing.assert_array_equal(newest.predict([X])[0], dense_values(X, 5.0))


def test_another_file_or_setting_under_the_name_is_an_error(tmp_path: Path, dense: Build) -> None:
    other = replace(dense, path=str(written(tmp_path / "other.mindir", dense_net(-1, 5.0))))
    with host_here() as here:
        session = here.session()
        session.build(of_name(dense))
        with pytest.raises(InputError, match=r"belongs to .*dense\.mindir"):
            session.build(of_name(other))
        wider = replace(dense, settings={**dense.settings, "parallel.workers_num": "3"})
        with pytest.raises(InputError, match=r"workers_num': '2'.*workers_num': '3'"):
            session.build(of_name(wider))


def test_models_in_memory_are_known_by_their_content() -> None:
    build = Build(RUNNER, 0, config={"service": {"name": "m"}})
    one, other = (np.frombuffer(dense_net(-1, factor), np.uint8) for factor in (1.0, 5.0))
    with host_here() as here:
        session = here.session()
        session.build(build, [one])
        session.build(build, [one.copy()])
        with pytest.raises(InputError, match="a model in memory"):
            session.build(build, [other])


def test_new_weights_are_for_all_who_share_it(tmp_path: Path) -> None:
    path = written(tmp_path / "telling.mindir", telling_net(-1))
    build = replace(file_build(path, kind=RUNNER), config=variable(*versions(0)))
    x = np.ones((2, SIDE), np.float32)
    with host_here() as here:
        ours, theirs = (here.session().build(of_name(build)) for _ in range(2))
        before = theirs.predict([x])[0]
        ours.update_weights([list(versions(3).items())])
        assert not np.array_equal(theirs.predict([x])[0], before)
        assert ours.info("weights_version") == theirs.info("weights_version") == "1"


def test_one_client_cannot_resize_what_others_use(dense: Build) -> None:
    with host_here() as here:
        model = here.session().build(of_name(replace(dense, kind=MODEL)))
        with pytest.raises(EngineError, match="model 'm' is shared by its name"):
            model.resize([(4, 3)])


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"nam": "m"}, "has no key 'nam'.*did you mean 'name'"),
        ({"version": "2"}, "there is no name; add one"),
        ({"name": "a\nb"}, "wanted up to 256 printable characters"),
        ({"name": "a" * 257}, "wanted up to 256 printable characters"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused(entries: dict[str, str], words: str) -> None:
    with pytest.raises(LiteError, match=words):
        named(Build(RUNNER, 0, config={"service": entries}))


def test_groups_have_no_names(dense: Build) -> None:
    settings = {"group.name": "g", "group.share": "weight"}
    build = of_name(replace(dense, kind=MODEL, settings={**dense.settings, **settings}))
    with host_here() as here, pytest.raises(ValueError, match="cannot be in a group"):
        here.session().build(build)


def test_a_network_that_keeps_a_state_is_not_shared(case_path: Callable[[str], Path]) -> None:
    build = file_build(case_path("state/counter"), kind=MODEL)
    with host_here() as here:
        session = here.session()
        with pytest.raises(EngineError, match=r"keeps its parameters \['count'\].*by its name"):
            session.build(of_name(build))
        model = session.build(build)
        found = [int(model.predict([np.ones(2, np.float32)])[1]) for _ in range(2)]
        assert found == [6, 7]
