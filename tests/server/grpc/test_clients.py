"""Triton's clients against the gRPC port."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from support.fake_engine import LIMIT_S
from tritonclient.utils import InferenceServerException

from mindspore_lite.server.grpc.port import GrpcPort


@pytest.fixture
def client(port: GrpcPort) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{port.number}") as found:
        yield found


def tensor(*values: float) -> list[Any]:
    found = triton.InferInput("IN", [len(values)], "FP32")
    found.set_data_from_numpy(np.array(values, np.float32))
    return [found]


def test_the_plain_client(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("id_fp32")
    assert not client.is_model_ready("nowhere")
    assert client.get_server_metadata(as_json=True)["name"] == "mslite"
    assert client.get_model_metadata("id_fp32", as_json=True)["inputs"][0]["shape"] == ["-1"]
    assert client.get_model_config("id_batch").config.max_batch_size == 4
    found = client.infer(
        "id_fp32", tensor(1, 2), request_id="7", priority=1, timeout=60_000_000, client_timeout=60
    )
    assert found.as_numpy("OUT").tolist() == [1, 2]
    assert found.get_response().id == "7"
    with pytest.raises(InferenceServerException, match="unknown model 'nowhere'") as info:
        client.infer("nowhere", tensor(1))
    assert info.value.status() == "StatusCode.NOT_FOUND"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_requests(client: triton.InferenceServerClient, coding: str) -> None:
    found = client.infer("id_fp32", tensor(*range(5000)), compression_algorithm=coding)
    assert found.as_numpy("OUT").tolist() == list(range(5000))


def test_requests_without_waiting(client: triton.InferenceServerClient) -> None:
    got: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for number in range(50):
        client.async_infer(
            "id_fp32",
            tensor(number),
            lambda result, error: got.put(error or result.as_numpy("OUT")[0]),
        )
    assert sorted(got.get(timeout=LIMIT_S) for _ in range(50)) == list(range(50))


def test_a_stream(client: triton.InferenceServerClient) -> None:
    got: queue.SimpleQueue[Any] = queue.SimpleQueue()
    client.start_stream(lambda result, error: got.put((result, error)))
    for number in range(100):
        name = "nowhere" if number == 50 else "id_fp32"
        client.async_stream_infer(
            name, tensor(number), request_id=str(number), enable_empty_final_response=True
        )
    client.stop_stream()  # waits for the answers
    found = [got.get(timeout=LIMIT_S) for _ in range(100)]
    assert "unknown model 'nowhere'" in str(found.pop(50)[1])
    wanted = [number for number in range(100) if number != 50]
    assert [int(result.get_response().id) for result, _ in found] == wanted
    assert [result.as_numpy("OUT")[0] for result, _ in found] == wanted
    assert got.empty()


def test_the_client_for_asyncio(port: GrpcPort) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for number in range(20):
            yield {"model_name": "id_fp32", "inputs": tensor(number)}

    async def run() -> None:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{port.number}") as client:
            assert await client.is_server_live()
            assert await client.is_model_ready("id_fp32", "3")
            assert (await client.get_model_metadata("id_fp32")).platform
            found = await asyncio.gather(
                *(client.infer("id_fp32", tensor(number)) for number in range(50))
            )
            assert [one.as_numpy("OUT")[0] for one in found] == list(range(50))
            with pytest.raises(InferenceServerException, match="has no data"):
                await client.infer("id_batch", [triton.InferInput("X", [1, 3], "FP32")])
            got = [
                result.as_numpy("OUT")[0] - (0 if error is None else 1000)
                async for result, error in client.stream_infer(requests())
            ]
            assert got == list(range(20))

    asyncio.run(run())


def test_a_large_tensor(client: triton.InferenceServerClient) -> None:
    """More than gRPC takes by default, which is 4 MiB."""
    array = np.arange(2_000_000, dtype=np.float32)
    found = client.infer("id_fp32", tensor(*array)).as_numpy("OUT")
    np.testing.assert_array_equal(found, array)
