"""Complex numbers through the public API: in memory they are pairs of floats, as in the graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.mindir_builder import Net, encode

import mindspore_lite as mslite

A = (np.arange(6) + 1j * np.arange(6, 0, -1)).reshape(2, 3).astype(np.complex64)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mslite.Model:
    """x * w, and the real part of it."""
    monkeypatch.setenv("MSLITE_CACHE", "off")
    net = Net()
    product = net.call("Mul", net.input("x", (2, 3), np.complex64), net.weight("w", A[0]))
    path = tmp_path / "net.mindir"
    path.write_bytes(encode(net.model(net.tuple(product, net.call("Real", product)))))
    built = mslite.Model()
    built.build_from_file(str(path), mslite.ModelType.MINDIR, mslite.Context())
    return built


def test_inputs_and_outputs_are_complex(model: mslite.Model) -> None:
    assert model.get_inputs()[0].shape == [2, 3]
    assert [o.shape for o in model.get_outputs()] == [[2, 3], [2, 3]]
    product, real = (o.get_data_to_numpy() for o in model.predict([A]))
    np.testing.assert_allclose(product, A * A[0])
    assert product.dtype == np.complex64
    np.testing.assert_allclose(real, (A * A[0]).real)


def test_shapes_seen_from_outside_have_no_axis_of_parts_after_a_resize(
    model: mslite.Model,
) -> None:
    model.resize(model.get_inputs(), [[4, 3]])
    assert [o.shape for o in model.get_outputs()] == [[4, 3], [4, 3]]
    wide = np.concatenate([A, -A])
    product, _ = model.predict([wide])
    np.testing.assert_allclose(product.get_data_to_numpy(), wide * A[0])


def test_an_array_that_is_not_contiguous_or_not_complex_is_treated_as_any_other(
    model: mslite.Model,
) -> None:
    product, _ = model.predict([np.asfortranarray(A)])
    np.testing.assert_allclose(product.get_data_to_numpy(), A * A[0])
    with pytest.raises(RuntimeError, match="data type not equal"):
        model.predict([A.real.copy()])
