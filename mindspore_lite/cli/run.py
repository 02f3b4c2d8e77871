"""`mslite run MODEL`: builds a model, runs it once, shows its outputs."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from cyclopts import Parameter

from mindspore_lite.cli.console import fail, say, steps, working
from mindspore_lite.cli.inputs import (
    PICTURES,
    check_files,
    check_names,
    check_writable,
    read_array,
    read_pairs,
    read_picture,
    read_shape,
    with_name,
)
from mindspore_lite.cli.report import show_outputs, show_top
from mindspore_lite.context import Context
from mindspore_lite.core import synthetic
from mindspore_lite.core.capabilities import ENGINES, named
from mindspore_lite.model import Model, ModelType
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.table import AUTO
from mindspore_lite.tensor import DataType, Tensor

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[(*ENGINES, AUTO)]


def run(
    model: Path,
    /,
    *,
    input: Annotated[list[str] | None, Parameter(negative="")] = None,
    shape: Annotated[list[str] | None, Parameter(negative="")] = None,
    target: Literal["cpu", "gpu", "ascend"] = "cpu",
    device: int = 0,
    engine: EngineName | None = None,
    config: Path | None = None,
    threads: int = 0,
    top: int = 0,
    save: Path | None = None,
    sandbox: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run a model once and show its outputs.

    Parameters
    ----------
    model
        A MindIR or ONNX file.
    input
        NAME=FILE for each input that should not be random: .npy, a picture, or .bin with raw
        values. For a model with one input FILE is enough.
    shape
        NAME=1,3,224,224 for each input that should have another shape.
    target
        Where it runs; without Ascend devices, MSLITE_ASCEND=emulate lets the CPU stand in for them.
    device
        The number of the card, where there are several.
    engine
        What computes on the CPU; without it, ONNX Runtime does. auto: what `mslite bench --tune`
        measured to be best for this model on this machine.
    config
        A configuration file, such as one with `precision_mode=preferred_fp16` in `[gpu_context]`.
    threads
        Number of threads on the CPU; 0 decides by the machine.
    top
        Also show the K largest values of each row.
    save
        Write all outputs into this .npz file.
    sandbox
        Compile in a child process that can reach the model's folder and no more.
    """
    context, entries = _context(target, device, threads), _entries(engine, sandbox)
    files, shapes = read_pairs("--input", input, nameless=True), read_pairs("--shape", shape)
    _check_shown(top, save)
    check_files(files)  # before the model is built, which may take long
    with Model() as loaded:
        start = time.perf_counter()
        with _building(model.name, slowly=named(engine or "", target != "cpu").builds_slowly):
            file = str(config or "")
            loaded.build_from_file(str(model), model_type(model), context, file, entries)
        built = time.perf_counter()
        inputs = _filled(loaded, files, shapes)
        ready = time.perf_counter()
        outputs = loaded.predict(inputs)
        done = time.perf_counter()
    say(f"build {(built - start) * 1e3:.1f} ms, run {(done - ready) * 1e3:.1f} ms")
    _show(outputs, top, save)


def _filled(model: Model, files: dict[str, str], shapes: dict[str, str]) -> list[Tensor]:
    inputs = model.get_inputs()
    names = [tensor.name for tensor in inputs]
    files = with_name(names, files)
    check_names(names, {**files, **shapes})
    _resize(model, inputs, {name: read_shape(text) for name, text in shapes.items()}, files)
    for tensor in inputs:
        _fill(tensor, files.get(tensor.name))
    return inputs


def _entries(engine: str | None, sandbox: bool) -> dict[str, dict[str, str]]:
    found = {"common_context": {"engine": engine}} if engine else {}
    return {**found, "build": {"sandbox": "on"}} if sandbox else found


def _check_shown(top: int, save: Path | None) -> None:
    if top < 0:
        fail(f"--top got {top}, wanted how many values to show, or 0", code=2)
    check_writable(save)


def _show(outputs: list[Tensor], top: int, save: Path | None) -> None:
    show_outputs(outputs)
    if top:
        show_top(outputs, top)
    if save is not None:
        _save(save, outputs)
        say(f"saved {len(outputs)} outputs in {save}")


@contextmanager
def _building(name: str, *, slowly: bool) -> Iterator[None]:
    """Progress on a terminal; PyTorch, which may take minutes, says what it compiles."""
    told = _told() if slowly else None
    if told is None:
        with working(f"building {name}"):
            yield
        return
    with steps(f"building {name}") as tell, told(tell):
        yield


def _told() -> Callable[[Callable[[str], None]], AbstractContextManager[None]] | None:
    """What makes PyTorch report; None where it is missing, which the build says in words."""
    try:
        from mindspore_lite.engines.torch.compile import told
    except (ImportError, OSError):
        return None
    return told


def _context(target: str, device: int, threads: int) -> Context:
    context = Context()
    context.target = [target]
    context.cpu.thread_num = threads
    context.gpu.device_id = context.ascend.device_id = device
    return context


def model_type(path: Path) -> ModelType:
    """What the name of a file says about its kind, or its first bytes."""
    return ModelType[model_kind(path)]


def _resize(
    model: Model, inputs: list[Tensor], shapes: dict[str, list[int]], files: dict[str, str]
) -> None:
    """Settle every shape: as asked for, as a given .npy file has it, else 1 for an open dim."""
    wanted = []
    for tensor in inputs:
        dims = shapes.get(tensor.name)
        file = files.get(tensor.name, "")
        is_open = min(tensor.shape, default=0) < 0
        if dims is None and is_open and file.endswith(".npy"):
            dims = list(read_array(file).shape)
        if dims is None and is_open:
            dims = synthetic.closed(tensor.shape)
            say(f"input {tensor.name} is {tensor.shape}; taking {dims}, --shape changes that")
        wanted.append(tensor.shape if dims is None else dims)
    if wanted != [tensor.shape for tensor in inputs]:
        model.resize(inputs, wanted)


def _fill(tensor: Tensor, file: str | None) -> None:
    if file is None:
        like = tensor.get_data_to_numpy()
        tensor.set_data_from_numpy(synthetic.array(like.dtype, like.shape))
        say(f"input {tensor.name} {tensor.shape} is random; --input {tensor.name}=FILE.npy sets it")
    elif file.endswith(".npy"):
        tensor.set_data_from_numpy(read_array(file))
    else:
        dtype = tensor.get_data_to_numpy().dtype
        if not file.lower().endswith(PICTURES):
            tensor.set_data_from_numpy(np.fromfile(file, dtype))
            return
        pixels, how = read_picture(file, dtype, tensor.shape)
        tensor.set_data_from_numpy(pixels)
        say(f"input {tensor.name} is {file} as {how}; for other scaling give a .npy file")


def _save(path: Path, outputs: list[Tensor]) -> None:
    """An .npz file; np.savez would change the path, and cannot store an output called 'file'."""
    with zipfile.ZipFile(path, "w") as archive:
        for output in outputs:
            array = output.get_data_to_numpy()
            if output.dtype is DataType.BFLOAT16:  # which such files cannot hold
                array = array.astype(np.float32)
                say(f"output {output.name} is bfloat16; saved as float32")
            with archive.open(f"{output.name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
