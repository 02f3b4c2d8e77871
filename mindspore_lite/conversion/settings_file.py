"""Reads the configuration file of a conversion.

One grammar takes what the original's converter and its runtime take, which had one each: a comment
begins with `#`, blanks and quotes around things do not count, a value may hold `=`. Where the two
contradict each other the converter's rule holds: sections of one name are joined, and of two equal
keys the last one counts (with a warning). A line that means nothing is an error, and so is a key
without a value: what somebody wrote for a conversion should not be lost in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.conversion.shape_text import Sizes, parse_shapes, shapes_text
from mindspore_lite.errors import ModelFileError
from mindspore_lite.settings.ascend_shapes import Profiles, dynamic_dims
from mindspore_lite.settings.read import Sections, useful_lines

MODEL = "model_param"  # the one section that may repeat: each is another model
_CUT = 200  # characters of a line that are shown
DEFAULT = "DEFAULT"  # where lines before the first section belong

QUANTISATION = (  # conversion/quant_settings.py knows their keys, and refuses others
    "common_quant_param", "weight_quant_param", "mixed_bit_weight_quant_param",
    "full_quant_param", "dynamic_quant_param", "transform_quant_param", "data_preprocess_param",
)  # fmt: skip
_STRICT = {  # a key that is not here is an error
    "registry": "plugin_path disable_fusion fusion_blacklists",
    "acl_option_cfg_param": (
        "device_id input_format input_shape_vector input_shape output_type precision_mode "
        "op_select_impl_mode fusion_switch_config_file_path dynamic_batch_size buffer_optimize "
        "insert_op_config_file_path dynamic_image_size dynamic_dims aoe_mode custom_opp_path"
    ),
    "cpu_option_cfg_param": "architecture instruction",
    "micro_param": (
        "enable_micro target codegen_mode debug_mode support_parallel save_path project_name "
        "keep_original_weight changeable_weights_name inputs_shape dynamic_dim_params"
    ),
    "om_converter": (
        "input_name_vector input_shape_vector input_data_type_vector "
        "output_name_vector output_shape_vector output_data_type_vector"
    ),
}
_FREE = (  # any key
    "ascend_context", "acl_init_options", "acl_build_options", "aoe_global_options",
    "aoe_tuning_options", "ge_global_options", "ge_session_options", "ge_graph_options",
    "graph_kernel_param",
)  # fmt: skip
# what may say the shape and the layout of inputs, the weakest first
_ASCEND = ("acl_option_cfg_param", "ascend_context", "acl_build_options")
_SAYS_INPUTS: tuple[str, ...] = ("input_shape", "input_format")
_FUSION: tuple[str, ...] = ("disable_fusion",)
_WHY_IGNORED = {
    "registry": "native plug-ins and single fusions of the original are not here",
    "cpu_option_cfg_param": "the engine chooses its kernels by the machine it runs on",
    "micro_param": "it steers code generation, which is not here",
    "om_converter": "it describes Ascend models, which only an Ascend device can run",
}


@dataclass(frozen=True)
class SettingsFile:
    """What stands in a file."""

    sections: Sections
    models: tuple[dict[str, str], ...] = ()  # each [model_param] of the multi-model form
    warnings: tuple[str, ...] = ()


@dataclass
class Wishes:
    """What sections ask for, besides quantisation; and everything wrong with them."""

    shapes: Sizes = field(default_factory=dict)
    input_format: str = ""
    no_fusion: bool = False
    open_shapes: Sizes = field(default_factory=dict)  # with sizes of -1: only checked
    profiles: Profiles = ()  # sizes for those: only checked
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_settings_file(path: Path) -> SettingsFile:
    """Read a file.

    Raises:
        ModelFileError: It cannot be read, or has lines that mean nothing; all of them are named.
    """
    sections: Sections = {}
    models: list[dict[str, str]] = []
    problems, repeated = [], []
    section = DEFAULT
    try:
        for number, line in useful_lines(path):
            line = line.replace('"', "")
            if line.startswith("["):
                section = line[1:-1].strip()
                if not line.endswith("]") or not section:
                    problems.append(f"line {number}: {line[:_CUT]!r} is no [section]")
                elif section == MODEL:
                    models.append({})
                else:
                    sections.setdefault(section, {})
                continue
            key, _, value = (part.strip() for part in line.partition("="))
            entries = models[-1] if section == MODEL else sections.setdefault(section, {})
            if not key or not value:
                problems.append(f"line {number}: {line[:_CUT]!r} is not key=value")
            elif key in entries:
                repeated.append(f"{path}:{number}: [{section}] {key} comes again; this one counts")
            entries[key] = value
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ModelFileError(f"cannot read the configuration {str(path)!r}: {reason}") from exc
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise ModelFileError(f"configuration {str(path)!r} has lines that mean nothing:{lines}")
    return SettingsFile(sections, tuple(models), tuple(repeated))


def wishes_of(sections: Mapping[str, Mapping[str, str]]) -> Wishes:
    """What sections of a file or of a program ask for."""
    found = Wishes()
    for name, entries in sections.items():
        if name in _STRICT:
            keys = _STRICT[name].split()
            found.problems += [
                f"`{key}` is not supported in [{name}]" for key in entries if key not in keys
            ]
        elif name not in (*QUANTISATION, *_FREE):
            close = difflib.get_close_matches(name, [*QUANTISATION, *_STRICT, *_FREE], 1)
            hint = f"; did you mean [{close[0]}]?" if close else ""
            found.warnings.append(f"nothing reads section [{name}]{hint}")
    _registry(found, sections.get("registry", {}))
    _refuse_code_generation(found, sections.get("micro_param", {}))
    _inputs(found, sections)
    _warn_of_ignored(found, sections)
    return found


def truth(text: str) -> bool | None:
    """true or false in any case, None for anything else."""
    return {"true": True, "false": False}.get(text.lower())


def _registry(found: Wishes, entries: Mapping[str, str]) -> None:
    fusion = entries.get("disable_fusion", "off")
    if fusion not in ("on", "off"):
        found.problems.append(f"[registry] disable_fusion must be on or off, but got {fusion!r}")
    found.no_fusion = fusion == "on"


def _refuse_code_generation(found: Wishes, entries: Mapping[str, str]) -> None:
    if truth(entries.get("enable_micro", "false")) is not False:
        found.problems.append(
            "[micro_param] enable_micro asks for C code, which is not generated here; leave it out "
            "to convert to MindIR"
        )


def _inputs(found: Wishes, sections: Mapping[str, Mapping[str, str]]) -> None:
    """Shapes and layout of the inputs, which several sections may give."""
    shapes: Sizes = {}
    for name in _ASCEND:
        entries = sections.get(name, {})
        if "input_shape" in entries:
            try:
                shapes |= parse_shapes(
                    entries["input_shape"], f"[{name}] input_shape", open_dims=True
                )
            except ValueError as exc:
                found.problems += str(exc).splitlines()
        if "input_format" in entries:
            layout = entries["input_format"].upper()
            if layout not in ("NCHW", "NHWC", "ND"):
                found.problems.append(
                    f"[{name}] input_format must be NCHW, NHWC or ND, but got {layout!r}"
                )
            found.input_format = "" if layout == "ND" else layout
    is_open = {name: dims for name, dims in shapes.items() if min(dims, default=0) < 0}
    if is_open:  # nothing has to be compiled for a list of sizes here: open dims take any
        found.warnings.append(f"inputs with sizes of -1 stay as they are: {shapes_text(is_open)}")
    found.shapes = {name: dims for name, dims in shapes.items() if name not in is_open}
    found.open_shapes = is_open
    text = sections.get("ascend_context", {}).get("dynamic_dims", "")
    try:
        found.profiles = dynamic_dims(text)
    except ValueError:
        found.problems.append(
            f"[ascend_context] dynamic_dims is {text!r}, wanted sizes such as [1~4],[8] for each "
            "input, with ; between them"
        )


def _warn_of_ignored(found: Wishes, sections: Mapping[str, Mapping[str, str]]) -> None:
    for name, entries in sections.items():
        if name not in (*_STRICT, *_FREE):
            continue
        works = _SAYS_INPUTS if name in _ASCEND else _FUSION if name == "registry" else ()
        ignored = [key for key in entries if key not in works]
        if ignored:
            why = _WHY_IGNORED.get(name, "the Ascend compiler, which it steers, is not here")
            found.warnings.append(f"[{name}] {', '.join(ignored)}: no effect, {why}")
