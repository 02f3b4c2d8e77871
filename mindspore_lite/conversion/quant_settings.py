"""Quantisation settings, checked, from the sections of a configuration.

The keys are those of MindSpore Lite's converter. A key that does not exist, a value that is not
legal, and a legal wish that is not carried out here are errors, all reported at once.

Accepted without effect, because the outcome is the same: `enable_encode` and `max_segments` (eight
bit weights are stored as they are), `workspace` (nothing is written to a scratch folder), and a
mixed_bit_weight_quant_param section as long as bit_num is 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindspore_lite.errors import SettingsError

ANY = "ANY"
MOST = 65535  # the largest size, count or width that the documented grammar knows

Config = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ImageSteps:
    """How the picture in a file becomes the numbers of an input."""

    colours: str = "BGR"  # or RGB, GRAY
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    size: tuple[int, int] | None = None  # width, height
    method: str = "LINEAR"  # or NEAREST, CUBIC
    crop: tuple[int, int] | None = None  # width, height


@dataclass(frozen=True)
class DataSettings:
    """Where calibration data lie and what they are."""

    folders: tuple[tuple[str, Path], ...]  # input name, folder
    kind: str  # IMAGE, BIN or NPZ; ANY: as the files say
    count: int | None = None  # None: every file
    image: ImageSteps = field(default_factory=ImageSteps)
    hold_out: bool = False  # some files, to compare the result on
    layout: str = "NHWC"  # of raw files for 4-D inputs; the converter's --inputDataFormat


@dataclass(frozen=True)
class QuantSettings:
    """What to do with the weights and activations of a model."""

    kind: str  # WEIGHT_QUANT, DYNAMIC_QUANT or FULL_QUANT
    per_channel: bool = True
    bias_correction: bool = True
    min_weight_size: int = 0  # weight quantisation: only weights with more numbers than that
    min_weight_channels: int = 16  # and with more channels than that
    skip: frozenset[str] = frozenset()  # names of nodes
    method: str = "MAX_MIN"  # full quantisation: or KL, REMOVAL_OUTLIER
    data: DataSettings | None = None
    debug_folder: Path | None = None


def settings_of(config: Config, samples: DataSettings | None = None) -> QuantSettings | None:
    """The settings in the sections of a configuration; None where no quantisation is asked for.

    `samples` take the place of the section that says where calibration data lie.

    Raises:
        SettingsError: Every problem of every section, one on a line.
    """
    problems: list[str] = []
    values = {name: _parsed(name, config.get(name, {}), problems) for name in _SECTIONS}
    common, weight, full = (values[n] for n in (_COMMON, _WEIGHT, _FULL))
    kind = common.get("quant_type")
    problems += _not_carried_out(values)
    data = samples or _data(values[_DATA], kind == "FULL_QUANT", problems)
    if samples is not None and values[_DATA]:
        problems.append(f"samples are given by --samples and by [{_DATA}]; give them once")
    if samples is not None and kind is None:
        problems.append("--samples goes with --quantise: nothing else looks at samples")
    if problems:
        raise SettingsError("\n".join(problems), problems)
    if kind is None:
        return None
    own = full if kind == "FULL_QUANT" else weight if kind == "WEIGHT_QUANT" else {}
    return QuantSettings(
        kind,
        per_channel=own.get("per_channel", True),
        bias_correction=own.get("bias_correction", True),
        min_weight_size=common.get("min_quant_weight_size", 0),
        min_weight_channels=common.get("min_quant_weight_channel", 16),
        skip=frozenset(common.get("skip_quant_node", ())),
        method=full.get("activation_quant_method", "MAX_MIN"),
        data=data,
        debug_folder=common.get("debug_info_save_path"),
    )


# --- values: each parses a text, and raises a ValueError that says what is wanted -----------------


def _one_of(*legal: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in legal:
            raise ValueError(" or ".join(legal))
        return text

    return parse


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("a number")
    return number


def _fraction(text: str) -> float:
    try:
        number = _number(text)
    except ValueError:
        number = 0
    if not 0 < number < 1:
        raise ValueError("a number between 0 and 1")
    return number


def _numbers(text: str) -> tuple[float, ...]:
    try:
        if text[:1] + text[-1:] == "[]":
            return tuple(_number(part) for part in text[1:-1].split(","))
    except ValueError:
        pass
    raise ValueError("numbers such as [0.485, 0.456, 0.406]")


def _divisors(text: str) -> tuple[float, ...]:
    numbers = _numbers(text)
    if 0 in numbers:
        raise ValueError("numbers other than 0: they divide")
    return numbers


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _folders(text: str) -> tuple[tuple[str, Path], ...]:
    """`input:dir,input2:'dir:2'`: the last colon counts, and nothing inside '...' does."""
    wanted = "input:folder, several of them joined by commas, '...' around what contains , or :"
    found: dict[str, Path] = {}
    for entry in _outside_quotes(text, ","):
        *name, folder = _outside_quotes(entry, ":")
        key, place = ":".join(name).strip().strip("'"), folder.strip().strip("'")
        if not key or not place or text.count("'") % 2:
            raise ValueError(wanted)
        if key in found:
            raise ValueError(f"one folder for each input, {key!r} has two")
        found[key] = Path(place)
    return tuple(found.items())


def _outside_quotes(text: str, mark: str) -> list[str]:
    """The text cut at every mark that does not stand between single quotes."""
    parts, quoted = [""], False
    for letter in text:
        quoted ^= letter == "'"
        if letter == mark and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


# --- sections -------------------------------------------------------------------------------------

_COMMON, _WEIGHT, _MIXED = (
    "common_quant_param",
    "weight_quant_param",
    "mixed_bit_weight_quant_param",
)
_FULL, _DYNAMIC, _TRANSFORM, _DATA = (
    "full_quant_param",
    "dynamic_quant_param",
    "transform_quant_param",
    "data_preprocess_param",
)
_SECTIONS: dict[str, dict[str, Callable[[str], Any]]] = {
    _COMMON: {
        "quant_type": _one_of("WEIGHT_QUANT", "FULL_QUANT", "DYNAMIC_QUANT"),
        "bit_num": _whole(0, 16),
        "min_quant_weight_size": _whole(0, MOST),
        "min_quant_weight_channel": _whole(0, MOST),
        "skip_quant_node": _names,
        "debug_info_save_path": Path,
        "enable_encode": _flag,
        "workspace": Path,
    },
    _WEIGHT: {
        "per_channel": _flag,
        "bias_correction": _flag,
        "dequant_strategy": _one_of("ON_THE_FLY"),
        "quant_strategy": _one_of("MAX_MIN", "GPTQ"),
        "update_mindir": _flag,
        "max_segments": _whole(1, MOST),
    },
    _MIXED: {
        "init_scale": _fraction,
        "auto_tune": _flag,
        "use_cv_data": _flag,
        "max_iterations": _whole(40, MOST),
    },
    _FULL: {
        "activation_quant_method": _one_of("MAX_MIN", "KL", "REMOVAL_OUTLIER"),
        "bias_correction": _flag,
        "per_channel": _flag,
        "target_device": _one_of("CPU", "KIRIN", "NVGPU", "DSP", "ASCEND"),
        "smooth_alpha": _number,
        "enable_smooth_shift": _flag,
    },
    _DYNAMIC: {"quant_strategy": _one_of("ALWC", "ACWL")},
    _TRANSFORM: {"export_precision_mode": _one_of("QUANT", "FLOAT32")},
    _DATA: {
        "calibrate_path": _folders,
        "calibrate_size": _whole(1, MOST),
        "input_type": _one_of("IMAGE", "BIN"),
        "image_to_format": _one_of("RGB", "GRAY", "BGR"),
        "normalize_mean": _numbers,
        "normalize_std": _divisors,
        "resize_width": _whole(1, MOST),
        "resize_height": _whole(1, MOST),
        "resize_method": _one_of("LINEAR", "NEAREST", "CUBIC"),
        "center_crop_width": _whole(1, MOST),
        "center_crop_height": _whole(1, MOST),
    },
}


def _parsed(section: str, entries: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    found = {}
    for key, text in entries.items():
        parse = _SECTIONS[section].get(key)
        if parse is None:
            problems.append(f"INPUT ILLEGAL: `{key}` is not supported in [{section}]")
            continue
        # the docs spell one of the methods in its own way
        text = {"RemovalOutlier": "REMOVAL_OUTLIER"}.get(text, text)
        try:
            found[key] = parse(text)
        except ValueError as exc:
            problems.append(f"[{section}] {key} is {text!r}, wanted {exc}")
    return found


# section, key, the values that are carried out, what to do instead
_CARRIED_OUT: tuple[tuple[str, str, tuple[Any, ...], str], ...] = (
    (_WEIGHT, "dequant_strategy", (), "weights are restored while the model is compiled"),
    (_WEIGHT, "quant_strategy", ("MAX_MIN",), "use MAX_MIN"),
    (_WEIGHT, "update_mindir", (True,), "the restoring nodes are always written; leave it out"),
    (_FULL, "target_device", ("CPU",), "leave it out to quantise for the CPU"),
    (_FULL, "smooth_alpha", (), "leave it out"),
    (_FULL, "enable_smooth_shift", (False,), "leave it out"),
    (_DYNAMIC, "quant_strategy", ("ALWC",), "use ALWC"),
    (_TRANSFORM, "export_precision_mode", ("QUANT",), "leave it out"),
)


def _not_carried_out(values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Legal settings that would have to be ignored."""
    found = []
    for section, key, fine, instead in _CARRIED_OUT:
        value = values[section].get(key)
        if value is not None and value not in fine:
            written = str(value).lower() if isinstance(value, bool) else value
            found.append(f"[{section}] {key}={written} is not carried out here; {instead}")
    kind, bits = values[_COMMON].get("quant_type"), values[_COMMON].get("bit_num", 8)
    if bits != 8:
        what = "mixed bits (bit_num=0) are" if bits == 0 else f"bit_num={bits} is"
        found.append(f"[{_COMMON}] {what} not carried out here; {kind or 'every type'} uses 8 bits")
    return found


