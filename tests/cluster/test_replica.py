from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.cluster.replica import Answer, Place, Replica
from mindspore_lite.errors import LiteError
from mindspore_lite.server.errors import RequestError

IMAGE = np.zeros((1, 1, 8, 8), np.float32)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    for version in ("1", "2"):
        (tmp_path / "digits" / version).mkdir(parents=True)
        shutil.copy(DIGITS_MODEL, tmp_path / "digits" / version / "model.mindir")
    (tmp_path / "digits" / "3").mkdir()
    (tmp_path / "digits" / "3" / "model.mindir").write_bytes(b"no model")
    found = Replica(Place((("", str(tmp_path)),), {"parallel.workers_num": "1"}), "digits")
    found.switch({"version": "1"})
    yield found
    found.close()


def infer(replica: Replica, version: str = "") -> Answer | Exception:
    return asyncio.run(replica.infer([IMAGE], version))


def test_a_request_is_answered_with_the_version_that_computed_it(replica: Replica) -> None:
    found = infer(replica)
    assert isinstance(found, Answer)
    assert found.version == "1"
    assert found.outputs[0].shape == (1, 10)


def test_a_switch_goes_forth_and_back(replica: Replica) -> None:
    for version in ("2", "1"):
        asyncio.run(replica.reconfigure({"version": version, "weights": ""}))
        assert replica.describe().version == version
        found = infer(replica)
        assert isinstance(found, Answer)
        assert found.version == version


@pytest.mark.parametrize(
    "config",
    [{"version": "3"}, {"version": "9"}, {"version": "2", "weights": "missing.safetensors"}],
)
def test_a_switch_that_fails_changes_nothing(replica: Replica, config: dict[str, str]) -> None:
    with pytest.raises((LiteError, OSError)):
        replica.switch(config)
    found = infer(replica)
    assert isinstance(found, Answer)
    assert found.version == "1"


def test_a_misspelt_key_is_refused(replica: Replica) -> None:
    with pytest.raises(ValueError, match=r"version, weights; got \['vresion'\]"):
        replica.switch({"vresion": "2"})


def test_another_version_is_not_answered_for(replica: Replica) -> None:
    found = infer(replica, "2")
    assert isinstance(found, RequestError)
    assert "unknown model 'digits' version '2'" in str(found)


def test_wrong_inputs_are_an_error_for_their_caller(replica: Replica) -> None:
    with pytest.raises(LiteError):
        asyncio.run(replica.predict([np.zeros((1, 2), np.float32)]))


def test_health_is_a_run_of_the_model(replica: Replica) -> None:
    asyncio.run(replica.check_health())
    replica.close()
    with pytest.raises(LiteError):
        asyncio.run(replica.check_health())
