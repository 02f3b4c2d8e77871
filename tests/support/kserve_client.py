"""Uses a server with KServe's own client, in a process of its own: prints what it found as JSON.

Run: python tests/support/kserve_client.py HTTP_PORT GRPC_PORT

The package `kserve` is a server with many dependencies, one of which forbids the protobuf that we
use. Its inference client needs few of them: so it is installed alone (Makefile), its __init__ is
left out, and what its modules import without using it here is made of nothing. Its messages have
the names of tritonclient's, which one process cannot have twice.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

UNUSED = {
    "pandas": ("DataFrame", "Series"),
    "psutil": (),
    "fastapi": (),
    "fastapi.responses": ("JSONResponse",),
    "cloudevents": (),
    "cloudevents.conversion": ("to_binary", "to_structured"),
    "cloudevents.http": ("CloudEvent",),
}
MODEL, OUTPUT = "digits", "Default/Softmax-op0"


def without_dependencies() -> None:
    """Let parts of the package be imported without the rest."""
    for name, attributes in UNUSED.items():
        module = sys.modules[name] = ModuleType(name)
        for attribute in attributes:
            setattr(module, attribute, type(attribute, (), {}))
    spec = find_spec("kserve")
    assert spec is not None and spec.submodule_search_locations is not None
    package = sys.modules["kserve"] = ModuleType("kserve")
    package.__path__ = list(spec.submodule_search_locations)


def request(images: np.ndarray, *, binary: bool) -> Any:
    from kserve.protocol.infer_type import InferInput, InferRequest

    given = InferInput("x", list(images.shape), "FP32")
    given.set_data_from_numpy(images, binary_data=binary)
    return InferRequest(MODEL, [given])


def classes(response: Any) -> list[int]:
    (output,) = [one for one in response.outputs if one.name == OUTPUT]
    return [int(one) for one in output.as_numpy().argmax(1)]


async def over_rest(port: int, images: np.ndarray) -> dict[str, Any]:
    from kserve.inference_client import InferenceRESTClient, RESTConfig

    client, url = InferenceRESTClient(RESTConfig(protocol="v2")), f"http://127.0.0.1:{port}"
    found: dict[str, Any] = {
        "ready": await client.is_server_ready(url),
        "live": await client.is_server_live(url),
        "model": await client.is_model_ready(url, MODEL),
        "unknown": await client.is_model_ready(url, "nowhere"),
    }
    for name, binary in (("json", False), ("binary", True)):
        answer = await client.infer(url, request(images, binary=binary), model_name=MODEL)
        found[name] = classes(answer)
    await client.close()
    return found


async def over_grpc(port: int, images: np.ndarray) -> dict[str, Any]:
    from kserve.inference_client import InferenceGRPCClient

    client = InferenceGRPCClient(f"127.0.0.1:{port}")
    found: dict[str, Any] = {
        "ready": await client.is_server_ready(),
        "live": await client.is_server_live(),
        "model": await client.is_model_ready(MODEL),
        "unknown": await client.is_model_ready("nowhere"),
    }
    for name, binary in (("contents", False), ("raw", True)):
        found[name] = classes(await client.infer(request(images, binary=binary)))
    await client.close()
    return found


async def main(http_port: int, grpc_port: int, images: np.ndarray) -> None:
    found = {
        "rest": await over_rest(http_port, images),
        "grpc": await over_grpc(grpc_port, images),
    }
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    without_dependencies()
    from mindspore_lite.cli.demo import samples

    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), samples()[0][:5]))
