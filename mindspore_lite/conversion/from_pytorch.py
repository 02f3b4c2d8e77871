"""Loads PyTorch models through torch's ONNX exporter.

An exported program (`.pt2`) says itself what its inputs are, and is looked through before torch
loads it. TorchScript and pickled modules (`.pt`, `.pth`) say neither the shapes of their inputs,
which have to be given, nor can anyone say what loading them will do.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore_lite.conversion.from_onnx import load_onnx
from mindspore_lite.conversion.pt2_archive import check_archive
from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.core.extras import pip_install
from mindspore_lite.core.snapshot import sealed_copy
from mindspore_lite.errors import EngineUnavailableError, ModelFileError, UnsupportedOpError
from mindspore_lite.graph.parameters import note_parameters

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch
    from torch.export import ExportedProgram

    Inputs = tuple[torch.Tensor, ...]

_HOW = (
    "export the model where it was made: "
    'torch.export.save(torch.export.export(model.eval(), example_inputs), "model.pt2")'
)
Step = Callable[[str], None]
_MAX_TEXT = 500  # characters of an error of torch that are passed on


def load_pytorch(
    path: Path,
    trust_pickle: bool = False,
    shapes: Mapping[str, Sequence[int]] | None = None,
    step: Step = lambda text: None,
) -> ir.Model:
    """The network of a file; the weights are torch's own tensors, not copied.

    `trust_pickle` lets torch load what may run code: TorchScript, pickled modules, and what
    pt2_archive.py does not know of exported programs. `shapes` are those of the inputs of the
    first two, in their order, all of them float32. `step` is told what is being done.
    """
    with sealed_copy(path) as copy, _naming(path):
        # what is checked is what is loaded, whatever becomes of the file
        return _loaded(Path(f"/proc/self/fd/{copy}"), path.suffix, trust_pickle, shapes or {}, step)


def _loaded(
    path: Path, suffix: str, trust_pickle: bool, shapes: Mapping[str, Sequence[int]], step: Step
) -> ir.Model:
    kind = _kind(path, suffix)
    if kind != "an exported program" and not trust_pickle:
        raise ModelFileError(
            f"it holds {kind}, which may run code that lies in the file when it is loaded; if "
            f"you trust whoever made it, set {name_of('trust_pickle')} and give the shapes of its "
            f"inputs ({name_of('shape')}), else {_HOW}"
        )
    _check_packages()
    step("loading PyTorch")
    with _quiet():
        step(f"reading {kind}")
        if kind == "an exported program":
            if not trust_pickle:
                with _failing("reading the archive", ModelFileError):
                    check_archive(path)
            program = _program(path)
            step("exporting it to ONNX, which PyTorch does")
            return _from_program(program)
        names, inputs = _inputs(kind, shapes)
        if kind == "TorchScript":
            return _from_script(path, names, inputs)
        return _from_pickle(path, names, inputs)


def _kind(path: Path, suffix: str) -> str:
    names: list[str] = []
    with _failing("reading the archive", ModelFileError):  # asking whether it is one may fail, too
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
    if suffix.lower() == ".pt2" or any(name.endswith("/archive_format") for name in names):
        return "an exported program"
    return "TorchScript" if any("/code/" in name for name in names) else "pickled Python"


def _check_packages() -> None:
    for package in ("torch", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise EngineUnavailableError(f"PyTorch models need {package}: {pip_install('pytorch')}")


def _program(path: Path) -> ExportedProgram:
    import torch

    with _failing("torch.export.load", ModelFileError), open(path, "rb") as file:
        program = torch.export.load(file)  # given a name, torch insists on the suffix
    # conditions on the inputs as Python texts of the file: nothing here needs them, none shall run
    program._guards_code = []
    return program


def _from_program(program: ExportedProgram, inputs: Sequence[str] | None = None) -> ir.Model:
    import torch

    with _failing("torch.onnx.export", UnsupportedOpError):
        made = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            input_names=inputs,
            output_names=_output_names(program),
        )
    assert made is not None  # it is None where a file was to be written
    model: ir.Model = made.model
    note_parameters(model)
    for node in model.graph.all_nodes():  # files and lines on the exporter's machine
        node.metadata_props.clear()
    return model


def _output_names(program: ExportedProgram) -> list[str]:
    """The keys where the model returns a dict of tensors, else the names in the program."""
    names = [str(name) for name in program.graph_signature.user_outputs]
    structure = program.call_spec.out_spec
    if structure is not None and structure.type is dict and len(structure.context) == len(names):
        names = [str(key) for key in structure.context]
    unique = len(set(names)) == len(names)
    return names if unique else [f"{name}_{number}" for number, name in enumerate(names)]


def _inputs(kind: str, shapes: Mapping[str, Sequence[int]]) -> tuple[list[str], Inputs]:
    import torch

    if not shapes:
        raise ModelFileError(
            f"it holds {kind}, which does not say what its inputs are; give their shapes, in their "
            f"order ({name_of('shape')}), or {_HOW}"
        )
    return list(shapes), tuple(torch.zeros(list(dims)) for dims in shapes.values())


def _from_script(path: Path, names: list[str], inputs: Inputs) -> ir.Model:
    """TorchScript goes through torch's older exporter, the only one that takes it."""
    import torch

    with _failing("torch.jit.load", ModelFileError):
        module = torch.jit.load(path, map_location="cpu").eval()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        with _failing("torch.onnx.export", UnsupportedOpError):
            torch.onnx.export(module, inputs, file, dynamo=False, input_names=names)
        if len(list(file.parent.iterdir())) > 1:  # the other files would not outlive the folder
            raise ModelFileError(f"its weights exceed the 2 GB of one file; {_HOW}")
        return load_onnx(file)


def _from_pickle(path: Path, names: list[str], inputs: Inputs) -> ir.Model:
    import torch

    with _failing("torch.load", ModelFileError):
        module: Any = torch.load(path, map_location="cpu", weights_only=False)
    if not isinstance(module, torch.nn.Module):
        raise ModelFileError(
            f"it holds a {type(module).__name__}, wanted a torch.nn.Module: weights alone are no "
            f"network; {_HOW}"
        )
    with _failing("torch.export.export", UnsupportedOpError):
        program = torch.export.export(module.eval(), inputs)
    return _from_program(program, names)


@contextmanager
def _failing(what: str, error: type[ModelFileError | UnsupportedOpError]) -> Iterator[None]:
    """Whatever torch raises, and it raises many kinds, becomes an error of ours."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as exc:
        cause: BaseException = exc
        while cause.__cause__ is not None:  # what torch wraps around it is advice to developers
            cause = cause.__cause__
        text = " ".join(str(cause).split())[:_MAX_TEXT]
        raise error(f"{what} failed: {type(cause).__name__}: {text}") from exc


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except (ModelFileError, UnsupportedOpError) as exc:
        raise exc.prefixed(f"{str(path)!r} cannot be loaded as PYTORCH: ") from exc.__cause__


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch warns its own developers of, and prints of a failed export."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import torch  # noqa: F401  sets the levels of its loggers when it is imported

        loggers = [logging.getLogger(name) for name in ("torch", "torch.onnx", "torch.export")]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
