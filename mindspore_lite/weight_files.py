"""Loads weight files, as training frameworks write them, into Tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.core.files import open_file
from mindspore_lite.core.foreign_files import HEAD_BYTES, recognised
from mindspore_lite.errors import LiteError, ModelFileError
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
    with boundary("load_weights failed! "), _named(file):
        return [tensor_of(name, array) for name, array in _read(file)]


def load_lora(
    path: str | os.PathLike[str], scale: float = 1.0, part: str | None = None
) -> list[Tensor]:
    """The changes of weights that a LoRA file stands for, as `update_weights` takes them.

    The two factors of each module are multiplied in float32, with alpha / rank and with `scale`.
    The Tensors are named `MODULE.lora_delta.weight`, which says that they are added to the weights
    of the model file, and lie as PyTorch has them; no setting is needed for either. The file may be
    PEFT's, Kohya's or one of diffusers, with suffix `.safetensors`.

    Args:
        path: The file. `adapter_config.json` next to a file of PEFT's is read as well.
        scale: How much of the LoRA is wanted.
        part: Of a file for a whole pipeline, what to take: `unet`, `text_encoder` or
            `text_encoder_2`; everything if not given.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The scale is not finite, or there is no such part.
        RuntimeError: The file cannot be read, or holds what cannot be merged.

    Examples:
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> import mindspore_lite as mslite
        >>> factors = {"fc.lora_A.weight": np.ones((1, 3)), "fc.lora_B.weight": np.ones((2, 1))}
        >>> save_file(factors, "lora.safetensors")
        >>> print(mslite.load_lora("lora.safetensors", scale=0.5)[0].name)
        fc.lora_delta.weight
    """
    from mindspore_lite.weights.lora import PARTS, products, read_configs
    from mindspore_lite.weights.safetensors_file import open_safetensors

    file = Path(checks.path("path", path))
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.integer | np.floating):
        raise checks.wrong_type("scale", "float", scale)
    try:
        factor = float(scale)
    except OverflowError:  # an integer beyond all floats
        factor = math.inf
    if not math.isfinite(factor):
        raise ValueError(f"scale must be finite, but got {scale!r:.50}")
    if part is not None and part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, but got {part!r}")
    with boundary("load_lora failed! "), _named(file):
        if file.suffix.lower() in _PICKLES:
            raise _pickled()
        _check_kind(file, ".safetensors")
        texts, tensors = open_safetensors(file)
        configs = read_configs(file, texts)
        return [tensor_of(*pair) for pair in products(tensors, factor, part or "", configs)]


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Say in an error which file it is about, unless it does."""
    try:
        yield
    except LiteError as exc:
        if repr(str(file)) in str(exc):
            raise
        raise exc.prefixed(f"{str(file)!r}: ") from exc.__cause__


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
    raise _pickled()


def _pickled() -> ModelFileError:
    return ModelFileError(
        "such a file may be a pickle, and none is ever read: it may run code. Convert it where "
        f"you trust it, in PyTorch by {_IN_PYTORCH}, in MindSpore by {_IN_MINDSPORE}"
    )


def _check_kind(file: Path, suffix: str) -> None:
    """Refuse a page or pointer in the place of a file, and one of the two formats for the other."""
    with open_file(file) as opened:
        found = recognised(opened[:HEAD_BYTES])
    if found is not None and (found.damaged or suffix not in found.what):
        raise ModelFileError(f"it is {found.what}, wanted a {suffix} file; {found.remedy}")


def tensor_of(name: str, array: np.ndarray) -> Tensor:
    """A Tensor of this name.

    Raises:
        ModelFileError: No Tensor can hold the array.
    """
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
