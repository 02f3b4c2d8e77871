"""KServe's own client against `mslite serve`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.serve_process import LIMIT_S, serve_process

from mindspore_lite.cli.demo import samples

CLIENT = Path(__file__).parent.parent / "support/kserve_client.py"


@pytest.mark.skipif(
    find_spec("kserve") is None, reason="kserve is not installed; make test installs it"
)
def test_the_client_of_kserve() -> None:
    with serve_process("--demo") as server:
        command = [sys.executable, str(CLIENT), str(server.http_port), str(server.grpc_port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    digits = [int(one) for one in samples()[1][:5]]
    probes = {"ready": True, "live": True, "model": True, "unknown": False}
    assert json.loads(done.stdout) == {
        "rest": {**probes, "json": digits, "binary": digits},
        "grpc": {**probes, "contents": digits, "raw": digits},
    }
