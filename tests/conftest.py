"""What every test gets: a compile cache of its own, never the user's."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import archives, cpp, java

from mindspore_lite.core import extras
from mindspore_lite.engines import ascend

# how long an example takes says nothing on a busy machine
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure() -> None:
    """Undo what the shell may have said of this process and of all that it starts.

    Python shall keep what it compiles: tests start some hundred processes, each of which would
    compile the package anew. Ctrl-C and a hang-up shall be heard, which nohup and scripts that run
    the suite in the background switch off: tests that send them would wait for ever.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def worker_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache per test process: equal models are compiled once, which keeps the suite quick."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(worker_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the compile cache away from the user's; tests that look into it set their own."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(worker_cache))
    for name in ("MSLITE_CACHE", "MSLITE_CACHE_MAX_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return worker_cache


@pytest.fixture(autouse=True)
def no_emulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Target ascend is not there, whatever the developer's shell says; some tests emulate it."""
    for name in (ascend.VARIABLE, ascend.QUIET):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name extras as if mslite came from an index, wherever the developer has it from."""
    monkeypatch.setattr(extras, "origin", lambda: ("", False))


@pytest.fixture(scope="module", autouse=True)
def frozen_past() -> None:
    """Take what was there before a module's tests out of the garbage collector's sight.

    Each model that is compiled asks for a full collection, as many tests do; each time it would
    walk all tests and all imported packages, half a second of objects that nobody lets go.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def case_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a case of tests/data, extracted from its archive on the first call."""
    return partial(archives.extracted, folder=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def cpp_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk cpp` makes, compiled once a test run; tests only read it."""
    return cpp.built_sdk(tmp_path_factory)


@pytest.fixture(scope="session")
def java_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk java` makes, compiled once a test run; tests only read it."""
    return java.built_sdk(tmp_path_factory)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a card where there is none; PyTorch is asked only by tests that need one."""
    if item.get_closest_marker("gpu") is not None:
        torch = pytest.importorskip("torch", reason="no PyTorch: pip install 'mslite[gpu]'")
        if not torch.cuda.is_available():
            pytest.skip("PyTorch sees no NVIDIA card here")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, which would walk the growing list of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many node tests of onnx pass, which no single test knows (test_onnx_conformance)."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    lines = {
        str(line): report.outcome == "passed"
        for report in reports
        for key, line in getattr(report, "user_properties", ())
        if key == "onnx_node_test"
    }
    if not lines:
        return
    forms = {form for line in lines for form in line.split()[1:]}
    operators = {form.removeprefix("Custom(").removesuffix(")") for form in forms}
    real = len(operators & forms)
    terminalreporter.write_line(
        f"ONNX node tests: {len(lines)} pass directly, {sum(lines.values())} through MindIR; "
        f"{real} of {len(operators)} operators ({real / len(operators):.0%}) are written as "
        "MindSpore primitives"
    )
