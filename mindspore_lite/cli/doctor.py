"""`mslite doctor`: what is installed, what this process may use, and whether a model runs."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

from mindspore_lite.cli.console import fail, say, working
from mindspore_lite.cli.demo import DIGITS_MODEL, samples
from mindspore_lite.engines import cache, select
from mindspore_lite.errors import LiteError
from mindspore_lite.model import Model, ModelType
from mindspore_lite.pool import cores
from mindspore_lite.version import __version__

_PACKAGES = ("numpy", "protobuf", "onnx", "onnx-ir", "onnxruntime")


def doctor() -> None:
    """Show versions, engines, cores, cache, and run a model as a test; exit 1 if none can run."""
    say(f"mslite {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package in _PACKAGES:
        say(f"  {package}: {_version(package)}")
    say("engines:")
    for name, version, note in select.available():
        say(f"  {name}: {version or 'not available'} ({note})")
    _show_devices()
    _show_cores()
    _show_cache()
    try:
        with working("running the embedded model"):
            score = _self_test()
    except (LiteError, ValueError) as exc:
        fail(f"no model can run: {exc}", code=1)
    say(f"self-test: the embedded model runs, {score}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"missing: pip install {package}"


def _show_devices(root: Path = Path("/")) -> None:
    say("devices:")
    say(f"  cpu: {_cpu_name(root / 'proc/cpuinfo')}")
    for name, pattern in {"gpu": "nvidia[0-9]*", "ascend": "davinci[0-9]*"}.items():
        count = len(list((root / "dev").glob(pattern)))
        say(f"  {name}: {f'{count} found, not used in this version' if count else 'none found'}")


def _cpu_name(cpuinfo: Path) -> str:
    try:
        names = re.findall(r"^model name\s*:\s*(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        names = []
    return str(names[0]) if names else platform.machine()


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
    state = cache.describe()
    say("compile cache:")
    say(f"  place: {state.place}")
    if not state.enabled:
        say(f"  not used: {state.reason}")
        return
    size, most = state.size_bytes / 2**20, state.max_bytes / 2**20
    say(f"  {state.entries} models, {size:.1f} MiB of at most {most:.0f} MiB")


def _self_test() -> str:
    images, labels = samples()
    with Model() as model:
        model.build_from_file(str(DIGITS_MODEL), ModelType.MINDIR)
        (output,) = model.predict([images])
    right = int((output.get_data_to_numpy().argmax(1) == labels).sum())
    return f"{right} of {len(labels)} digits right"
