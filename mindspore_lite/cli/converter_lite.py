"""The command `converter_lite`: the original's flags, lines and exit codes, on our converter.

The exit code is the low byte of a status: 0 done, 168 (-600) wrong flags, 253 (-3) flags missing,
249 (-7) not supported, 212 (-300) unsupported operators, 255 (-1) anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mindspore_lite.cli.console import complain, run_script, say, steps
from mindspore_lite.cli.flags import TRUTH, Flag, parse, usage
from mindspore_lite.cli.jailed import check_framework, converter_lite_jailed
from mindspore_lite.cli.key_text import key_text
from mindspore_lite.conversion.job import (
    FRAMEWORKS,
    LEVELS,
    TYPES,
    Job,
    Reading,
    beside,
    decryption,
    encryption_key,
    level_of,
    output_path,
    refuse,
)
from mindspore_lite.conversion.setting_names import CONVERTER_LITE, asked_by
from mindspore_lite.conversion.settings_file import MODEL, SettingsFile, read_settings_file
from mindspore_lite.conversion.shape_text import parse_shapes
from mindspore_lite.errors import (
    EngineUnavailableError,
    LiteError,
    SettingsError,
    ShapeError,
    UnsupportedOpError,
)
from mindspore_lite.settings.read import Sections

ERROR, MISSING, UNSUPPORTED, NO_OPERATOR, ILLEGAL = -1, -3, -7, -300, -600
TEXTS = {
    ERROR: "Common error code.",
    MISSING: "Invalid parameter.",
    UNSUPPORTED: "Fail to support.",
    NO_OPERATOR: "Failed to find operator.",
    ILLEGAL: "Invalid input param by user.",
}
_NEEDED = {"fmk": "fmk", "modelFile": "model file path", "outputFile": "output file path"}
_NOT_HERE = {
    "OM": "models of fmk OM are compiled for Ascend, and only an Ascend device can run them",
    "MSLITE": "fmk MSLITE is for generating C code, which is not done here",
}
_DEVICES = {
    "Ascend": "ascend_oriented",
    "Ascend310": "ascend_oriented",
    "Ascend310P": "ascend_oriented",
    "GPU": "gpu_oriented",
}
FLAGS = {
    "help": Flag("Print this.", is_bool=True),
    "fmk": Flag(f"Framework of the model: {'|'.join(FRAMEWORKS)}. Needed."),
    "modelFile": Flag("The model. Needed."),
    "outputFile": Flag("Where the MindIR goes; .mindir is added. Needed."),
    "weightFile": Flag("Weights of a Caffe model."),
    "configFile": Flag("Configuration: quantisation and more. Alone: models of [model_param]."),
    "inputShape": Flag("Fix shapes of inputs: name:1,3,224,224;name2:1."),
    "inputDataFormat": Flag("Layout of inputs with four dims: NCHW|NHWC. Default: as they are."),
    "outputDataFormat": Flag("Layout of outputs with four dims: NCHW|NHWC. Default: as they are."),
    "inputDataType": Flag(f"Type of the inputs: {'|'.join(TYPES)}."),
    "outputDataType": Flag("Type of the outputs: FLOAT|FLOAT32|FLOAT16|INT8|UINT8|DEFAULT."),
    "fp16": Flag("Store float32 weights as float16: on|off. Default: off."),
    "saveType": Flag("MINDIR, which is the default."),
    "optimize": Flag(f"{'|'.join(LEVELS)}, the last also with :CHIP. Default: general."),
    "device": Flag(f"Optimise for a device, instead of optimize: {'|'.join(_DEVICES)}."),
    "infer": Flag("Run the result once. Default: false.", is_bool=True),
    "decryptKey": Flag("Key of an encrypted MINDIR: hexadecimal digits, @FILE or env:NAME."),
    "decryptMode": Flag("AES-GCM|AES-CBC. Default: AES-GCM."),
    "encryption": Flag("Encrypt the result. Default: true with encryptKey.", is_bool=True),
    "encryptKey": Flag("32 hexadecimal digits, @FILE or env:NAME; others see what you type."),
    "trainModel": Flag("Only false is possible.", is_bool=True),
    "optimizeTransformer": Flag("Without effect.", is_bool=True),
    "trustPickle": Flag("Let a .pt file run the code that it holds.", is_bool=True),
    "sandbox": Flag("Convert in a child that reaches the model's folder alone.", is_bool=True),
}
_EXAMPLE = (
    "Example: converter_lite --fmk=ONNX --modelFile=net.onnx --outputFile=net "
    '--inputShape="x:1,3,224,224"'
)
_IMPLIED = "outputFile is implied"  # no flag of users: nobody asked for the model to be replaced
_MODEL_PARAM = (  # what a [model_param] may hold: flags, and NoFusion; outputFile is an addition
    "fmk", "modelFile", "outputFile", "inputDataType", "outputDataType", "fp16", "trainModel",
    "inputShape", "inputDataFormat", "infer", "NoFusion",
)  # fmt: skip


def main() -> None:
    """Entry point of the console script."""
    run_script(run)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; the status is 0 or one of the numbers above."""
    with asked_by(CONVERTER_LITE):
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    parsed = parse(arguments, FLAGS)
    if parsed.problems:
        complain(*parsed.problems, help_text())
        say(f"Flags PreInit failed. Ret: {ILLEGAL}")
        return ILLEGAL
    flags = parsed.flags
    if flags.get("help") == "true":
        say(help_text())
        return 0
    if not flags:
        say(help_text())
    alone = len(flags) == 1 and "configFile" in flags
    if len(flags) < 2 and not alone:
        return failed(
            MISSING,
            "Flag missing: one model needs --fmk, --modelFile and --outputFile; several need "
            "--configFile alone, with a [model_param] for each",
        )
    try:
        if flags.pop("sandbox", "false") == "true" and flags.keys() >= _NEEDED.keys():
            check_framework(flags["fmk"])
            return converter_lite_jailed(flags)
        read = read_settings_file(Path(flags["configFile"])) if "configFile" in flags else None
        return convert_all(models_of(read) if alone and read else [flags], read)
    except SettingsError as exc:
        return illegal(exc.problems or str(exc).splitlines())
    except UnsupportedOpError as exc:
        return failed(NO_OPERATOR, str(exc), *unsupported_block(flags.get("fmk", ""), exc))
    except EngineUnavailableError as exc:
        return failed(UNSUPPORTED, str(exc))
    except ShapeError as exc:
        return failed(ILLEGAL, str(exc))
    except (LiteError, OSError) as exc:
        return failed(ERROR, str(exc))


