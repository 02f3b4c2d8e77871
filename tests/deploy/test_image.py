"""The image of deploy/Dockerfile, built and run.

It takes minutes and needs root, buildah, debootstrap and a way to PyPI, so it is off by default:

    MSLITE_TEST_IMAGE=1 python -m pytest -q tests/deploy/test_image.py

MSLITE_TEST_IMAGE may also name an image of buildah's vfs store, which is then not built.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.containers import LIMIT_S, ROOT, Image, missing_tools, mounted, running

WANTED = os.environ.get("MSLITE_TEST_IMAGE", "")
DIGITS = ROOT / "mindspore_lite/cli/data/digits.mindir"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
CLIENT = """
import sys
import numpy as np
import tritonclient.grpc, tritonclient.http
digit = np.fromfile(sys.argv[1], dtype=np.float32).reshape(1, 1, 8, 8)
for kind, port in ((tritonclient.http, 8000), (tritonclient.grpc, 8001)):
    given = kind.InferInput("x", list(digit.shape), "FP32")
    given.set_data_from_numpy(digit)
    with kind.InferenceServerClient(f"127.0.0.1:{port}") as client:
        answer = client.infer("digits", [given])
        print(answer.as_numpy("Default/Softmax-op0").argmax())
"""
pytestmark = pytest.mark.skipif(not WANTED, reason="slow; set MSLITE_TEST_IMAGE=1 to build and run")


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if reason := missing_tools():
        pytest.skip(reason)
    tag = WANTED
    if WANTED == "1":
        tag = "localhost/mslite:test"
        command = [sys.executable, "scripts/image", "--chroot", "--debootstrap", "bookworm"]
        if AUTHORITIES.exists():
            command += ["--ca", str(AUTHORITIES)]
        subprocess.run([*command, "--tag", tag], cwd=ROOT, check=True)
    with mounted(tag) as found:
        yield found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder that others may read, with one model."""
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    (tmp_path / "digits.mindir").write_bytes(DIGITS.read_bytes())
    return tmp_path


def test_the_image_says_what_it_is(image: Image) -> None:
    config = image.config
    assert config["User"] == "65532:65532"
    assert config["Healthcheck"]["Test"][0] == "CMD"
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "mslite"
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert len(labels["org.opencontainers.image.revision"].removesuffix("-modified")) == 40
    found = json.loads((image.root / "opt/mslite/sbom.cdx.json").read_text(encoding="utf-8"))
    listed = {one["name"].lower().replace("_", "-") for one in found["components"]}
    folders = (image.root / "opt/mslite/lib").glob("python3*/site-packages/*.dist-info")
    there = {folder.name.split("-")[0].lower().replace("_", "-") for folder in folders}
    assert there - {"mslite"} == listed
    assert "pip" not in listed


def test_it_serves_with_a_read_only_root(image: Image, models: Path) -> None:
    with running(image, models) as container:
        assert container.run(*image.config["Healthcheck"]["Test"][1:]).returncode == 0
        assert container.run("/usr/bin/id", "-u").stdout.strip() == "65532"
        assert "Read-only" in container.run("/usr/bin/touch", "/opt/mslite/x").stderr
        digit = str(ROOT / "examples/quick_start/input.bin")
        asked = container.ask(sys.executable, "-c", CLIENT, digit)
        assert (asked.stdout.split(), asked.stderr) == (["7", "7"], "")
        kept = container.run("/usr/bin/find", "/cache/mslite", "-name", "*.onnx").stdout
        assert kept != ""  # the compile cache is in use
        os.kill(container.pid, signal.SIGTERM)
        _, said = container.engine.communicate(timeout=LIMIT_S)
        assert container.engine.returncode == 0, said
        assert "compiled model not kept" not in said


def test_a_user_without_a_name_may_run_it(image: Image, models: Path) -> None:
    other = Image(image.root, {**image.config, "User": "1000810000:0"})
    with running(other, models) as container:
        assert container.run(*image.config["Healthcheck"]["Test"][1:]).returncode == 0
