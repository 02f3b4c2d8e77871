"""Random damage to whole requests: the server answers or closes, and goes on.

MSLITE_HTTP_FUZZ=100000 tries that many instead of a few.
"""

from __future__ import annotations

import gzip
import logging
import os
import random

import pytest
from support.served import HttpPort, Wire, floats, get, post

COUNT = int(os.environ.get("MSLITE_HTTP_FUZZ", "3000"))
INFER = "/v2/models/id_fp32/infer"
HEAD = (
    b'{"id":"a","inputs":[{"name":"IN","datatype":"FP32","shape":[2],"parameters":'
    b'{"binary_data_size":8}}],"outputs":[{"name":"OUT","parameters":{"classification":1}}]}'
)
JSON = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[2,1],"data":[[1.5],[NaN]]}]}'
SEEDS = [
    get("/v2/models/id_fp32/versions/3"),
    get("/openapi.json", "Accept-Encoding: gzip", "X-Request-Id: 7"),
    post(INFER, JSON),
    post(INFER, JSON.replace(b"[2,1]", b"[2]").replace(b"[[1.5],[NaN]]", b"[1,-2e9]")),
    post(INFER, HEAD + floats(1, 2), f"Inference-Header-Content-Length: {len(HEAD)}"),
    post(INFER, floats(1, 2), "Inference-Header-Content-Length: 0", "Accept-Encoding: gzip"),
    post(INFER, gzip.compress(JSON), "Content-Encoding: gzip"),
    post(INFER, b"5\r\n" + JSON[:5] + b"\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
]
TOKENS = [
    b"\r\n", b"\n", b"\0", b"9" * 30, b"-1", b"NaN", b"null", b"[", b"]" * 40, b"{", b'"',
    b"\\u0000", b"1e999", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"\xff\xfe", b"HTTP/1.0", b"%00", b"/../", b"18446744073709551616", b"true", b",", b":",
]  # fmt: skip


def damaged(rng: random.Random) -> bytes:
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, how = rng.randrange(len(data)), rng.randrange(5)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at : at + rng.randrange(1, 20)]
        elif how == 2:
            data[at:at] = rng.choice(TOKENS)
        elif how == 3:
            data[at : at + 4] = rng.choice(TOKENS)
        else:
            other = rng.choice(SEEDS)
            data[at:] = other[rng.randrange(len(other)) :]
        if not data:
            data += b"x"
    return bytes(data)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("seed", range(4))
def test_damaged_requests_do_not_disturb(
    port: HttpPort, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng, before = random.Random(seed), 0
    for number in range(COUNT // 4):
        if number == COUNT // 20:
            before = resident()
        with Wire(port) as wire:
            wire.send(damaged(rng))
            if number % 3 == 0:  # some clients hang up without reading
                wire.sock.shutdown(1)
                while wire.sock.recv(65536):
                    pass
        if number % 250 == 0:
            with Wire(port) as wire:
                assert wire.ask(post(INFER, SEEDS[3].partition(b"\r\n\r\n")[2])).status == 200
    with Wire(port) as wire:
        assert wire.ask(get("/v2/health/ready")).status == 200
    assert resident() - before < 20_000_000
    # a bug of ours, or an error in the loop
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
