"""A worker serves the user that it runs as, and nobody else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S
from support.workers import child, listening, process

from mindspore_lite.remote.wire.handshake import Hello

STRANGER = """
import os, socket, sys
address, hello = sys.argv[1:]
sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    sock.connect("\\0" + address[1:] if address.startswith("@") else address)
    try:
        sock.sendall(bytes.fromhex(hello))
    except BrokenPipeError:  # refused before it spoke; the reason is there to be read
        pass
    print(sock.recv(4096)[40:].decode())
except OSError as exc:
    print(type(exc).__name__, os.path.exists(address))
"""


def stranger(address: object) -> str:
    """What another user hears who connects."""
    with process(STRANGER, address, Hello().encoded().hex()) as other:
        out, _ = other.communicate(timeout=LIMIT_S)
    return str(out)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_refused() -> None:
    with child() as (_, session):
        said = stranger("@" + session._address[1:])
        assert "is user 65534, wanted 0; a worker serves only the user that it runs as" in said
        assert session.info("pid") == str(session.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_path_can_only_be_connected_to_by_its_user() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # pytest's own would keep others out already
        path = Path(folder) / "w.sock"
        with listening(path):
            assert stranger(path) == "PermissionError True\n"
