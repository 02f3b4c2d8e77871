"""A conversion as the user asked for it, checked and settled into a Job."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from mindspore_lite.conversion.quant_settings import DataSettings, settings_of
from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.conversion.settings_file import Wishes, wishes_of
from mindspore_lite.conversion.shape_text import shape_problems, shapes_text
from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import ModelFileError, SettingsError
from mindspore_lite.mindir.decrypt import MODES, Key
from mindspore_lite.mindir.side_files import FOLDER_SUFFIX, GRAPH_SUFFIX
from mindspore_lite.mindir.write import ONE_FILE_BYTES
from mindspore_lite.settings.read import Sections

T = TypeVar("T")

FRAMEWORKS = ("TF", "TFLITE", "CAFFE", "MINDIR", "ONNX", "PYTORCH")  # the names of FmkType
LEVELS = ("none", "general", "gpu_oriented", "ascend_oriented")
LAYOUTS = ("NCHW", "NHWC")
TYPES = {  # as users write them: as core/dtypes.py names them
    "DEFAULT": "",
    "FLOAT": "float32",
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
}
OUTPUT_TYPES = ("float32", "float16", "int8", "uint8")
ENCRYPT_KEY_BYTES = 16


@dataclass(frozen=True)
class Job:
    """Everything that decides what a conversion does."""

    framework: str = "ONNX"  # a name of FmkType
    model: Path = Path()
    output: Path = Path()  # ends in .mindir
    weights: Path | None = None  # of a Caffe model
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    optimize: str = "general"
    input_format: str = ""  # "" keeps what the model has; so with all that follow
    output_format: str = ""
    input_type: str = ""
    output_type: str = ""
    weight_fp16: bool = False
    save_type: str = "MINDIR"
    infer: bool = False
    decrypt: Key | None = None
    encrypt_key: bytes | None = field(default=None, repr=False)
    settings: Sections = field(default_factory=dict)
    samples: DataSettings | None = None  # for quantisation, where no section says them
    external_above: int = ONE_FILE_BYTES  # bytes of weights
    trust_pickle: bool = False  # run code that a PyTorch file holds
    may_replace: bool = False  # the result may take the model's place: the user named it so


class Reading:
    """Takes texts of the user one after the other, and remembers everything wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def take(self, instead: T, parse: Callable[..., T], *given: object, **how: object) -> T:
        """What `parse` makes of the text; `instead`, to go on with, where it makes no sense."""
        try:
            return parse(*given, **how)
        except (ValueError, ModelFileError) as exc:
            self.problems += str(exc).splitlines()
            return instead


def settled(job: Job) -> tuple[Job, tuple[str, ...]]:
    """The job with what its settings add to it, and what should be said about that.

    Raises:
        SettingsError, ModelFileError: As refuse() has it.
    """
    refuse(job)
    wishes = wishes_of(job.settings)
    made = replace(
        job,
        shapes=dict(job.shapes or wishes.shapes),
        optimize="none" if wishes.no_fusion else job.optimize,
        input_format=job.input_format or wishes.input_format,
    )
    return made, tuple(wishes.warnings)


def refuse(job: Job, already: Sequence[str] = ()) -> None:
    """Raise if anything is wrong with a job; `already` is what its texts had wrong.

    Raises:
        SettingsError: It asks for something that makes no sense; every problem is reported.
        ModelFileError: The only problems are with files.
    """
    wishes = wishes_of(job.settings)
    problems = [*already, *_problems(job), *wishes.problems, *_contradictions(job, wishes)]
    try:
        settings_of(job.settings, job.samples)
    except SettingsError as exc:
        problems += exc.problems
    files = _file_problems(job)
    if problems:
        raise SettingsError(listed([*problems, *files]), [*problems, *files])
    if files:
        raise ModelFileError(listed(files))


def listed(problems: list[str]) -> str:
    """One problem as it is; several under each other."""
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} problems:" + "".join(f"\n  {problem}" for problem in problems)


def output_path(text: str) -> Path:
    """The file that a name stands for: `x` and `x.mindir` are both x.mindir."""
    if text.endswith(("/", "\\")) or text.rpartition("/")[2] in ("", ".", ".."):
        raise ValueError(f"{name_of('output')} must be the path of a file, but got {text!r}")
    return Path(text if text.endswith(".mindir") else f"{text}.mindir")


def beside(model: str) -> str:
    """What a result is called by default: like its model."""
    return str(Path(model).with_suffix("")) if Path(model).name else ""


def split_paths(output: Path) -> tuple[Path, Path]:
    """The graph and its data that are written instead where weights get a file of their own."""
    stem = output.name.removesuffix(".mindir")
    return output.with_name(stem + GRAPH_SUFFIX), output.with_name(stem + FOLDER_SUFFIX) / "data_0"


def hex_key(text: str, label: str) -> bytes:
    """The bytes of a key in hexadecimal digits, of either case; errors do not show it."""
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", text):
        raise ValueError(
            f"{label} must be hexadecimal digits, two for each byte, but got {len(text)} characters"
            + (" that are not" if re.search(r"[^0-9a-fA-F]", text) else "")
        )
    return bytes.fromhex(text)


def decryption(text: str, mode: str) -> Key | None:
    """What decrypts the source; None without a key."""
    if mode not in MODES:
        raise ValueError(f"{name_of('decrypt_mode')} must be {'|'.join(MODES)}, but got {mode!r}")
    return Key(hex_key(text, name_of("decrypt_key")), mode) if text else None