def _data(values: Mapping[str, Any], needed: bool, problems: list[str]) -> DataSettings | None:
    """The settings of calibration data; full quantisation cannot do without."""
    missing = [key for key in ("calibrate_path", "input_type") if key not in values]
    if missing and (needed or values):
        problems += [f"[{_DATA}] {key} is missing" for key in missing]
    image = ImageSteps(
        values.get("image_to_format", "BGR"),
        values.get("normalize_mean", ()),
        values.get("normalize_std", ()),
        _pair(values, "resize", problems),
        values.get("resize_method", "LINEAR"),
        _pair(values, "center_crop", problems),
    )
    if "resize_method" in values and image.size is None:
        problems.append(f"[{_DATA}] resize_method needs resize_width and resize_height")
    channels = 1 if image.colours == "GRAY" else 3
    for key in ("normalize_mean", "normalize_std"):
        if key in values and len(values[key]) != channels:
            problems.append(
                f"[{_DATA}] {key} has {len(values[key])} numbers, wanted {channels}: "
                f"one for each channel of {image.colours}"
            )
    if missing:
        return None
    return DataSettings(
        values["calibrate_path"], values["input_type"], values.get("calibrate_size"), image
    )


def _pair(values: Mapping[str, Any], what: str, problems: list[str]) -> tuple[int, int] | None:
    width, height = values.get(f"{what}_width"), values.get(f"{what}_height")
    if width is None and height is None:
        return None
    if width is None or height is None:
        lacks = "width" if width is None else "height"
        problems.append(f"[{_DATA}] {what}_{lacks} is missing: both sides are needed")
        return None
    return width, height