def convert_all(models: Sequence[Mapping[str, str]], read: SettingsFile | None) -> int:
    """Convert one model after the other, once all that was asked for was found to make sense."""
    from mindspore_lite.conversion.convert import carried, convert

    refused = [_NOT_HERE[m["fmk"]] for m in models if m.get("fmk") in _NOT_HERE]
    refused += [
        "trainModel=true: training is not done here" for m in models if _on(m, "trainModel")
    ]
    if refused:
        return failed(UNSUPPORTED, *refused)
    jobs = []
    problems: list[str] = []
    for flags in models:
        reading = Reading()
        jobs.append(job_of(flags, reading, {} if read is None else read.sections))
        try:
            refuse(jobs[-1], reading.problems)
        except SettingsError as exc:
            problems += exc.problems
    if problems:
        raise SettingsError("", problems)
    notes = [] if read is None else list(read.warnings)
    notes += ["optimizeTransformer has no effect"] * _on(models[0], "optimizeTransformer")
    for job in jobs:
        with steps(f"converting {job.model.name}") as step:
            report = convert(job, step)
        notes += [*report.warnings, *carried(report)]
    complain(*(f"WARNING: {note}" for note in dict.fromkeys(notes)))
    say("CONVERT RESULT SUCCESS:0")
    return 0