def encryption_key(text: str, wanted: bool | None) -> bytes | None:
    """The key to encrypt with; `wanted` None: not stated, so a key alone is enough."""
    if wanted and not text:
        raise ValueError(f"encryption is on, but there is no {name_of('encrypt_key')}")
    return hex_key(text, name_of("encrypt_key")) if text and wanted is not False else None


def level_of(text: str, chips: tuple[str, ...] = ()) -> str:
    """The level of `ascend_oriented:910b`; of its chip only the name is checked."""
    level, colon, chip = text.partition(":")
    if level not in LEVELS or (colon and level != "ascend_oriented"):
        raise ValueError(
            f"{name_of('optimize')} must be {'|'.join(LEVELS)} or ascend_oriented:CHIP, but got "
            f"{text!r}"
        )
    if ":" in chip:
        raise ValueError(f"chip_name must be single, but got {chip!r}")
    if (colon and not chip) or (chip and chips and chip not in chips):
        raise ValueError(f"chip_name must be in [{', '.join(chips) or 'any'}], but got {chip!r}")
    return level


def _problems(job: Job) -> list[str]:
    found = [*_one_of_each(job), *shape_problems(dict(job.shapes), name_of("shape"))]
    if job.output_type and job.output_type not in OUTPUT_TYPES:
        found.append(
            f"{name_of('output_type')} must be FLOAT16, FLOAT32, INT8 or UINT8, but got "
            f"{job.output_type.upper()}"
        )
    if job.save_type == "MINDIR_LITE":
        found.append(
            f"{name_of('save_type')} MINDIR_LITE (.ms files of the edge runtime) cannot be "
            "written; use MINDIR, which this package runs, or the original converter_lite for an "
            "edge device"
        )
    if job.weights is not None and job.framework != "CAFFE":
        found.append(
            f"{name_of('weights')} is not a valid flag: only Caffe models have a file of weights"
        )
    if job.decrypt is not None and job.framework != "MINDIR":
        found.append(
            f"{name_of('decrypt_key')} is for MINDIR alone; a model of {job.framework} is not "
            "encrypted"
        )
    if job.encrypt_key is not None and len(job.encrypt_key) != ENCRYPT_KEY_BYTES:
        found.append(
            f"{name_of('encrypt_key')} must have {ENCRYPT_KEY_BYTES} bytes, written as "
            f"{2 * ENCRYPT_KEY_BYTES} hexadecimal digits, but got {len(job.encrypt_key)} bytes"
        )
    if job.external_above < 0:
        found.append(
            f"{name_of('external_above')}, the limit for side files, must be 0 or more, but got "
            f"{job.external_above}"
        )
    return found


def _one_of_each(job: Job) -> list[str]:
    """What is none of the words that it may be."""
    named = tuple(TYPES.values())
    words: list[tuple[str, str, tuple[str, ...]]] = [
        ("framework", job.framework, FRAMEWORKS),
        ("optimize", job.optimize, LEVELS),
        ("input_format", job.input_format, ("", *LAYOUTS)),
        ("output_format", job.output_format, ("", *LAYOUTS)),
        ("input_type", job.input_type, named),
        ("output_type", job.output_type, named),
        ("save_type", job.save_type, ("MINDIR", "MINDIR_LITE")),
        ("decrypt_mode", MODES[0] if job.decrypt is None else job.decrypt.mode, MODES),
    ]
    return [
        f"{name_of(label)} must be {'|'.join(filter(None, dict.fromkeys(legal)))}, but got "
        f"{value!r}"
        for label, value, legal in words
        if value not in legal
    ]


def _contradictions(job: Job, wishes: Wishes) -> list[str]:
    found = []
    if job.shapes and wishes.shapes and dict(job.shapes) != wishes.shapes:
        found.append(
            f"{name_of('shape')} is {shapes_text(dict(job.shapes))!r}, but the configuration says "
            f"{shapes_text(wishes.shapes)!r}; give it once"
        )
    if job.input_format and wishes.input_format not in ("", job.input_format):
        found.append(
            f"{name_of('input_format')} is {job.input_format}, but the configuration says "
            f"{wishes.input_format}; give it once"
        )
    return found


def _file_problems(job: Job) -> list[str]:
    """What is wrong with the paths; one without a name was complained of before."""
    found = []
    if job.model.name and not os.path.exists(job.model):
        found.append(f"{name_of('model')} does not exist: {nowhere(job.model)}")
    if job.weights is not None and not os.path.isfile(job.weights):
        found.append(f"{name_of('weights')} does not exist: {nowhere(job.weights)}")
    if not job.output.name:
        return found
    if os.path.isdir(job.output):
        found.append(f"{name_of('output')} is a directory: {str(job.output)!r}")
    return found + overwritten(job, [job.model])


def overwritten(job: Job, files: Iterable[Path]) -> list[str]:
    """A complaint for each of the model's files whose name the result would take.

    A model that the user named as the output as well may be replaced, with its data where the
    graph is replaced, too: nothing else would be left of it.
    """
    graph, data = split_paths(job.output)
    replaced = []
    if job.may_replace:
        replaced = [job.output, graph, *([data] if _is_same(graph, job.model) else [])]
    return [
        f"{str(target)!r} would overwrite the model ({str(file)!r}); choose another name"
        for file in files
        for target in (job.output, graph, data)
        if _is_same(target, file)
        and not (target in replaced and (target == data or _is_same(file, job.model)))
    ]


def replaces_model(job: Job) -> bool:
    """Whether the result may take the place of the model."""
    return any(_is_same(path, job.model) for path in (job.output, split_paths(job.output)[0]))


def _is_same(one: Path, other: Path) -> bool:
    # of names that no file can have, os.path says that there is none; Path raises
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)
