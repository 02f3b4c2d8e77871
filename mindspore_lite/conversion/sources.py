"""Loads model files of every supported framework as onnx-ir models.

Names, types, open dims, opset and metadata of the result are those of the source, and its weights
stay where they are as far as the framework allows. Files are not trusted: what would run code that
lies in a file is refused, unless `trust_pickle` says that its maker is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.core import foreign_files
from mindspore_lite.errors import EngineUnavailableError, ModelFileError, UnsupportedOpError
from mindspore_lite.mindir.decrypt import Key
from mindspore_lite.settings.formats import FORMATS, by_suffix

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.graph.source import ModelInput

_NAMES = {"MINDIR_LITE": "MSLITE"}  # where the converter has another name for a kind of file
SUFFIXES = {_NAMES.get(row.kind, row.kind): row.suffixes for row in FORMATS}
_ANY_NAME = ("MINDIR", "TFLITE")  # the original takes these under any name, too
_REFUSED = {
    "CAFFE": "Caffe models cannot be converted: no maintained converter reads them. Convert the "
    "network to ONNX with a tool of its time (caffe2onnx), or load its weights into PyTorch and "
    "save it with torch.export.save",
    "OM": "an OM file holds machine code compiled for Ascend, no network; convert the model that "
    "it was made of",
    "MSLITE": "an .ms file is made for the runtime of mobile devices; it neither runs here nor can "
    "be converted again; convert the model that it was made of, such as net.onnx or net.pt2",
}


@dataclass(frozen=True)
class Origin:
    """A model file to convert, and what goes with it."""

    framework: str  # a key of SUFFIXES
    path: Path
    weights: Path | None = None  # a second file, of Caffe models alone
    key: Key | None = None  # decrypts MindIR
    trust_pickle: bool = False  # PyTorch files may run the code inside them
    # of inputs, where the file does not say them: PyTorch's .pt and .pth, in the order of the
    # inputs, and MindIR with inputs of any rank; and where a MindIR says others
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    step: Callable[[str], None] = field(default=lambda text: None, compare=False)  # long stages


def framework_of(path: Path) -> str:
    """The framework that a file belongs to, by its suffix.

    Raises:
        ModelFileError: It is of no framework that can be converted; the message says what to do.
    """
    found = by_suffix(path)
    kind = "" if found is None else _NAMES.get(found.kind, found.kind)
    if kind in _LOADERS or kind == "CAFFE":  # which the converter names, to say what to do instead
        return kind
    if kind:
        raise ModelFileError(f"{str(path)!r}: {_REFUSED[kind]}")
    if path.is_file():
        foreign_files.refuse_foreign(path)
    known = ", ".join(suffix for kind in _LOADERS for suffix in SUFFIXES[kind])
    raise ModelFileError(
        f"{str(path)!r} has the suffix {path.suffix!r}, wanted one of {known}; "
        f"or say by {name_of('framework')} which framework it belongs to"
    )


def load(origin: Origin) -> ir.Model:
    """The model of a file.

    Raises:
        ModelFileError: The file is missing, damaged, not of this framework, or needs trust.
        EngineUnavailableError: Its framework needs a package that is not installed, or that
            nobody makes.
        UnsupportedOpError: The model holds what ONNX cannot express.
    """
    framework, path = origin.framework, origin.path
    if framework not in SUFFIXES:
        raise ValueError(f"framework is {framework!r}, wanted one of {', '.join(SUFFIXES)}")
    if framework in _REFUSED:
        raise EngineUnavailableError(f"{str(path)!r}: {_REFUSED[framework]}")
    if origin.weights is not None:
        raise ModelFileError(
            f"a weight file was given, which serves CAFFE alone; leave it out for {framework}"
        )
    if origin.key is not None and framework != "MINDIR":
        raise ModelFileError(
            f"a key to decrypt was given, but only MINDIR files can be encrypted, not {framework}"
        )
    _check_path(framework, path)
    return _LOADERS[framework](origin)


def files_of(origin: Origin) -> tuple[Path, ...]:
    """The files of a loaded model: its own, and those next to it."""
    if origin.framework not in ("ONNX", "MINDIR"):
        return (origin.path,)
    from mindspore_lite.graph.source import ModelInput, source_of

    return source_of(ModelInput(origin.framework, origin.path, key=origin.key)).files


def _check_path(framework: str, path: Path) -> None:
    if framework == "TF" and path.is_dir():
        raise ModelFileError(
            f"{str(path)!r} is a folder; a SavedModel may run code and is not read here: freeze it "
            "into a .pb file, or convert it with `python -m tf2onnx.convert --saved-model`"
        )
    wanted = SUFFIXES[framework]
    if framework not in _ANY_NAME and path.suffix.lower() not in wanted:
        raise ModelFileError(
            f"{str(path)!r} has the suffix {path.suffix!r}, a file of {framework} has "
            f"{' or '.join(wanted)}"
        )
    if framework != "MINDIR":  # which may be encrypted, and says so itself
        foreign_files.refuse_damaged(path, framework)


def _onnx(origin: Origin) -> ir.Model:
    from mindspore_lite.conversion.from_onnx import load_onnx

    return load_onnx(origin.path, reads_later=True)


def _mindir(origin: Origin) -> ir.Model:
    from mindspore_lite.graph.open_rank import OpenRankError
    from mindspore_lite.graph.source import ModelInput, source_of

    given = ModelInput("MINDIR", origin.path, key=origin.key)
    try:
        return _for_other_sizes(given, origin, source_of(given).translate())
    except OpenRankError as exc:  # a graph can only be made for a given number of dims
        shapes = {
            name: list(origin.shapes[name]) for name in exc.trial.open if name in origin.shapes
        }
        if len(shapes) < len(exc.trial.open):
            raise
        return source_of(given, shapes).translate()


def _for_other_sizes(given: ModelInput, origin: Origin, model: ir.Model) -> ir.Model:
    """The model, translated once more where sizes that the file fixed are to be replaced.

    Operators hold numbers that count for the exported sizes alone, such as the pads of a mode. The
    inputs still say what the file does: fix_shapes() replaces it.
    """
    from mindspore_lite.graph.source import source_of
    from mindspore_lite.passes.fix_shapes import freed

    shapes = freed(model, origin.shapes)
    if not shapes:
        return model
    try:
        made = source_of(given, shapes).translate()
    except UnsupportedOpError:  # some layers need to know the sizes
        now = {name: list(origin.shapes.get(name, dims)) for name, dims in shapes.items()}
        made = source_of(given, now).translate()
    said = {value.name: value.shape for value in model.graph.inputs}
    for value in made.graph.inputs:
        value.shape = said.get(value.name, value.shape)
    return made


def _pytorch(origin: Origin) -> ir.Model:
    from mindspore_lite.conversion.from_pytorch import load_pytorch

    return load_pytorch(origin.path, origin.trust_pickle, origin.shapes, origin.step)


def _tensorflow(origin: Origin) -> ir.Model:
    from mindspore_lite.conversion.from_tensorflow import load_tensorflow

    return load_tensorflow(origin.path, origin.framework)


_LOADERS: dict[str, Callable[[Origin], ir.Model]] = {
    "ONNX": _onnx,
    "MINDIR": _mindir,
    "PYTORCH": _pytorch,
    "TFLITE": _tensorflow,
    "TF": _tensorflow,
}
