"""Files exported by MindSpore 2.10, through the public API, against MindSpore's own outputs.

tests/data: ops.zip one-op nets, nets/ whole ideas (in-place, calls, inputs and outputs, ...),
models/ small networks, the other archives more one-op nets by family (scripts/fixtures makes them).
The .npz next to a file holds inputs i0, i1, ... and MindSpore's outputs o0, o1, ...
`python scripts/fixtures/unpack.py FAMILY/NAME` extracts a case.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.archives import cases
from support.fixture_files import KEYS, compare_outputs
from support.running import DATA, assert_close, fixture_arrays

import mindspore_lite as mslite

FEW_THREADS = mslite.Context()
FEW_THREADS.cpu.thread_num = 1


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is built once: storing it would only cost time."""
    monkeypatch.setenv("MSLITE_CACHE", "off")


def built(path: Path) -> mslite.Model:
    model = mslite.Model()
    key, mode = KEYS.get(path.stem, (None, "AES-GCM"))
    model.build_from_file(
        str(path), mslite.ModelType.MINDIR, FEW_THREADS, dec_key=key, dec_mode=mode
    )
    return model


@pytest.mark.filterwarnings("ignore:computed with less precision")  # float64 where there is none
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.replace("/", "-"))
def test_a_file_gives_what_mindspore_gave(case: str, case_path: Callable[[str], Path]) -> None:
    path = case_path(case)
    inputs, wanted = fixture_arrays(path.with_suffix(".npz"))
    with built(path) as model:
        outputs = model.predict(list(inputs))
    compare_outputs(path, [output.get_data_to_numpy() for output in outputs], wanted)


def test_every_kind_of_fixture_is_there() -> None:
    kinds = {case.split("_")[0] for case in cases() if case.startswith("nets/")}
    assert {f"nets/{kind}" for kind in ("inplace", "call", "io", "mint", "dyn")} <= kinds
    assert sum(case.startswith("ops/") for case in cases()) == 274


def test_the_demo_model_agrees_with_mindspore_and_knows_its_digits() -> None:
    path = Path(mslite.__file__).parent / "cli/data/digits.mindir"
    with np.load(DATA / "digits_reference.npz") as reference:
        images = reference["images"].astype(np.float32) / 16
        labels, wanted = reference["labels"], reference["probabilities"]
    with built(path) as model:
        model.resize(model.get_inputs(), [list(images.shape)])
        (scores,) = model.predict([images])
    got = scores.get_data_to_numpy()
    assert_close(got, wanted)
    assert (got.argmax(1) == labels).mean() >= 0.97
