"""Converter: converts model files of other frameworks to MindIR."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mindspore_lite.core import checks
from mindspore_lite.core.attributes import Setting, Settings
from mindspore_lite.core.boundary import boundary
from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import ModelFileError
from mindspore_lite.model import ModelType
from mindspore_lite.settings.read import Sections, merged
from mindspore_lite.tensor import DataType, Format

if TYPE_CHECKING:
    from mindspore_lite.conversion.job import Job, Reading

CHIPS = ("default", "910b")
_DEVICES = {"ascend_oriented": "Ascend", "gpu_oriented": "GPU"}
_DONE = "CONVERT RESULT SUCCESS:0"


class FmkType(Enum):
    """Which framework a model file comes from.

    Examples:
        >>> from mindspore_lite.converter import FmkType
        >>> print(FmkType.ONNX)
        FmkType.ONNX
    """

    TF = 0
    CAFFE = 1
    ONNX = 2
    MINDIR = 3
    TFLITE = 4
    PYTORCH = 5


def _member(*legal: Enum) -> Callable[[str, object], Any]:
    """A check that lets only some members of an enum through."""

    def check(name: str, value: object) -> Enum:
        found: Enum = checks.instance(name, value, type(legal[0]))
        if found not in legal:
            shown = ", ".join(str(member) for member in legal)
            raise ValueError(f"{name} must be in [{shown}], but got {found}.")
        return found

    return check


def _input_shape(name: str, value: object) -> dict[str, list[int]]:
    shapes = {}
    for key, dims in checks.instance(name, value, dict).items():
        checks.string(f"{name} key", key)
        if not isinstance(dims, list):
            raise checks.wrong_type(f"{name} value", "list", dims, f" at key {key}")
        for at, dim in enumerate(dims):
            if isinstance(dim, bool) or not isinstance(dim, int):
                raise checks.wrong_type(f"{name} value's element", "int", dim, f" at index {at}")
        shapes[key] = list(dims)
    return shapes


_data_type = _member(DataType.FLOAT32, DataType.INT8, DataType.UINT8, DataType.UNKNOWN)


class Converter(Settings):
    """Converts model files to MindIR; its attributes say how.

    One object may convert many models: its attributes stay, but for the keys, which are forgotten
    after each conversion, and a configuration file counts for one conversion only.

    Attributes:
        optimize: "none", "general" (the default), "gpu_oriented" or "ascend_oriented"; the last may
            name a chip, as in "ascend_oriented:910b". The result runs on every target.
        input_shape: Fixes the shapes of inputs, by name.
        input_format: NCHW or NHWC, the layout of inputs with four dims. It reads NHWC at first,
            but changes nothing until it is set.
        input_data_type, output_data_type: FLOAT32, INT8 or UINT8, which inputs or outputs shall
            have; UNKNOWN keeps what the model has, and so does FLOAT32 until it is set.
        weight_fp16: Store weights in float16; they are float32 again when the model is loaded.
        save_type: MINDIR; files of the edge runtime cannot be written.
        infer: Run the result once, before it takes its place.
        decrypt_key, decrypt_mode: Of an encrypted MindIR that is converted; a key is written in
            hexadecimal digits and cannot be read back.
        encrypt_key, enable_encryption: 32 hexadecimal digits, which encrypt the result with
            AES-GCM. Setting the key is enough; `enable_encryption = False` leaves it unused. Other
            than in the original, the default is False, so that a plain result needs no setting.
        device: "Ascend" does the same as optimize = "ascend_oriented", and counts before it.
        device_id, rank_id: Kept, without effect.
        trust_pickle: An addition of mslite: let a PyTorch file run the code that it holds.

    Raises:
        TypeError: A value of the wrong type was set.
        ValueError: A value outside the legal ones was set.

    Examples:
        >>> import mindspore_lite as mslite
        >>> converter = mslite.Converter()
        >>> converter.optimize = "none"
        >>> converter.input_shape = {"x": [1, 3, 224, 224]}
    """

    _path = "converter"

    decrypt_mode = Setting(checks.one_of("AES-GCM", "AES-CBC"), "AES-GCM")
    enable_encryption = Setting(checks.flag, False)
    infer = Setting(checks.flag, False)
    weight_fp16 = Setting(checks.flag, False)
    input_data_type = Setting[DataType](_data_type, DataType.FLOAT32)
    output_data_type = Setting[DataType](_data_type, DataType.FLOAT32)
    input_format = Setting[Format](_member(Format.NCHW, Format.NHWC), Format.NHWC)
    input_shape = Setting[dict[str, list[int]]](_input_shape, {})
    save_type = Setting[ModelType](_member(*ModelType), ModelType.MINDIR)
    device_id = Setting(checks.integer, 0)
    rank_id = Setting(checks.integer, 0)
    trust_pickle = Setting(checks.flag, False)

    def __init__(self) -> None:
        self._decrypt_key = ""
        self._encrypt_key = ""
        self._level = "general"
        self._device = ""
        self._config_info: Sections = {}

    @property
    def decrypt_key(self) -> NoReturn:
        """The key of an encrypted MindIR; it can only be set."""
        raise TypeError("decrypt_key is write-only.")

    @decrypt_key.setter
    def decrypt_key(self, value: str) -> None:
        self._decrypt_key = checks.string("decrypt_key", value)

    @property
    def encrypt_key(self) -> NoReturn:
        """The key that the result is encrypted with; it can only be set."""
        raise TypeError("encrypt_key is write-only.")

    @encrypt_key.setter
    def encrypt_key(self, value: str) -> None:
        self._encrypt_key = checks.string("encrypt_key", value)

    @property
    def optimize(self) -> str:
        """How the model is optimised; reads without the name of the chip."""
        return self._level

    @optimize.setter
    def optimize(self, value: str) -> None:
        from mindspore_lite.conversion.job import LEVELS, level_of

        if checks.string("optimize", value).partition(":")[0] not in LEVELS:
            known = ", ".join(repr(level) for level in LEVELS)
            raise ValueError(
                f"optimize must be {known} or 'ascend_oriented:CHIP', but got {value!r}."
            )
        self._level = level_of(value, CHIPS)

    @property
    def device(self) -> str:
        """The device that the model is optimised for, `""` where none was named."""
        return self._device or _DEVICES.get(self._level, "")

    @device.setter
    def device(self, value: str) -> None:
        self._device = checks.one_of("Ascend")("device", value)

    def set_config_info(self, section: str = "", config_info: dict[str, str] | None = None) -> None:
        """Set the entries of one section; they take the place of those that it had.

        They have the meaning that they would have in a configuration file. Where `convert` is given
        a file as well, both count, and of two equal keys the one that was set here.

        Raises:
            TypeError: The section is no str, or its entries are no dict of str.
        """
        checks.string("section", section)
        if not section or config_info is None:
            return
        for key, value in checks.instance("config_info", config_info, dict).items():
            checks.string("config_info key", key)
            checks.string("config_info val", value)
        self._config_info[section] = dict(config_info)

    def get_config_info(self) -> dict[str, dict[str, str]]:
        """A copy of what set_config_info() was given, by section."""
        return {section: dict(entries) for section, entries in self._config_info.items()}

    def convert(
        self,
        fmk_type: FmkType,
        model_file: str | os.PathLike[str],
        output_file: str | os.PathLike[str],
        weight_file: str | os.PathLike[str] = "",
        config_file: str | os.PathLike[str] = "",
    ) -> None:
        """Convert a model file to MindIR, and print that it succeeded.

        Args:
            fmk_type: The framework that the file comes from.
            model_file: The file.
            output_file: Where the result goes; `.mindir` is added where it is missing, and folders
                are made. Above 1 GiB the weights lie in a file of their own, as MindSpore does it.
                The name of a MindIR that is converted replaces it, when the result is complete.
            weight_file: The weights of a Caffe model.
            config_file: A configuration file, `""` for none.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: A file is missing, a setting makes no sense, or the model cannot be
                converted. What was at output_file before stays there.
        """
        checks.instance("fmk_type", fmk_type, FmkType)
        model, output, weights, settings = (
            checks.path(name, text)
            for name, text in (
                ("model_file", model_file),
                ("output_file", output_file),
                ("weight_file", weight_file),
                ("config_file", config_file),
            )
        )
        try:
            found = self._convert(fmk_type, model, output, weights, settings)
        finally:
            self._decrypt_key = self._encrypt_key = ""
        for text in found:
            warnings.warn(text, UserWarning, stacklevel=2)
        print(_DONE)  # noqa: T201 - programs look for it

    def _convert(
        self, fmk_type: FmkType, model: str, output: str, weights: str, settings: str
    ) -> tuple[str, ...]:
        """Convert, and return what should be warned of."""
        for name, path in (("model", model), ("weight", weights), ("config", settings)):
            if (path or name == "model") and not os.path.exists(path):
                raise ModelFileError(
                    f"Perform convert method failed, {name}_file does not exist! "
                    f"Got {nowhere(path)}"
                )
        from mindspore_lite.conversion.convert import carried, convert
        from mindspore_lite.conversion.job import Reading, refuse
        from mindspore_lite.conversion.settings_file import SettingsFile, read_settings_file

        with boundary("Converter model failed! error is "):
            read = read_settings_file(Path(settings)) if settings else SettingsFile({})
            reading = Reading()
            job = replace(
                self._job(reading, output),
                framework=fmk_type.name,
                model=Path(model),
                weights=Path(weights) if weights else None,
                settings=merged(read.sections, self._config_info),
            )
            refuse(job, reading.problems)
            report = convert(job)
            return (*read.warnings, *report.warnings, *carried(report))

    def _job(self, reading: Reading, output: str) -> Job:
        """What the attributes ask for."""
        from mindspore_lite.conversion.job import Job, decryption, encryption_key, output_path

        asked = self.__dict__.get("enable_encryption")
        return Job(
            output=reading.take(Path(), output_path, output),
            shapes={name: tuple(dims) for name, dims in self.input_shape.items()},
            optimize="ascend_oriented" if self._device else self._level,
            input_format=self._when_set("input_format"),
            input_type=self._when_set("input_data_type"),
            output_type=self._when_set("output_data_type"),
            weight_fp16=self.weight_fp16,
            save_type=self.save_type.name,
            infer=self.infer,
            decrypt=reading.take(None, decryption, self._decrypt_key, self.decrypt_mode),
            encrypt_key=reading.take(None, encryption_key, self._encrypt_key, asked),
            trust_pickle=self.trust_pickle,
            may_replace=True,
        )

    def _when_set(self, name: str) -> str:
        """What the core calls a value; "" unless somebody chose it: the defaults mean nothing."""
        chosen = self.__dict__.get(name, DataType.UNKNOWN)
        if chosen is DataType.UNKNOWN:
            return ""
        return str(chosen.name if isinstance(chosen, Format) else chosen.name.lower())

    def __str__(self) -> str:
        return (
            f"config_info: {self._config_info},\n"
            f"weight_fp16: {self.weight_fp16},\n"
            f"input_shape: {self.input_shape},\n"
            f"input_format: {self.input_format},\n"
            f"input_data_type: {self.input_data_type},\n"
            f"output_data_type: {self.output_data_type},\n"
            f"save_type: {self.save_type},\n"
            f"enable_encryption: {self.enable_encryption},\n"
            f"infer: {self.infer},\n"
            f"optimize: {self.optimize},\n"
            f"device: {self.device}."
        )
