from __future__ import annotations

import errno
import re
import socket
from pathlib import Path

import pytest
from support.served import identity

import mindspore_lite as mslite
from mindspore_lite.errors import LiteError
from mindspore_lite.server.address import cannot_open, check_free


@pytest.mark.parametrize("argument", ["http_port", "grpc_port", "metrics_port"])
def test_a_port_that_is_taken_is_named_with_what_to_do(tmp_path: Path, argument: str) -> None:
    net = identity(tmp_path / "net.onnx")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        given = {"http_port": 0, "grpc_port": 0, argument: number}
        words = f"{argument} {number} of 127.0.0.1 cannot be opened: another program listens there"
        with pytest.raises(LiteError, match=words):
            mslite.Server([net], **given).start()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EADDRINUSE, "x"), "another http_port .0 takes any that is free"),
        (OSError(errno.EADDRNOTAVAIL, "x"), "this machine has no such address"),
        (OSError(errno.EACCES, "x"), "ports below 1024 take privileges"),
        (OSError(errno.EMFILE, "x"), "Too many open files; choose another http_port"),
        (OSError("odd"), "odd; choose"),
        (socket.gaierror(-2, "Name or service not known"), "the host 'h' is not known: Name"),
    ],
)
def test_other_reasons(error: OSError, words: str) -> None:
    assert re.search(words, str(cannot_open("http_port", "h", 80, error)))


def test_an_address_that_is_free_is_left_alone() -> None:
    check_free("grpc_port", "127.0.0.1", 0)
    with pytest.raises(LiteError, match="this machine has no such address"):
        check_free("grpc_port", "192.0.2.1", 0)
