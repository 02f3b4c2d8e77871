"""Files exported by MindSpore 2.10, through the public API, against MindSpore's own outputs.

tests/data: ops/ one-op nets, nets/ whole ideas (in-place, calls, inputs and outputs, ...), models/
small networks, the other folders more one-op nets by family (scripts/fixtures makes them). The .npz
beside a file holds inputs i0, i1, ... and MindSpore's outputs o0, o1, ...
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.fixture_files import FILES, KEYS, compare_outputs
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
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_file_gives_what_mindspore_gave(path: Path) -> None:
    inputs, wanted = fixture_arrays(path.with_suffix(".npz"))
    with built(path) as model:
        outputs = model.predict(list(inputs))
    compare_outputs(path, [output.get_data_to_numpy() for output in outputs], wanted)


def test_every_kind_of_fixture_is_there() -> None:
    kinds = {p.stem.split("_")[0] for p in DATA.glob("nets/*.mindir")}
    assert {"inplace", "call", "io", "mint", "dyn"} <= kinds
    assert len(list(DATA.glob("ops/*.mindir"))) == 274


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
