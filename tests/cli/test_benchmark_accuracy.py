"""benchmark_accuracy.py: files of expected outputs, good and bad; figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindspore_lite.cli.benchmark_accuracy import (
    CLIENTS,
    AccuracyError,
    Compared,
    Tolerance,
    compare,
    read_expected,
    report,
)
from mindspore_lite.cli.benchmark_asked import COSINE_OFF, Limits
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import Tensor

USUAL = Tolerance()


def compared(
    want: list[object],
    got: list[object],
    dtype: str = "float32",
    tolerance: Tolerance = USUAL,
) -> Compared:
    """One output `y` beside what is expected."""
    expected = {"y": np.array(want, np.longdouble)}
    output = Tensor(np.array(got, dtype))
    output.name = "y"
    (found,) = compare(expected, [output], tolerance)
    return found


def read(path: Path, text: str) -> dict[str, np.ndarray]:
    path.write_text(text)
    return read_expected(str(path))


def test_a_file_holds_two_lines_for_each_output(tmp_path: Path) -> None:
    text = (
        "a/b:0 2 2 3\n1 2 3 4 5 6\n\nscalar 0\n-1.5e3 \nlong 1 1\n9223372036854775807\nnone 1 0\n"
    )
    found = read(tmp_path / "w", text)
    assert list(found) == ["a/b:0", "scalar", "long", "none"]
    assert found["a/b:0"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found["scalar"] == -1500
    assert int(found["long"][0]) == 2**63 - 1
    assert found["none"].shape == (0,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y\n1", ":1 is 'y', wanted an output as `name rank d0 d1 ...`"),
        ("y 2 3\n1", ":1 is 'y 2 3', wanted"),
        ("y 1 a\n1", ":1 is 'y 1 a', wanted"),
        ("y 1 -1\n1", ":1 is 'y 1 -1', wanted"),
        ("y 1 2\n1 2 3", ":2 holds 3 values, wanted 2 for [2]"),
        ("y 1 2", ":2 holds 0 values, wanted 2"),
        ("y 1 2\n1 a", ":2 holds something that is no number"),
        ("y 0\n1\ny 0\n1", ":3: output 'y' is there twice"),
        ("y 2 99999999999 99999999999\n1", ":2 holds 1 values, wanted 9999999999800000000001"),
    ],
)
def test_a_bad_file_is_told_by_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / "w", text)
    assert f"{tmp_path / 'w'}{words}" in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="it is no UTF-8 text"):
        read_expected(str(tmp_path / "w"))


@pytest.mark.parametrize(
    ("want", "got", "bias"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([1.0, 2.0], [1.000005, 2.0], 0),  # within the tolerance
        ([1.0, 2.0], [1.5, 2.0], 0.25),  # a half of one in two elements
        ([-4.0, 2.0], [-3.0, 2.0], 0.125),
        ([0.0, 2.0], [0.5, 2.0], 0.25),  # of 0, the difference itself
        ([0.0, 2.0], [9e-6, 2.0], 0),  # which is forgiven when tiny
        ([np.inf, 2.0, np.nan], [np.inf, 1.0, np.nan], 0.5),  # as expected, and not counted
    ],
)
def test_the_bias_is_the_mean_over_all_elements(
    want: list[object], got: list[object], bias: float
) -> None:
    assert compared(want, got).bias == pytest.approx(bias, abs=1e-9)


def test_clients_are_held_to_less() -> None:
    assert compared([1.0], [1.000005], "float64", CLIENTS).bias == pytest.approx(5e-6)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "uint8", "bool"])
def test_every_type_is_compared(dtype: str) -> None:
    assert compared([1, 0, 1], [1, 0, 1], dtype).bias == 0
    assert compared([1, 0, 1], [1, 1, 1], dtype).bias == pytest.approx(1 / 3)


def test_great_integers_are_compared_exactly() -> None:
    far = compared([2**62], [2**62 + 2**40], "int64", Tolerance(0, 0))
    assert far.bias == pytest.approx(2.0**-22)
    assert compared([2**62 + 1], [2**62], "int64", Tolerance(0, 0)).bias > 0


@pytest.mark.parametrize(
    ("want", "got", "cosine"),
    [
        ([1, 0], [2, 0], 1),
        ([1, 0], [0, 1], 0),
        ([1, 1], [-1, -1], -1),
        ([0, 0], [0, 0], 1),
        ([0, 0], [1, 0], 0),
    ],
)
def test_the_cosine(want: list[object], got: list[object], cosine: float) -> None:
    assert compared(want, got).cosine == pytest.approx(cosine)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_of_its_own_fail(odd: float) -> None:
    with pytest.raises(AccuracyError, match=r"output 'y' holds .* where 2 is expected, at 1"):
        compared([1, 2], [1, odd])
    with pytest.raises(AccuracyError, match="output 'y' holds 2 where"):
        compared([1, odd], [1, 2])


def test_names_and_shapes_must_be_those_of_the_model() -> None:
    with pytest.raises(AccuracyError, match=r"is for outputs \['z'\], wanted \['y'\]"):
        output = Tensor(np.zeros(1, np.float32))
        output.name = "y"
        compare({"z": np.zeros(1)}, [output], Tolerance())
    assert compared([[[1]], [[2]]], [1, 2]).bias == 0  # 1s at the end do not count
    with pytest.raises(AccuracyError, match=r"has shape \[2\], but benchmarkDataFile has \[1, 2\]"):
        compared([[1, 2]], [1, 2])


def test_the_total_is_the_mean_over_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    both = [Compared("a", 0.01, 1.0, "1"), Compared("b", 0.02, 0.5, "2")]
    report(both, Limits(1.6, COSINE_OFF))
    assert "Mean bias of all nodes/tensors: 1.5%\n" in capsys.readouterr().out
    report(both, Limits(1.6, 0.7))
    out = capsys.readouterr().out
    assert "Mean cosine distance of node/tensor b : 50%\n" in out
    assert "Cosine distance of all nodes/tensors: 0.75\n" in out
    with pytest.raises(
        AccuracyError, match=r"too small: 0\.75; cosineDistanceThreshold wants 0\.8"
    ):
        report(both, Limits(1.6, 0.8))
    with pytest.raises(AccuracyError, match=r"too big: 1\.5%"):
        report(both, Limits(1.4, COSINE_OFF))
