"""Writes raw values of a run to the files that MINDSPORE_DUMP_CONFIG asks for.

    {"common_dump_settings": {"dump_mode": 0, "path": "/a", "net_name": "default",
                              "input_output": 0, "kernels": []}}

dump_mode 0 is all, 1 those in kernels; input_output 0 is both, 1 inputs, 2 outputs. Only what goes
into the model and comes out of it can be dumped: operators between may have been fused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import Tensor

_MOST_FOLDERS = 1000
_MOST_BYTES = 1 << 20  # guess: a hundred times what people write
_SETTINGS = "common_dump_settings"


@dataclass(frozen=True)
class Dump:
    """What to dump, and where to."""

    folder: Path
    inputs: bool
    outputs: bool
    names: tuple[str, ...]  # (): all


def read_dump(path: str) -> Dump:
    """What a configuration asks for.

    Raises:
        ValueError: Everything wrong with it, one line each.
    """
    try:
        with open(path, "rb") as file:
            found = read_json(file.read(_MOST_BYTES))[_SETTINGS]
        settings = dict(found)
    except OSError as exc:
        raise ValueError(f"cannot read the dump configuration {path!r}: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ValueError(f"{path!r} is no JSON object with an object {_SETTINGS!r}") from exc
    name, kernels = settings.get("net_name", "default"), settings.get("kernels", [])
    mode, sides = settings.get("dump_mode", 0), settings.get("input_output", 0)
    place = settings.get("path", "")
    checks = {
        f"path is {place!r}, wanted a folder": isinstance(place, str) and place != "",
        f"dump_mode is {mode!r}, wanted 0 or 1": mode in (0, 1),
        f"input_output is {sides!r}, wanted 0, 1 or 2": sides in (0, 1, 2),
        f"net_name is {name!r}, wanted a name without /": isinstance(name, str)
        and name not in ("", ".", "..")
        and "/" not in name,
        f"kernels is {kernels!r}, wanted a list of names": isinstance(kernels, list)
        and all(isinstance(kernel, str) for kernel in kernels),
        "kernels need dump_mode 1, and that needs kernels": bool(kernels) == (mode == 1),
    }
    problems = [f"{path}: {problem}" for problem, is_right in checks.items() if not is_right]
    if problems:
        raise ValueError("\n".join(problems))
    return Dump(Path(place, name), sides != 2, sides != 1, tuple(kernels))


def write_dump(dump: Dump, inputs: Mapping[str, np.ndarray], outputs: Sequence[Tensor]) -> Path:
    """Write what was asked for into a new folder, which is returned.

    Raises:
        InputError: A name is none of the model's, or nothing can be written.
    """
    results = {tensor.name: tensor.get_data_to_numpy() for tensor in outputs}
    sides = [("input", inputs)] * dump.inputs + [("output", results)] * dump.outputs
    known = [name for _, tensors in sides for name in tensors]
    unknown = sorted(set(dump.names) - set(known))
    if unknown:
        raise InputError(f"kernels {unknown} cannot be dumped, only {known}")
    try:
        folder = _new_folder(dump.folder)
        for side, tensors in sides:
            for at, (name, array) in enumerate(tensors.items()):
                if not dump.names or name in dump.names:
                    array.tofile(folder / _file_name(name, side, at, array))
    except OSError as exc:
        raise InputError(f"cannot dump to {str(dump.folder)!r}: {exc.strerror or exc}") from exc
    return folder


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(_MOST_FOLDERS):
        try:
            (parent / str(number)).mkdir()
        except FileExistsError:
            continue
        return parent / str(number)
    raise InputError(f"{str(parent)!r} holds {_MOST_FOLDERS} dumps already; remove some")


def _file_name(name: str, side: str, at: int, array: np.ndarray) -> str:
    """As the original has it; what the dims stand for is not known here."""
    dims = "".join(f"{dim}_" for dim in array.shape)
    kind = array.dtype.name.capitalize()
    return f"{name.replace('/', '.')}_{side}_{at}_shape_{dims}{kind}_DEFAULT.bin"
