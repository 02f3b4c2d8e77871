"""The cases of vectors.txt in Python; C++ and Java run them through a worker."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.models import DIGITS
from support.settings_vectors import Case, cases

import mindspore_lite as mslite
from mindspore_lite.bench.result import Point
from mindspore_lite.bench.winner import ini_text
from mindspore_lite.errors import LiteError
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.text import from_map, request_of, spec_text

CASES = cases()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*the first counts")
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_configuration_settles_as_its_vector_says(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "some.ini"
    file.write_text(case.ini)
    layers = read_layers("build", str(file), None)
    if case.error:
        with pytest.raises(LiteError) as caught:
            settle(from_map(case.settings), layers)
        assert case.error in str(caught.value)
        return
    spec = settle(from_map(case.settings), layers)
    assert spec_text(spec) == case.spec
    settings, config = request_of(spec)  # as another process gets it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = settle(from_map(settings), read_layers("build", "", config))
    assert again == spec
    assert spec_text(again) == case.spec


def test_a_built_model_and_a_runner_tell_their_settings(tmp_path: Path) -> None:
    file = tmp_path / "some.ini"
    file.write_text(CASES[2].ini)
    context = mslite.Context()
    context.parallel.config_path = str(file)
    with mslite.ModelParallelRunner() as runner:
        assert runner.get_model_info("spec") == ""
        runner.build_from_file(str(DIGITS), context)
        assert runner.get_model_info("spec") == CASES[2].spec
    with mslite.Model() as model:
        with pytest.warns(UserWarning, match="no effect on a Model"):
            model.build_from_file(str(DIGITS), mslite.ModelType.MINDIR, None, str(file))
        assert model.get_model_info("spec") == CASES[2].spec


def test_the_file_of_bench_is_the_one_that_it_prints() -> None:
    (case,) = [case for case in CASES if "bench --tune" in case.name]
    point = Point("onnxruntime", 2, 1, 4, 1, 1.0, 1.0)
    assert ini_text(point) == case.ini
