"""`mslite convert IN [OUT]`: converts a model to MindIR and reports what was done."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from mindspore_lite.cli.console import say, steps, tidy_end
from mindspore_lite.cli.inspect import listed, printable, show_table, size_text
from mindspore_lite.cli.key_text import key_text
from mindspore_lite.conversion.job import (
    TYPES,
    Job,
    Reading,
    beside,
    decryption,
    encryption_key,
    level_of,
    output_path,
    refuse,
    replaces_model,
)
from mindspore_lite.conversion.quant_settings import ANY, DataSettings, ImageSteps
from mindspore_lite.conversion.setting_names import MSLITE, asked_by
from mindspore_lite.conversion.settings_file import SettingsFile, read_settings_file
from mindspore_lite.conversion.shape_text import Sizes, parse_shapes
from mindspore_lite.errors import LiteError, SettingsError
from mindspore_lite.mindir.write import ONE_FILE_BYTES
from mindspore_lite.settings.read import Sections, merged

if TYPE_CHECKING:
    from mindspore_lite.conversion.check import Difference
    from mindspore_lite.conversion.convert import Report
    from mindspore_lite.conversion.quant_report import QuantReport

Layout = Literal["NCHW", "NHWC"]
_SHOWN = 12  # operators of each side, the most frequent
_SHOWN_LAYERS = 5


Switch = Annotated[bool, Parameter(negative="")]
Texts = Annotated[list[str] | None, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """How to convert.

    Attributes
    ----------
    framework
        ONNX, MINDIR, PYTORCH, TFLITE, TF or CAFFE; without it, as the suffix says.
    shape
        NAME=1,3,224,224 for each input whose shape should be fixed.
    optimize
        none, general, gpu_oriented or ascend_oriented[:CHIP].
    input_format
        Layout that inputs with four dims should have.
    output_format
        Layout that outputs with four dims should have.
    input_type
        Type that the inputs should have: float32, float16, int8, uint8, int32 or int64.
    output_type
        Type that the outputs should have: float32, float16, int8 or uint8.
    fp16
        Store weights as float16; the model computes in float32 as before.
    quantise
        Eight bits for the weights (weight), for the products of matrices too (dynamic), or for
        all that is multiplied (full), which needs --samples.
    samples
        A folder of inputs for --quantise full: images, .npy, or .npz with an array for each input.
        NAME=FOLDER for each input where there are several. Every fifth is held out to compare on.
    mean
        Numbers that are subtracted from the pixels (0 to 255) of images, such as 124,116,104.
    std
        Numbers that they are then divided by. Without both, pixels become 0 to 1.
    config
        A configuration file, for full quantisation and more.
    check
        Run source and result on the same random inputs, and report the largest difference.
    infer
        Run the result once, before it takes its place.
    encrypt_key
        Encrypt the result: 32 hexadecimal digits, @FILE or env:NAME (others see what you type).
    decrypt_key
        The key of an encrypted MindIR, in the same forms.
    decrypt_mode
        How that is encrypted: AES-GCM, AES-CBC or SM4-CBC.
    external_above
        Weights of more bytes than this go to a file of their own.
    trust_pickle
        Let a .pt file run the code that it holds; only for files whose maker you trust.
    sandbox
        Convert in a child process that reads the model's folder, writes the result, and no more.
    """

    framework: str = ""
    shape: Texts = None
    optimize: str = "general"
    input_format: Layout | None = None
    output_format: Layout | None = None
    input_type: str = ""
    output_type: str = ""
    fp16: Switch = False
    quantise: Literal["weight", "dynamic", "full"] | None = None
    samples: Texts = None
    mean: str = ""
    std: str = ""
    config: Path | None = None
    check: Switch = False
    infer: Switch = False
    encrypt_key: str = ""
    decrypt_key: str = ""
    decrypt_mode: str = "AES-GCM"
    external_above: int = ONE_FILE_BYTES
    trust_pickle: Switch = False
    sandbox: Switch = False


def convert(source: Path, output: str | None = None, /, *, options: Options | None = None) -> None:
    """Convert a model to MindIR.

    Parameters
    ----------
    source
        The model: .onnx, .mindir, .pt2 and others.
    output
        Where the MindIR goes; without it, next to the source. The name of the source replaces it.
    """
    with asked_by(MSLITE):
        _convert(source, output, options or Options())


def _convert(source: Path, output: str | None, options: Options) -> None:
    if options.sandbox:
        from mindspore_lite.cli.jailed import convert_jailed

        convert_jailed(source, output, options, options.config)
        return
    read = SettingsFile({}) if options.config is None else read_settings_file(options.config)
    reading = Reading()
    job = job_of(source, output, options, read.sections, reading)
    if options.check and job.may_replace and replaces_model(job):
        reading.problems.append(
            "--check compares with the source, whose place the result would take; choose another "
            "name"
        )
    refuse(job, reading.problems)
    difference, trouble = None, None
    with tidy_end(), steps(f"converting {source.name}") as step:
        from mindspore_lite.conversion import convert as pipeline

        report = pipeline.convert(job, step)
        if options.check:
            step("comparing source and result")
            try:
                difference = pipeline.check(report)
            except LiteError as exc:
                trouble = exc.prefixed("the model was converted, but cannot be compared: ")
    show_report(report, difference, read.warnings)
    if trouble is not None:
        raise trouble


def job_of(
    source: Path, output: str | None, options: Options, settings: Sections, reading: Reading
) -> Job:
    """The job that the options describe; `reading` gets everything wrong with them."""
    from mindspore_lite.conversion.sources import framework_of

    level = reading.take("general", level_of, options.optimize)
    encrypt = reading.take("", key_text, options.encrypt_key)
    decrypt = reading.take("", key_text, options.decrypt_key)
    return Job(
        framework=options.framework.upper() or reading.take("ONNX", framework_of, source),
        model=source,
        output=reading.take(Path(), output_path, output or beside(str(source))),
        shapes=reading.take({}, _shapes, options.shape or []),
        optimize=level,
        input_format=options.input_format or "",
        output_format=options.output_format or "",
        input_type=TYPES.get(options.input_type.upper(), options.input_type),
        output_type=TYPES.get(options.output_type.upper(), options.output_type),
        weight_fp16=options.fp16,
        infer=options.infer,
        decrypt=reading.take(None, decryption, decrypt, options.decrypt_mode),
        encrypt_key=reading.take(None, encryption_key, encrypt, None),
        settings=merged(settings, _quantisation(options.quantise)),
        samples=samples_of(options, settings),
        external_above=options.external_above,
        trust_pickle=options.trust_pickle,
        may_replace=bool(output),
    )


def show_report(report: Report, difference: Difference | None, more: tuple[str, ...] = ()) -> None:
    """What a conversion did, for people."""
    say(
        f"{printable(str(report.files[0]))}, {size_text(report.written_bytes)} "
        f"(source: {size_text(report.source_bytes)})"
    )
    for file in report.files[1:]:
        say(f"  and {printable(str(file))}")
    say()
    _show_operators(report.before, report.after)
    _show_counts("done", report.done)
    if report.quantised is not None:
        _show_quantisation(report.quantised)
    if report.custom:
        say("travel as Custom, which only this package runs:")
        for reason, nodes in report.custom.items():
            say(f"  {printable(reason)} (at {listed(nodes)})")
    for text in dict.fromkeys((*more, *report.warnings)):
        say(f"warning: {printable(text)}")
    if difference is not None:
        say(
            f"largest difference between source and result: {difference.relative:.2g} of the "
            f"largest value, in {printable(difference.output)}"
        )


def samples_of(options: Options, settings: Sections) -> DataSettings | None:
    """Where --samples lie; None without.

    Raises:
        SettingsError: At once, and alone: what else is said of it would only confuse.
    """
    flags = (("--mean", options.mean), ("--std", options.std))
    if not options.samples:
        given = [flag for flag, text in flags if text]
        if given:
            raise SettingsError(f"{given[0]} is for the images of --samples")
        if options.quantise == "full" and "data_preprocess_param" not in settings:
            raise SettingsError(
                "--quantise full wants --samples FOLDER, with inputs as they will be sent: images, "
                ".npy, or .npz files"
            )
        return None
    pairs = [text.rpartition("=") for text in options.samples]
    folders = tuple((name, Path(folder)) for name, _, folder in pairs)
    names = [name for name, _ in folders]
    if len(set(names)) < len(names) or ("" in names and len(names) > 1):
        raise SettingsError(
            f"--samples got {options.samples}, wanted one FOLDER, or NAME=FOLDER each"
        )
    mean, std = (_numbers(flag, text) for flag, text in flags)
    if 0 in std:
        raise SettingsError(f"--std got {options.std!r}, wanted numbers other than 0: they divide")
    return DataSettings(folders, ANY, image=ImageSteps(mean=mean, std=std), hold_out=True)


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        found = (math.nan,)
    if len(found) not in (0, 1, 3) or not all(map(math.isfinite, found)):
        raise SettingsError(f"{flag} got {text!r}, wanted 1 or 3 numbers, one for each channel")
    return found


def _show_quantisation(found: QuantReport) -> None:
    say(
        f"quantised ({found.kind}): {found.quantised} weights, {size_text(found.bytes_before)} "
        f"became {size_text(found.bytes_after)}"
    )
    for reason, count in found.skipped.items():
        say(f"  left as they were: {count}, {printable(reason)}")
    if math.isnan(found.largest_difference):
        say(f"  not compared: {found.compared_on}")
    else:
        say(
            f"  largest difference {found.largest_difference:.2g} of the largest value, cosine "
            f"{found.cosine:.6f}, on {found.compared_on}"
        )
        if found.kind == "FULL_QUANT" and found.compared_on == "calibration data":
            say("  which calibrated the model; with 5 samples or more, some are held out instead")
    if (same := found.top_one) is not None and same.rows:
        rows = "1 row" if same.rows == 1 else f"{same.rows} rows"
        say(
            f"  the same top class in {same.agreed / same.rows:.1%} of {rows}, if "
            f"{printable(same.output)} holds classes"
        )
    if found.layers:
        say("  layers that lose most, as a share of their own output:")
        show_table(
            [(f"  {one.loss:.2%}", one.operator, one.name) for one in found.layers[:_SHOWN_LAYERS]]
        )


def _show_operators(before: Counter[str], after: Counter[str]) -> None:
    say(f"{before.total()} operators became {after.total()} primitives")
    left, right = ([f"{count} {name}" for name, count in _most(side)] for side in (before, after))
    rows = max(len(left), len(right))
    pad = [""] * rows
    show_table([("before", "after"), *zip((left + pad)[:rows], (right + pad)[:rows], strict=True)])


def _most(side: Counter[str]) -> list[tuple[str, int]]:
    ordered = sorted(side.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(count for _, count in ordered[_SHOWN:])
    return ordered[:_SHOWN] + ([("of other kinds", rest)] if rest else [])


def _show_counts(title: str, counts: Mapping[str, int]) -> None:
    if counts:
        say(f"{title}: " + ", ".join(f"{what} {count}" for what, count in counts.items()))


def _shapes(given: list[str]) -> Sizes:
    """`NAME=1,3` of each --shape."""
    reading = Reading()
    shapes: Sizes = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        if not equals or name in shapes:
            reading.problems.append(f"--shape got {text!r}, wanted NAME=1,3,224,224, once a name")
        else:
            nothing: Sizes = {}
            shapes |= reading.take(nothing, parse_shapes, f"{name}:{sizes}", "--shape")
    if reading.problems:
        raise ValueError("\n".join(reading.problems))
    return shapes


def _quantisation(kind: str | None) -> Sections:
    if kind is None:
        return {}
    return {"common_quant_param": {"quant_type": f"{kind.upper()}_QUANT"}}
