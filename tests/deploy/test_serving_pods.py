"""The server, started with the arguments of the manifests, over HTTP and gRPC."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from support.manifests import KSERVE, KUBERNETES, containers, documents, filled, the
from support.repositories import scaled, version

LIMIT_S = 120.0
RUNTIME = the("ClusterServingRuntime", [one for _, one in documents(KSERVE)])
DEPLOYMENT = the("Deployment", [one for _, one in documents(KUBERNETES)])


@contextmanager
def started(arguments: Sequence[str], folder: Path) -> Iterator[dict[str, int]]:
    """Run arguments as they are, but for the models' folder, the loopback and free ports."""
    given = [one.replace("/mnt/models", str(folder)) for one in arguments]
    given = [re.sub(r"(-port=)\d+$", r"\g<1>0", one) for one in given]
    given = [one.replace("--host=0.0.0.0", "--host=127.0.0.1") for one in given]
    command = [sys.executable, "-m", "mindspore_lite", *given]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        ports = re.findall(r"(\w+)://[\d.]+:(\d+)(/metrics)?", line)
        assert ports, (line, child.communicate(timeout=LIMIT_S))
        yield {"metrics" if path else scheme: int(port) for scheme, port, path in ports}
        child.terminate()
        _, said = child.communicate(timeout=LIMIT_S)
        assert child.returncode == 0, said
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate(timeout=LIMIT_S)


def asked(ports: dict[str, int], name: str) -> list[float]:
    """What a model answers to 2.0 over both."""
    found = []
    for kind, scheme in ((tritonclient.http, "http"), (tritonclient.grpc, "grpc")):
        given = kind.InferInput("IN", [1], "FP32")
        given.set_data_from_numpy(np.array([2.0], np.float32))
        with kind.InferenceServerClient(f"127.0.0.1:{ports[scheme]}") as client:
            assert client.is_server_ready() and client.is_model_ready(name)
            found.append(float(client.infer(name, [given]).as_numpy("OUT")[0]))
    return found


def bare_file(folder: Path) -> None:
    scaled(folder / "whatever.onnx", 3.0)


def versions(folder: Path) -> None:
    scaled(folder / "1" / "model.onnx", 3.0)


def repository(folder: Path) -> None:
    version(folder, "inner", 1, 3.0)


@pytest.mark.parametrize("layout", [bare_file, versions, repository])
def test_kserves_runtime_serves_every_layout_under_the_services_name(
    layout: Callable[[Path], None], tmp_path: Path
) -> None:
    layout(tmp_path)
    (container,) = containers([RUNTIME])
    with started(filled(container["args"], "my-service"), tmp_path) as ports:
        assert asked(ports, "my-service") == [6.0, 6.0]


def test_the_runtime_of_repositories_serves_several_models(tmp_path: Path) -> None:
    version(tmp_path, "a", 1, 3.0)
    version(tmp_path, "b", 1, 5.0)
    (container,) = containers([RUNTIME])
    arguments = [one for one in container["args"] if not one.startswith("--model-name")]
    with started(arguments, tmp_path) as ports:
        assert asked(ports, "a") == [6.0, 6.0]
        assert asked(ports, "b") == [10.0, 10.0]


def test_the_deployment_serves_and_offers_metrics(tmp_path: Path) -> None:
    version(tmp_path, "a", 1, 3.0)
    (container,) = containers([DEPLOYMENT])
    with started(container["args"], tmp_path) as ports:
        assert set(ports) == {"http", "grpc", "metrics"}
        assert asked(ports, "a") == [6.0, 6.0]
