"""weight_files.py: load_weights() makes Tensors of the files of training frameworks."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import mindspore_lite as mslite
from mindspore_lite.errors import ModelFileError

ARRAYS = {
    "encoder.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "encoder.bias": np.arange(3, dtype=np.float16),
}


def saved(path: Path, arrays: dict[str, Any]) -> Path:
    if path.suffix.lower() == ".npz":
        with path.open("wb") as file:
            np.savez(file, **arrays)
    else:
        save_file(arrays, path)
    return path


@pytest.mark.parametrize("name", ["w.npz", "w.safetensors", "W.NPZ", "w.2.SafeTensors"])
@pytest.mark.parametrize("kind", [str, Path])
def test_tensors_have_the_names_and_values_of_the_file(
    tmp_path: Path, name: str, kind: Any
) -> None:
    tensors = mslite.load_weights(kind(saved(tmp_path / name, ARRAYS)))
    assert {tensor.name for tensor in tensors} == ARRAYS.keys()
    for tensor in tensors:
        array = tensor.get_data_to_numpy()
        assert array.dtype == ARRAYS[tensor.name].dtype
        np.testing.assert_array_equal(array, ARRAYS[tensor.name])
        array += 1  # as of any Tensor
    again = {tensor.name: tensor for tensor in mslite.load_weights(tmp_path / name)}
    np.testing.assert_array_equal(again["encoder.bias"].get_data_to_numpy(), ARRAYS["encoder.bias"])


def test_bfloat16_is_read_from_safetensors(tmp_path: Path) -> None:
    path = saved(tmp_path / "w.safetensors", {"w": np.ones(2, ml_dtypes.bfloat16)})
    (tensor,) = mslite.load_weights(path)
    assert tensor.dtype is mslite.DataType.BFLOAT16


def test_a_file_without_tensors_is_an_empty_list(tmp_path: Path) -> None:
    assert mslite.load_weights(saved(tmp_path / "w.safetensors", {})) == []
    assert mslite.load_weights(saved(tmp_path / "w.npz", {})) == []


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones(2, np.complex64), "tensor 'w' is of type complex64, which no Tensor can hold$"),
        (np.array(["a"]), "tensor 'w' is of type <U1"),
        (np.zeros(2, [("x", "f4")]), "tensor 'w' is of type .*'x'"),
        (np.ones(2, ml_dtypes.bfloat16), "does not tell bfloat16, a .safetensors file does"),
        (np.array([{}], object), "holds Python objects, which are pickled"),
    ],
)
def test_what_no_tensor_can_hold_is_refused_by_name(
    tmp_path: Path, array: np.ndarray, words: str
) -> None:
    path = saved(tmp_path / "w.npz", {"w": array})
    with pytest.raises(ModelFileError, match=words) as caught:
        mslite.load_weights(path)
    assert str(caught.value).startswith(f"load_weights failed! {str(path)!r}: ")


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".bin", ".pkl", ".PT"])
def test_pickles_are_refused_with_a_way_out(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(pickle.dumps(ARRAYS))
    with pytest.raises(ModelFileError, match=r"may be a pickle.*Convert it.*save_file.*ckpt_to_s"):
        mslite.load_weights(path)


@pytest.mark.parametrize("name", ["w", "w.npy", "w.onnx", ".npz", "w.safetensors.gz"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match=r"no file of weights: wanted \.safetensors or \.npz"):
        mslite.load_weights(tmp_path / name)


def test_a_pickle_under_another_name_is_refused(tmp_path: Path) -> None:
    for name in ("w.npz", "w.safetensors"):
        (tmp_path / name).write_bytes(pickle.dumps(ARRAYS))
        with pytest.raises(ModelFileError, match=rf"it is a pickle.*wanted a \{name[1:]} file"):
            mslite.load_weights(tmp_path / name)


@pytest.mark.parametrize("name", ["no.npz", "no.safetensors", "a\0b.npz", "a\0b.safetensors"])
def test_a_missing_file_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match=r"^load_weights failed! cannot read '[^']*': [^']*$"):
        mslite.load_weights(tmp_path / name)


@pytest.mark.parametrize("path", [None, 1, b"w.npz", ["w.npz"]])
def test_what_is_no_path_is_a_type_error(path: Any) -> None:
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike, but got"):
        mslite.load_weights(path)


def test_the_example_of_the_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder().find(mslite.load_weights, "load_weights", False, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
