"""The switch `--sandbox`: a jailed child does the whole conversion or inspection.

The child may read the folder of the model, and writes to a private folder; its files are checked
and moved to where they belong when it has ended, and its text is printed here.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore_lite.cli.console import complain, say, tidy_end, working
from mindspore_lite.core import jail
from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.engines.sandbox import limits
from mindspore_lite.errors import LiteError, ModelFileError, SettingsError

if TYPE_CHECKING:
    from mindspore_lite.cli.convert import Options

_FRAMEWORKS = ("ONNX", "MINDIR", "PYTORCH")  # others are read by a program of their own


def convert_jailed(
    source: Path, output: str | None, options: Options, settings: Path | None
) -> None:
    """Convert a model in a child, then put the result into its place."""
    from mindspore_lite.cli.key_text import key_text
    from mindspore_lite.conversion.job import Job, beside, output_path, replaces_model
    from mindspore_lite.conversion.sources import framework_of

    target = output_path(output or beside(str(source)))
    if options.check and replaces_model(Job(model=source, output=target)):
        raise ModelFileError(
            "--check compares with the source, whose place the result would take; choose another "
            "name"
        )
    check_framework(options.framework.upper() or framework_of(source))
    told = asdict(
        replace(
            options,
            sandbox=False,
            encrypt_key=key_text(options.encrypt_key),
            decrypt_key=key_text(options.decrypt_key),
        )
    )
    told["config"] = None if settings is None else str(settings)
    arguments = {"source": str(source), "options": told}
    samples = [Path(text.rpartition("=")[2]) for text in options.samples or []]
    task = f"{__name__}:convert_task"
    ended = _converted(task, arguments, source, target, settings, samples, named=bool(output))
    if code := _print_alike(ended):
        sys.exit(code)


def converter_lite_jailed(flags: Mapping[str, str]) -> int:
    """Convert as `converter_lite` does with these flags, in a child; returns its status."""
    from mindspore_lite.cli.key_text import key_text
    from mindspore_lite.conversion.job import output_path

    source, target = Path(flags["modelFile"]), output_path(flags["outputFile"])
    settings = Path(flags["configFile"]) if "configFile" in flags else None
    told = {
        name: key_text(text) if name in ("encryptKey", "decryptKey") else text
        for name, text in flags.items()
    }
    task = f"{__name__}:converter_lite_task"
    ended = _converted(task, {"flags": told}, source, target, settings)
    return _print_alike(ended)


def _converted(
    task: str,
    arguments: Mapping[str, Any],
    source: Path,
    target: Path,
    settings: Path | None,
    samples: Sequence[Path] = (),
    named: bool = True,
) -> dict[str, Any]:
    """What a conversion in a child wrote as text; its files are in their place.

    `named`: the user chose the target, which may be the source itself, if that is one file.
    """
    from mindspore_lite.conversion.job import Job, listed, overwritten, split_paths

    one_file = not os.path.exists(split_paths(target)[0])
    if problems := overwritten(
        Job(model=source, output=target, may_replace=named and one_file), [source]
    ):
        raise ModelFileError(listed(problems))
    more = [*samples] if settings is None else [*samples, settings, *_calibration(settings)]
    try:
        with tempfile.TemporaryDirectory(dir=_first_there(target), prefix=".mslite-") as aside:
            inside = {**arguments, "output": str(Path(aside, target.name))}
            ended = _ran(task, inside, f"converting {source.name}", source, Path(aside), more)
            if not ended["code"]:
                _put_in_place(Path(aside), target)
    except OSError as exc:
        raise ModelFileError(f"cannot write {str(target)!r}: {exc.strerror or exc}") from exc
    return _renamed(ended, f"{aside}/", str(target)[: -len(target.name)])


def inspect_jailed(model: Path, as_json: bool, html: Path | None, weights: bool = False) -> None:
    """Look at a model in a child, and print what it says."""
    with tempfile.TemporaryDirectory(prefix="mslite-inspect-") as aside:
        page = Path(aside, "page.html")
        ended = _ran(
            f"{__name__}:inspect_task",
            {
                "model": str(model),
                "as_json": as_json,
                "html": None if html is None else str(page),
                "weights": weights,
            },
            f"inspecting {model.name}",
            model,
            Path(aside),
        )
        if html is not None and page.exists():
            _check_plain(page)
            html.write_bytes(page.read_bytes())
    if code := _print_alike(_renamed(ended, str(page), str(html))):
        sys.exit(code)


def _ran(
    task: str,
    arguments: Mapping[str, Any],
    doing: str,
    model: Path,
    aside: Path,
    more: Sequence[Path] = (),
) -> dict[str, Any]:
    """What a command in a child wrote, and its exit code."""
    size_bytes = _folder_bytes(model.parent)
    with tidy_end(), working(f"{doing} in a sandbox"):
        try:
            told = jail.run(
                task,
                arguments,
                doing=f"{doing} in the sandbox",
                limits=limits(size_bytes, DEFAULT, 4 * size_bytes + (1 << 30)),
                read=[model, model.parent, *more],
                write=[aside],
            )
        except LiteError as exc:
            words = str(exc.args[0]).replace(f"{aside}/", "") if exc.args else ""
            exc.args = (words, *exc.args[1:])
            raise
    fits = isinstance(told, dict) and type(told.get("code")) is int
    if not fits or not all(isinstance(told.get(name), str) for name in ("out", "err")):
        raise ModelFileError(f"{doing} in the sandbox gave no answer that makes sense")
    found: dict[str, Any] = told
    return found


def _renamed(ended: Mapping[str, Any], inside: str, outside: str) -> dict[str, Any]:
    """What a child wrote, with a name that people know."""
    texts = {name: ended[name].replace(inside, outside) for name in ("out", "err")}
    return {**ended, **texts}


def _print_alike(ended: Mapping[str, Any]) -> int:
    """Print what the child wrote; returns its exit code."""
    out, err = (ended[name].removesuffix("\n") for name in ("out", "err"))
    if err:
        complain(err)
    if out:
        say(out)
    return int(ended["code"])


def check_framework(framework: str) -> None:
    """Refuse models that this package does not read itself."""
    if framework not in _FRAMEWORKS:
        raise SettingsError(
            f"a sandbox does not go with models of {framework}: another program reads them, which "
            "it does not start; convert them to ONNX first"
        )


def _calibration(settings: Path) -> list[Path]:
    """The folders of calibration data that a configuration names."""
    from mindspore_lite.conversion.quant_settings import settings_of
    from mindspore_lite.conversion.settings_file import read_settings_file

    found = settings_of(read_settings_file(settings).sections)
    if found is None:
        return []
    if found.debug_folder is not None:
        raise SettingsError(
            "a sandbox does not go with debug_info_save_path, a folder outside; leave one of them "
            "out"
        )
    return [] if found.data is None else [folder for _, folder in found.data.folders]


def _folder_bytes(folder: Path) -> int:
    """What lies in a folder and the folders in it: no model there is larger."""
    total = 0
    for place, inner, names in os.walk(folder):
        if Path(place) != folder:
            inner.clear()
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue  # removed meanwhile
    return total


def _first_there(target: Path) -> Path:
    """The folder of a file, or the first above it that is there."""
    return next(folder for folder in target.absolute().parents if folder.is_dir())


def _put_in_place(aside: Path, target: Path) -> None:
    """Move what a conversion wrote, its names and kinds checked; the graph comes last."""
    from mindspore_lite.conversion.job import split_paths

    graph, data = split_paths(Path(aside, target.name))
    allowed = {data: data.parent.name, Path(aside, target.name): "", graph: ""}
    known = {path.name for path in (data.parent, *allowed)}
    if not set(os.listdir(aside)) <= known:
        raise ModelFileError(
            "what the sandbox wrote is refused: it holds files that a conversion does not write; "
            "the model may have taken over the converter: do not use it"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    for path, folder in allowed.items():
        if not os.path.lexists(path.parent if folder else path):
            continue
        if folder:
            _check_kind(path.parent, stat.S_ISDIR)
            (target.parent / folder).mkdir(exist_ok=True)
        _check_plain(path)
        os.replace(path, target.parent / folder / path.name)


def _check_plain(path: Path) -> None:
    _check_kind(path, stat.S_ISREG)
    if os.lstat(path).st_nlink != 1:
        raise ModelFileError(f"what the sandbox wrote is refused: {path.name} has other names")


def _check_kind(path: Path, is_right: Callable[[int], bool]) -> None:
    if not is_right(os.lstat(path).st_mode):
        raise ModelFileError(f"what the sandbox wrote is refused: {path.name} is of another kind")


def convert_task(arguments: dict[str, Any], blobs: Sequence[bytes]) -> dict[str, Any]:
    """In the child: the command without --sandbox."""
    from mindspore_lite.cli.convert import Options, convert

    told = arguments["options"]
    told["config"] = None if told["config"] is None else Path(told["config"])
    options = Options(**told)
    return _captured(
        lambda: convert(Path(arguments["source"]), arguments["output"], options=options)
    )


def converter_lite_task(arguments: dict[str, Any], blobs: Sequence[bytes]) -> dict[str, Any]:
    """In the child: the command without sandbox."""
    from mindspore_lite.cli.converter_lite import run

    flags = {**arguments["flags"], "outputFile": arguments["output"]}
    return _captured(lambda: run([f"--{name}={text}" for name, text in flags.items()]))


def inspect_task(arguments: dict[str, Any], blobs: Sequence[bytes]) -> dict[str, Any]:
    """In the child: the command without --sandbox."""
    from mindspore_lite.cli.inspect import show_model, show_weights

    if arguments["weights"]:
        return _captured(lambda: show_weights(Path(arguments["model"]), arguments["as_json"]))
    html = None if arguments["html"] is None else Path(arguments["html"])
    return _captured(lambda: show_model(Path(arguments["model"]), arguments["as_json"], html))


def _captured(command: Callable[[], int | None]) -> dict[str, Any]:
    """What a command writes, and the exit code that it ends with."""
    out, err = io.StringIO(), io.StringIO()
    code: Any
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = command() or 0
        except SystemExit as exc:
            code = exc.code or 0
        except (OSError, ValueError) as exc:  # as main() has it
            raise LiteError(str(exc)) from exc
    return {"out": out.getvalue(), "err": err.getvalue(), "code": int(code)}
