"""Runs a conversion: loads the source, transforms it, writes MindIR, reports what was done.

Nothing appears under the name of the output before all went well, the trial run included; what was
there before stays until then.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx_ir as ir

from mindspore_lite.conversion.check import Difference, difference, run_once
from mindspore_lite.conversion.half_weights import halve_weights
from mindspore_lite.conversion.job import Job, listed, overwritten, settled, split_paths
from mindspore_lite.conversion.quant_report import QuantReport
from mindspore_lite.conversion.quant_settings import QuantSettings, settings_of
from mindspore_lite.conversion.settings_file import wishes_of
from mindspore_lite.conversion.sources import Origin, files_of, load
from mindspore_lite.core.boundary import resource_error
from mindspore_lite.core.dtypes import no_strings
from mindspore_lite.errors import LiteError, ModelFileError, ShapeError, UnsupportedOpError
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir import records
from mindspore_lite.mindir.decrypt import Key, check_library
from mindspore_lite.mindir.encrypt import encrypted
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.borders import set_layouts, set_types
from mindspore_lite.passes.edit import dims_of
from mindspore_lite.passes.fix_shapes import REPLACED, described, fix_shapes
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.opset import upgraded
from mindspore_lite.passes.optimise import optimise
from mindspore_lite.settings.ascend_shapes import problems

Step = Callable[[str], None]  # called when a stage begins
_MAX_TEXT = 500  # characters of a foreign error that are passed on
_DATA = re.compile(r"data_[0-9]+")  # files of weights


@dataclass(frozen=True)
class Report:
    """What a conversion did."""

    job: Job  # with what its settings added
    before: Counter[str]  # operators of the source
    after: Counter[str]  # primitives of the result
    done: Mapping[str, int]  # what each pass did, and how often
    custom: Mapping[str, list[str]]  # "operator: reason" -> nodes that travel as they are
    quantised: QuantReport | None
    warnings: tuple[str, ...]
    files: tuple[Path, ...]  # the first is the one to load
    source_bytes: int
    written_bytes: int


def convert(job: Job, step: Step = lambda text: None) -> Report:
    """Convert a model.

    Raises:
        SettingsError: The job makes no sense; every reason at once.
        ModelFileError: A file cannot be read or written.
        LiteError: The model cannot be converted, or its result does not run.
    """
    stage = "looking at what was asked for"

    def told(text: str) -> None:
        nonlocal stage
        stage = text
        step(text)

    try:
        return _converted(job, told)
    except LiteError:
        raise
    except Exception as exc:  # a file may hold anything: no traceback for that
        if (limit := resource_error(exc)) is not None:
            raise limit from exc
        raise ModelFileError(
            f"{str(job.model)!r} cannot be converted, {type(exc).__name__} while {stage}: "
            f"{str(exc)[:_MAX_TEXT]}; where the model is valid, this is a fault of the converter"
        ) from exc


def _converted(job: Job, step: Step) -> Report:
    job, warnings = settled(job)
    settings = _quantisation(job)
    if job.encrypt_key is not None:
        check_library()  # not only when all the work is done
    step(f"reading {job.model.name}")
    model = load(replace(_origin(job), step=step))
    _refuse_strings(model)
    _check_open_shapes(model, job)
    before, source_bytes = _operators(model), _source_bytes(job)
    step("fitting it to what was asked for")
    model = upgraded(model)
    done = _fit(model, job)
    step("optimising")
    done |= optimise(model, job.optimize, step)
    quantised = None
    if settings is not None:
        from mindspore_lite.conversion.quantise import quantise  # which loads the runtime

        model, quantised = quantise(model, settings, step)
        infer_shapes(model)  # which the new nodes lack, and writing needs
    if job.weight_fp16:
        halved = halve_weights(model)
        done["weights stored as float16"] = halved.count
        done["weights that float16 cannot hold, left"] = len(halved.left)
    step("translating to MindIR")
    written = to_mindir(model)
    # shape inference does not look at everything: what was exported for other sizes is tried
    files, more = _write(job, written.model, step, job.infer or bool(done.get(REPLACED)))
    return Report(
        job=job,
        before=before,
        after=written.primitives,
        done={what: count for what, count in done.items() if count},
        custom=written.custom,
        quantised=quantised,
        warnings=(*warnings, *more),
        files=files,
        source_bytes=source_bytes,
        written_bytes=sum(file.stat().st_size for file in files),
    )


def check(report: Report) -> Difference:
    """How far the result of a conversion lies from its source, on made-up inputs."""
    source = load(_origin(report.job))
    if report.job.shapes:  # constants of older opsets lie elsewhere
        source = upgraded(source)
    _fit(source, report.job)
    return difference(source, report.files[0], _key(report.job))


def carried(report: Report) -> list[str]:
    """What should be said about nodes without a MindSpore equivalent, if there are any."""
    if not report.custom:
        return []
    count = sum(len(nodes) for nodes in report.custom.values())
    what = "; ".join(f"{reason} ({', '.join(nodes)})" for reason, nodes in report.custom.items())
    return [f"{count} node(s) travel as Custom, which only this package runs: {what}"]


def _origin(job: Job) -> Origin:
    return Origin(
        job.framework,
        job.model,
        weights=job.weights,
        key=job.decrypt,
        trust_pickle=job.trust_pickle,
        shapes=job.shapes,
    )


def _refuse_strings(model: ir.Model) -> None:
    """What would be written could not be run."""
    for kind, ends in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        for value in ends:
            if value.dtype == ir.DataType.STRING:
                raise UnsupportedOpError(no_strings(kind, str(value.name)))


def _check_open_shapes(model: ir.Model, job: Job) -> None:
    """Refuse open shapes of [ascend_context] that do not fit; here they have no other effect."""
    wishes = wishes_of(job.settings)
    if not wishes.open_shapes and not wishes.profiles:
        return
    inputs = {
        str(value.name): [-1 if dim is None else dim for dim in dims_of(value) or ()]
        for value in model.graph.inputs
        if value.shape is not None
    }
    sizes = inputs | {name: list(dims) for name, dims in job.shapes.items() if name in inputs}
    if found := problems(tuple(wishes.open_shapes.items()), wishes.profiles, sizes):
        known = ", ".join(described(value) for value in model.graph.inputs)
        raise ShapeError(
            f"[ascend_context] does not fit the model: {'; '.join(found)}. Its inputs: {known}"
        )


def _fit(model: ir.Model, job: Job) -> dict[str, int]:
    """Give a model the shapes, layouts and types that were asked for; returns what was done."""
    done = fix_shapes(model, job.shapes)
    if job.input_format or job.output_format:
        if any(value.shape is None for value in model.graph.outputs):
            infer_shapes(model)  # exporters may leave it out, and only four dims have a layout
        set_layouts(model, job.input_format, job.output_format)
    if job.input_type or job.output_type:
        set_types(model, job.input_type, job.output_type)
    return done


def _operators(model: ir.Model) -> Counter[str]:
    """How often each operator stands in a model, its sub-graphs included."""
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    return Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in nodes)


def _quantisation(job: Job) -> QuantSettings | None:
    """What the settings say; calibration data lie as the inputs shall, where that was said."""
    found = settings_of(job.settings, job.samples)
    if found is None or found.data is None or not job.input_format:
        return found
    return replace(found, data=replace(found.data, layout=job.input_format))


def _source_bytes(job: Job) -> int:
    """How large the source is, none of whose files may be overwritten."""
    files = files_of(_origin(job))
    if problems := overwritten(job, files):
        raise ModelFileError(listed(problems))
    return sum(file.stat().st_size for file in files)


def _write(
    job: Job, model: records.Model, step: Step, trial: bool
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files, in place, and warnings; a trial run comes first where one is wanted."""
    folder = job.output.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        step(f"writing {job.output.name}")
        old = _old_data(job.output)
        if not trial:
            files = _stored(job, model, job.output, old)
            _drop(old, files)
            return files, ()
        with tempfile.TemporaryDirectory(dir=folder, prefix=".mslite-") as aside:
            made = _stored(job, model, Path(aside, job.output.name), old)
            step("running the result once")
            warnings = run_once(made[0], _key(job))
            for file in reversed(made):  # the graph last: it is what names the data
                _move(file, folder / file.relative_to(aside))
        files = tuple(folder / file.relative_to(aside) for file in made)
        _drop(old, files)
        return files, warnings if job.infer else ()
    except OSError as exc:
        reason = exc.strerror or exc
        raise ModelFileError(f"cannot write {str(job.output)!r}: {reason}") from exc


def _old_data(output: Path) -> frozenset[Path]:
    """The data of a graph that the result replaces; it is used until the new graph is there."""
    graph, data = split_paths(output)
    if not graph.is_file() or not data.parent.is_dir():
        return frozenset()
    return frozenset(file for file in data.parent.iterdir() if _DATA.fullmatch(file.name))


def _stored(job: Job, model: records.Model, path: Path, old: frozenset[Path]) -> tuple[Path, ...]:
    """Write the files; data get a name that no old ones have."""
    cipher = None if job.encrypt_key is None else partial(encrypted, key=job.encrypt_key)
    taken = {file.name for file in old}
    name = next(name for n in itertools.count() if (name := f"data_{n}") not in taken)
    return write_file(model, path, cipher=cipher, external_above=job.external_above, data_name=name)


def _drop(old: frozenset[Path], files: tuple[Path, ...]) -> None:
    """Remove data whose graph is no longer there; what cannot be removed does no harm."""
    if len(files) > 1:
        for file in old:
            with contextlib.suppress(OSError):
                file.unlink()


def _key(job: Job) -> Key | None:
    return None if job.encrypt_key is None else Key(job.encrypt_key)


def _move(file: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    file.replace(target)
