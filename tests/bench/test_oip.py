from __future__ import annotations

import numpy as np
import pytest

from mindspore_lite.bench.oip import ServedTensor, Url, failure, raw_input, raw_output, url_of
from mindspore_lite.errors import EngineError, InputError, LiteError, QueueFullError

PLACE = Url("http", "h", 1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("http://localhost:8000", Url("http", "localhost", 8000)),
        ("grpc://10.0.0.1:8001/", Url("grpc", "10.0.0.1", 8001)),
        ("http://[::1]:80", Url("http", "::1", 80)),
    ],
)
def test_a_url_is_scheme_host_and_port(text: str, wanted: Url) -> None:
    assert url_of(text) == wanted
    assert str(wanted) == text.rstrip("/")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "wanted http://HOST:PORT or grpc://HOST:PORT"),
        ("localhost:8000", "wanted http://HOST:PORT"),
        ("https://localhost:8000", "wanted http://HOST:PORT"),
        ("http://localhost", "wanted http://HOST:PORT"),
        ("http://localhost:0", "wanted http://HOST:PORT"),
        ("http://localhost:99999", "out of range"),
        ("http://:80", "wanted http://HOST:PORT"),
        ("http://höst:80", "wanted http://HOST:PORT"),
        ("http://a b:80", "wanted http://HOST:PORT"),
        ("http://a\r\nX: y:80", "wanted http://HOST:PORT"),
        ("http://me@host:80", "wanted http://HOST:PORT"),
        ("http://host:80/v2/models/x", "the name of the model goes into --model"),
    ],
)
def test_other_urls_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="--url got") as caught:
        url_of(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (503, QueueFullError, "refuses the request (503): so it is"),
        (429, QueueFullError, "refuses"),
        (400, InputError, "does not take the request (400)"),
        (401, EngineError, "give --token-file FILE"),
        (500, EngineError, "answers 500: so it is"),
    ],
)
def test_a_status_is_an_error(status: int, kind: type[LiteError], words: str) -> None:
    found = failure(PLACE, status, "so\nit is")
    assert type(found) is kind
    assert words in str(found)


def test_a_server_may_say_nothing_or_too_much() -> None:
    assert "without a word" in str(failure(PLACE, 500, ""))
    assert len(str(failure(PLACE, 500, "x" * 10_000))) < 600


def test_types_without_a_name_are_refused() -> None:
    with pytest.raises(InputError, match="takes BYTES, mslite bench sends BOOL, UINT8"):
        assert ServedTensor("x", "BYTES", (1,)).known
    with pytest.raises(InputError, match="is complex64, the protocol has BOOL"):
        raw_input("x", np.zeros(1, np.complex64))


def test_texts_stay_bytes() -> None:
    assert raw_output("BYTES", [1], b"\1\0\0\0a").tobytes() == b"\1\0\0\0a"
