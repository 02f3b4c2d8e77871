"""Loads weight files, as training frameworks write them, into Tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.core.files import open_file
from mindspore_lite.core.foreign_files import HEAD_BYTES, recognised
from mindspore_lite.errors import ModelFileError
from mindspore_lite.tensor import Tensor

_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")
_IN_PYTORCH = "safetensors.torch.save_file(torch.load(path, weights_only=True), 'x.safetensors')"
_IN_MINDSPORE = "mindspore.ckpt_to_safetensors(path)"


def load_weights(path: str | os.PathLike[str]) -> list[Tensor]:
    """The tensors of a `.safetensors` or `.npz` file with their names, in the file's order.

    They are what `update_weights` takes, in memory of their own. Pickled files are refused, for
    reading one may run what its author liked.

    Raises:
        TypeError: The path is no path.
        RuntimeError: The file cannot be read, or holds what no Tensor can hold.

    Examples:
        >>> import numpy as np
        >>> import mindspore_lite as mslite
        >>> np.savez("tuned.npz", **{"head.bias": np.zeros(10, np.float32)})
        >>> print(mslite.load_weights("tuned.npz")[0].name)
        head.bias
    """
    file = Path(checks.path("path", path))
    with boundary(f"load_weights failed! {str(file)!r}: "):
        return [_tensor(name, array) for name, array in _read(file)]


def _read(file: Path) -> Iterator[tuple[str, np.ndarray]]:
    suffix = file.suffix.lower()
    if suffix in (".safetensors", ".npz"):
        _check_kind(file, suffix)
    if suffix == ".safetensors":
        from mindspore_lite.weights.safetensors_file import read_safetensors

        return read_safetensors(file)
    if suffix == ".npz":
        from mindspore_lite.weights.npz_file import read_npz

        return read_npz(file)
    if suffix not in _PICKLES:
        raise ModelFileError("it is no file of weights: wanted .safetensors or .npz")
    raise ModelFileError(
        "such a file may be a pickle, and none is ever read: it may run code. Convert it where "
        f"you trust it, in PyTorch by {_IN_PYTORCH}, in MindSpore by {_IN_MINDSPORE}"
    )


def _check_kind(file: Path, suffix: str) -> None:
    """Refuse a page or pointer in the place of a file, and one of the two formats for the other."""
    with open_file(file) as opened:
        found = recognised(opened[:HEAD_BYTES])
    if found is not None and (found.damaged or suffix not in found.what):
        raise ModelFileError(f"it is {found.what}, wanted a {suffix} file; {found.remedy}")


def _tensor(name: str, array: np.ndarray) -> Tensor:
    try:
        tensor = Tensor(array)
    except TypeError as exc:
        more = "; an .npz file does not tell bfloat16, a .safetensors file does"
        raise ModelFileError(
            f"tensor {name!r} is of type {array.dtype}, which no Tensor can hold"
            + (more if array.dtype == "V2" else "")
        ) from exc
    tensor.name = name
    return tensor
