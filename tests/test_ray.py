from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite import ray as cluster
from mindspore_lite.cli.demo import DIGITS_MODEL

HAS_RAY = importlib.util.find_spec("ray") is not None
NEEDS_RAY = pytest.mark.skipif(not HAS_RAY, reason="the extra ray is not installed")
# a network and processes of its own: nothing is reachable from outside, and all of it ends
ALONE = ["unshare", "--net", "--map-root-user", "--kill-child", "--fork", "--pid", "--mount-proc"]
LOOPBACK = (
    "import fcntl, os, socket, struct, sys\n"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 0x41))\n"  # up, running
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a cluster of two replicas did, with replicas killed under load."""
    if not may_unshare():
        pytest.skip("no namespaces here: Ray would listen on all interfaces")
    folder = tmp_path_factory.mktemp("ray")
    for version in ("1", "2"):
        (folder / "models" / "digits" / version).mkdir(parents=True)
        shutil.copy(DIGITS_MODEL, folder / "models" / "digits" / version / "model.mindir")
    tests = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(tests), "RAY_TMPDIR": "/tmp"}
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", LOOPBACK, "-m", "support.ray_cluster", folder / "models"],
        capture_output=True, text=True, timeout=400, env=environment, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@NEEDS_RAY
def test_a_handle_computes_arrays(seen: dict[str, Any]) -> None:
    assert seen["handle"] == [1, 10]


@NEEDS_RAY
def test_replicas_that_are_killed_cost_no_request(seen: dict[str, Any]) -> None:
    assert seen["killed"] >= 3
    assert seen["kills"] == {"answers": 2000, "failed": [], "values": 1, "versions": ["1"]}


@NEEDS_RAY
def test_the_ingress_is_the_server(seen: dict[str, Any]) -> None:
    assert seen["unknown"] == 404
    assert seen["dashboard"] == 200


@NEEDS_RAY
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"replicas": 0}, "replicas"),
        ({"replicas": (3, 2)}, "the least and then the most"),
        ({"cpus": 0}, "cpus"),
        ({"queue": 0}, "queue"),
        ({"versions": {"other": "1"}}, "versions names"),
        ({"retry": {"other": False}}, "retry names"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cluster.app(DIGITS_MODEL, **arguments)
