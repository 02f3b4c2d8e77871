"""Runs Python code in a child process under Landlock, which may read and write only what is named.

    done = landlocked.run("print(open('/etc/hostname').read())", read=[folder])
    assert "PermissionError" in done.stderr

The child has the sys.path of this process and may read the installation of Python and this package;
all else must be named. The rules hold for native code, too: ONNX Runtime, OpenVINO and PyTorch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from mindspore_lite.core import installation, landlock

needs_landlock = pytest.mark.skipif(
    not landlock.abi(), reason="the kernel has no Landlock, or it is switched off"
)

# before any import that could start a thread: rules bind the calling thread and its children
_START = """
import importlib.util, sys
rules, script, read, write, listed, sys.path[:] = {rules!r}, {script!r}, {read!r}, {write!r}, \
{listed!r}, {path!r}
spec = importlib.util.spec_from_file_location("landlock", rules)
landlock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(landlock)
assert landlock.restrict(read, write, listed=listed, network={network!r})
exec(compile(script, "<landlocked>", "exec"), {{"__name__": "__main__"}})
"""


def run(
    script: str,
    *,
    read: Iterable[str | Path] = (),
    write: Iterable[str | Path] = (),
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    network: bool = False,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a script in a child that may read `read` and `write`, change `write`, and no more.

    Its home and its folder for temporary files are an empty folder that is removed afterwards.

    environment: what else to change of this process's; folders that it names are not added to the
    rules. sys.argv[1:] are the arguments.
    """
    with tempfile.TemporaryDirectory(prefix="landlocked-") as home:
        places = {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": home}
        return subprocess.run(
            [sys.executable, "-I", "-B", "-c", _start(script, read, [*write, home], network)]
            + list(arguments),
            env={**os.environ, **places, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def _start(
    script: str, read: Iterable[str | Path], write: Iterable[str | Path], network: bool
) -> str:
    return _START.format(
        rules=landlock.__file__,
        script=script,
        read=[str(path) for path in (*installation.readable(), *read)],
        write=[str(path) for path in write],
        listed=[str(path) for path in installation.path_folders()],
        path=[str(path) for path in installation.path_folders()],
        network=network,
    )
