"""A Ray cluster on the loopback of its own network namespace: what a test asks of it, as JSON.

`python -m support.ray_cluster FOLDER` runs inside the namespace (test_ray.py makes it): Ray's
helper processes listen on all interfaces, of which there is only the loopback. FOLDER holds
`digits` in two versions. All processes end with the namespace's first one, whatever happens.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

REQUESTS, CLIENTS, BETWEEN_KILLS = 2000, 8, 400
BODY = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64}]}
)


def ask(connection: http.client.HTTPConnection, path: str = "/infer") -> tuple[int, Any]:
    connection.request("POST", f"/v2/models/digits{path}", BODY)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def load(port: int, total: int, act: Callable[[int], None]) -> list[tuple[int, Any]]:
    """Answers to many requests of several clients; `act` is told how many were answered."""
    answers: list[tuple[int, Any]] = []
    lock = threading.Lock()
    left = iter(range(total))

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                if next(left, None) is None:
                    return
            found = ask(connection)
            with lock:
                answers.append(found)
                count = len(answers)
            act(count)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def replicas() -> list[int]:
    """Processes that serve the model."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                words = (one / "cmdline").read_bytes()
            except OSError:
                continue
            if b"ServeReplica:default:digits" in words:
                found.append(int(one.name))
    return found


def summary(answers: list[tuple[int, Any]]) -> dict[str, Any]:
    good = [body for status, body in answers if status == 200]
    return {
        "answers": len(answers),
        "failed": [body for status, body in answers if status != 200][:3],
        "values": len({tuple(body["outputs"][0]["data"]) for body in good}),
        "versions": sorted({body["model_version"] for body in good}),
    }


def main(folder: str) -> dict[str, Any]:
    import ray
    from ray import serve

    import mindspore_lite.ray

    ray.init(
        address="local",
        _node_ip_address="127.0.0.1",
        include_dashboard=False,
        num_cpus=4,
        object_store_memory=100 << 20,
        log_to_driver=False,
    )
    serve.start(proxy_location="Disabled")
    app = mindspore_lite.ray.app(
        folder, replicas=2, versions={"digits": "1"}, server={"http_port": 0}
    )
    handle = serve.run(app, route_prefix=None)
    port = handle.ports.remote().result()["http"]
    found: dict[str, Any] = {}
    image = np.full((1, 1, 8, 8), 0.5, np.float32)
    outputs = mindspore_lite.ray.handle("digits").predict.remote([image]).result()
    found["handle"] = outputs[0].shape

    killed: list[int] = []

    def kill(count: int) -> None:
        if count % BETWEEN_KILLS == 0 and (pids := replicas()):
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])

    found["kills"] = summary(load(port, REQUESTS, kill))
    found["killed"] = len(killed)

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found["unknown"] = ask(connection, "/versions/9/infer")[0]
    connection.request("GET", "/dashboard")
    found["dashboard"] = connection.getresponse().status
    serve.shutdown()
    ray.shutdown()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])) + "\n")