def models_of(read: SettingsFile) -> list[dict[str, str]]:
    """The flags of each [model_param]; without outputFile a result goes next to its model."""
    if not read.models:
        raise SettingsError("", [f"configFile has no [{MODEL}]; name one model by flags instead"])
    problems, models = [], []
    for model in read.models:
        problems += [
            f"`{key}` is not supported in [{MODEL}]" for key in model if key not in _MODEL_PARAM
        ]
        flags = {"outputFile": beside(model.get("modelFile", "")), **model}
        if "outputFile" not in model:
            flags[_IMPLIED] = "true"
        if flags.pop("NoFusion", "false").lower() == "true":
            flags["optimize"] = "none"
        problems += [
            f"{key} must be true or false, but got {flags[key]!r}"
            for key in ("infer", "trainModel")
            if flags.get(key, "true").lower() not in TRUTH
        ]
        models.append(flags)
    outputs = [flags["outputFile"] for flags in models if flags["outputFile"]]
    twice = sorted({name for name in outputs if outputs.count(name) > 1})
    problems += [f"two models go to outputFile {name!r}" for name in twice]
    if problems:
        raise SettingsError("", problems)
    return models


def job_of(flags: Mapping[str, str], reading: Reading, settings: Sections) -> Job:
    """The job that flags describe; `reading` gets everything wrong with them."""
    reading.problems += [
        f"INPUT MISSING: {what} is necessary" for name, what in _NEEDED.items() if name not in flags
    ]
    if flags.get("fp16", "off") not in ("on", "off"):
        reading.problems.append(
            f"Init save_fp16 failed. fp16 must be on or off, but got {flags['fp16']!r}"
        )
    level = reading.take("general", _level, flags)
    decrypt = reading.take("", key_text, flags.get("decryptKey", ""))
    encrypt = reading.take("", key_text, flags.get("encryptKey", ""))
    wanted = _on(flags, "encryption") if "encryption" in flags else None
    output = flags.get("outputFile")
    return Job(
        framework=flags.get("fmk", "ONNX"),
        model=Path(flags.get("modelFile", "")),
        output=Path() if output is None else reading.take(Path(), output_path, output),
        weights=Path(flags["weightFile"]) if "weightFile" in flags else None,
        shapes=reading.take({}, parse_shapes, flags.get("inputShape", ""), "inputShape"),
        optimize=level,
        input_format=flags.get("inputDataFormat", ""),
        output_format=flags.get("outputDataFormat", ""),
        input_type=_type(flags.get("inputDataType", "DEFAULT")),
        output_type=_type(flags.get("outputDataType", "DEFAULT")),
        weight_fp16=flags.get("fp16") == "on",
        save_type=flags.get("saveType", "MINDIR"),
        infer=_on(flags, "infer"),
        decrypt=reading.take(None, decryption, decrypt, flags.get("decryptMode", "AES-GCM")),
        encrypt_key=reading.take(None, encryption_key, encrypt, wanted),
        settings=settings,
        trust_pickle=_on(flags, "trustPickle"),
        may_replace=_IMPLIED not in flags,
    )


def help_text() -> str:
    """What the command can do."""
    return (
        "Usage: converter_lite --fmk=FRAMEWORK --modelFile=MODEL --outputFile=OUTPUT [FLAGS]\n"
        f"{usage(FLAGS)}\n{_EXAMPLE}"
    )


def illegal(problems: Sequence[str]) -> int:
    """Say what is wrong with the flags."""
    for problem in problems:
        known = problem.startswith(("INPUT ", "Init "))
        complain(problem if known else f"INPUT ILLEGAL: {problem}")
    say(f"Flags Init failed. Ret: {ILLEGAL}")
    return ILLEGAL


def failed(status: int, *reasons: str) -> int:
    """Say why it failed, and the line that programs look for."""
    complain(*reasons)
    say(f"Convert failed. Ret: {TEXTS[status]}")
    return status


def unsupported_block(framework: str, exc: UnsupportedOpError) -> list[str]:
    """The block that the original logs."""
    if not exc.problems:
        return []
    rule = "=" * 41
    rows = [f"FMKTYPE: {framework}, OP TYPE: {reason}" for reason in exc.problems]
    return [rule, "UNSUPPORTED OP LIST:", *rows, rule]


def _on(flags: Mapping[str, str], name: str) -> bool:
    return flags.get(name, "false").lower() == "true"


def _level(flags: Mapping[str, str]) -> str:
    device = flags.get("device")
    if device is None:
        return level_of(flags.get("optimize", "general"))
    if device not in _DEVICES:
        raise ValueError(f"device must be {'|'.join(_DEVICES)}, but got {device!r}")
    return _DEVICES[device]


def _type(text: str) -> str:
    return TYPES.get(text, text)  # an unknown word is reported with the rest
