"""`mslite doctor`: what is installed, what this process may use, and whether a model runs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import time
import warnings
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mindspore_lite.cli.console import fail, say, working
from mindspore_lite.cli.demo import DIGITS_MODEL, samples
from mindspore_lite.cli.doctor_config import show_config
from mindspore_lite.cli.inspect import printable, size_text
from mindspore_lite.cli.run import model_type
from mindspore_lite.context import Context
from mindspore_lite.core import cores, landlock, seccomp, synthetic
from mindspore_lite.core.machine import cpu_name
from mindspore_lite.engines import ascend, select
from mindspore_lite.engines.cache import store
from mindspore_lite.errors import LiteError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.model import Model, ModelParallelRunner, ModelType
from mindspore_lite.serving.layout import Layout, Wanted, layout
from mindspore_lite.tensor import Tensor
from mindspore_lite.version import __version__

_PACKAGES = ("numpy", "protobuf", "onnx", "onnx-ir", "onnxruntime")


def doctor(
    model: Path | None = None,
    /,
    *,
    workers: int = 0,
    threads: int = 0,
    config: Path | None = None,
    target: Literal["cpu", "gpu", "ascend"] = "cpu",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show versions, engines, cores, cache, and run a model as a test; exit 1 if it cannot.

    Parameters
    ----------
    model
        The MindIR or ONNX file to run; without one, an embedded model runs.
    workers
        How many requests should run at the same time; 0 decides by the machine.
    threads
        Number of threads of each; 0 decides by the machine.
    config
        Show the settings of this configuration file instead: the value of each, where it came from
        and who reads it, and what in the file has no effect.
    target
        With --config: the target that the settings are for.
    json
        With --config: show them as JSON.
    """
    if config is not None:
        context = Context()
        context.target = [target]
        context.parallel.workers_num, context.cpu.thread_num = workers, threads
        show_config(config, context, as_json=json)
        return
    if json:
        fail("--json goes with --config", code=2)
    say(f"mslite {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package in _PACKAGES:
        say(f"  {package}: {_version(package)}")
    say("engines:")
    for name, version, note in select.available():
        say(f"  {name}: {version or 'not available'} ({note})")
    _show_devices()
    _show_cores()
    _show_cache()
    _show_sandbox()
    _show_server()
    if model is None:
        show_layout(layout(cores.usable(), Wanted(workers, threads)))
        _test_embedded_model()
    else:
        _test_model(model, workers, threads)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"missing: pip install {package}"


def _show_devices(root: Path = Path("/")) -> None:
    say("devices:")
    say(f"  cpu: {cpu_name(root / 'proc')}")
    for name, pattern in {"gpu": "nvidia[0-9]*", "ascend": "davinci[0-9]*"}.items():
        count = len(list((root / "dev").glob(pattern)))
        more = _emulation() if name == "ascend" else ""
        say(f"  {name}: {f'{count} found' if count else 'none found'}{more}")
        if count or (name == "gpu" and select.has_driver()):
            for line in _cards(name, root):
                say(f"    {line}")


def _cards(target: str, root: Path) -> list[str]:
    """What each card of a target is, or why none can be used."""
    from mindspore_lite.engines.torch import cards  # PyTorch takes its time, and may not be there

    try:
        found = cards.listed({"gpu": "cuda", "ascend": "npu"}[target])
    except LiteError as exc:
        return [f"not usable: {exc}"]
    version = _driver(root) if target == "gpu" else ""
    return [
        f"{target}:{number}: {card.name}, {card.memory_bytes / 2**30:.1f} GiB{version}"
        for number, card in enumerate(found)
    ]


def _driver(root: Path) -> str:
    """The version of NVIDIA's driver, as the kernel reports it."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = re.search(r"\s([0-9]+(?:\.[0-9]+)+)\s", text)
    return f", driver {found[1]}" if found else ""


def _emulation() -> str:
    """What the environment adds to the devices that are there."""
    try:
        count = ascend.emulated()
    except LiteError as exc:
        return f"; {exc}"
    return f"; {count} emulated on the CPU" if count else ""


def _show_cores() -> None:
    found = cores.usable()
    say("cores:")
    say(f"  usable: {found.limit} (limit: {found.limit_from})")
    say(f"  ids: {_ranges(found.ids)}, physical cores: {found.physical}")
    say(f"  threads of one request by default: {cores.default_threads(found)}")


def _ranges(ids: tuple[int, ...]) -> str:
    """0,1,2,5 -> 0-2,5."""
    parts: list[list[int]] = []
    for number in ids:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def _show_cache() -> None:
    state = store.describe()
    say("compile cache:")
    say(f"  place: {state.place}")
    if not state.enabled:
        say(f"  not used: {state.reason}")
        return
    size, most = state.size_bytes / 2**20, state.max_bytes / 2**20
    say(f"  {state.entries} models, {size:.1f} MiB of at most {most:.0f} MiB")


def _show_sandbox() -> None:
    say("sandbox (section [build], --sandbox):")
    abi = landlock.abi()
    say(f"  files: {f'Landlock, ABI {abi}' if abi else 'not confined, the kernel has no Landlock'}")
    confined = "seccomp filter" if seccomp.available() else "not confined, no seccomp filter here"
    say(f"  network and processes: {confined}")


def _show_server() -> None:
    say("server (mslite serve):")
    missing = [one for one in ("httptools", "msgspec") if importlib.util.find_spec(one) is None]
    if missing:
        say(f"  not available: {' and '.join(missing)} missing, pip install 'mslite[serve]'")
    elif importlib.util.find_spec("uvloop") is None:
        say("  HTTP: on asyncio's event loop; pip install uvloop for a faster one")
    else:
        say("  HTTP: on uvloop")


def show_layout(plan: Layout) -> None:
    """How concurrent requests share the cores."""
    say("concurrent inference (ModelParallelRunner):")
    say(f"  workers: {plan.workers}, as many requests run at the same time")
    if len(plan.widths) > 1:
        widths = ", ".join(map(str, plan.widths[:-1]))
        say(f"  threads of a request: {widths} while there are few, {plan.threads} in a crowd")
    else:
        say(f"  threads of a request: {plan.threads}")
    say(f"  limit: {plan.usable} usable cores ({plan.limit_from})")
    if not any(plan.cores):
        say("  cores: any, nothing is bound")
    for number, (bound, node) in enumerate(zip(plan.cores, plan.nodes, strict=True)):
        if bound:
            say(f"  worker {number}: cores {_ranges(bound)}, NUMA node {node}")
    if plan.warning:
        say(f"  warning: {plan.warning}")


def _test_embedded_model() -> None:
    try:
        with working("running the embedded model"):
            score = _self_test()
    except (LiteError, ValueError) as exc:
        fail(f"no model can run: {exc}", code=1)
    say(f"self-test: the embedded model runs, {score}")


def _self_test() -> str:
    images, labels = samples()
    with Model() as model:
        model.build_from_file(str(DIGITS_MODEL), ModelType.MINDIR)
        (output,) = model.predict([images])
    right = int((output.get_data_to_numpy().argmax(1) == labels).sum())
    return f"{right} of {len(labels)} digits right"


def _test_model(path: Path, workers: int, threads: int) -> None:
    """Build the user's model for many callers and send it one request."""
    context = Context()
    context.parallel.workers_num, context.cpu.thread_num = workers, threads
    context.parallel.warm_up = False  # the one request should show what it costs
    try:
        with ModelParallelRunner() as runner:
            start = time.perf_counter()
            with working(f"building {path.name}"), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "[0-9]+ workers of")  # the layout shows it
                runner.build_from_file(str(path), context)
            built = time.perf_counter()
            show_layout(runner.statistics().layout)
            say(f"model: {printable(str(path))}")
            say(f"  on disk, weights included: {_size_on_disk(path)}")
            inputs = _synthetic_inputs(runner)
            _show_tensors("input", inputs)
            ready = time.perf_counter()
            outputs = runner.predict(inputs)
            done = time.perf_counter()
    except (LiteError, ValueError) as exc:
        fail(f"the model cannot run: {exc}", code=1)
    _show_tensors("output", outputs)
    say(
        f"  it runs: built in {(built - start) * 1e3:.1f} ms, one request with synthetic inputs "
        f"took {(done - ready) * 1e3:.1f} ms"
    )


def _size_on_disk(path: Path) -> str:
    """The model file with the files that its weights lie in."""
    files = source_of(ModelInput(model_type(path).name, path)).files
    size = size_text(sum(file.stat().st_size for file in files))
    return size if len(files) == 1 else f"{size} in {len(files)} files"


def _synthetic_inputs(runner: ModelParallelRunner) -> list[Tensor]:
    inputs = runner.get_inputs()
    for tensor in inputs:
        tensor.shape = synthetic.closed(tensor.shape)
        like = tensor.get_data_to_numpy()
        tensor.set_data_from_numpy(synthetic.array(like.dtype, like.shape))
    return inputs


def _show_tensors(what: str, tensors: list[Tensor]) -> None:
    for tensor in tensors:
        dtype = tensor.get_data_to_numpy().dtype  # the API has no name for some
        say(f"  {what} {printable(tensor.name)}: {dtype} {tensor.shape}")
