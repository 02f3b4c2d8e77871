"""remote/worker/listener.py: a path that can be listened on, or the reason why not."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from support.fake_engine import Client, wait_for

from mindspore_lite.errors import ResourceError
from mindspore_lite.remote.worker import listener as listener_module
from mindspore_lite.remote.worker.listener import (
    BACKLOG,
    abstract_listener,
    path_listener,
    private_listener,
)


def stale(path: Path) -> None:
    """What a worker leaves that was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))


def connects(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return False
    return True


def test_a_path_is_listened_on_by_its_owner_alone_and_freed(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    before = os.umask(0)
    try:
        with closing(path_listener(str(path))) as found:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert found.address == str(path)
            assert connects(found.address)
            found.accept().close()
    finally:
        assert os.umask(before) == 0
    assert not path.exists()
    found.close()  # again, which is harmless


def test_a_relative_path_is_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(path_listener("w.sock")) as found:
        assert found.address == str(tmp_path / "w.sock")


def test_a_name_that_the_kernel_chose_goes_with_the_socket() -> None:
    with closing(abstract_listener()) as found:
        assert found.address.startswith("@")
        assert connects(found.address)
    assert not connects(found.address)


def test_a_directory_of_its_own_is_for_the_owner_alone_and_goes_with_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(listener_module, "_MAX_PATH_BYTES", 4096)  # this directory's name is long
    with closing(private_listener()) as found:
        folder = Path(found.address).parent
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()
    found.close()  # again, which is harmless


@pytest.mark.parametrize("name", ["x" * 100, "é"])
def test_a_directory_of_its_own_has_a_name_that_every_client_can_write(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with closing(private_listener()) as found:
        assert found.address.startswith("/tmp/mslite-")
        assert connects(found.address)


def test_no_directory_is_left_where_no_socket_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "_short_folder", lambda: str(tmp_path))
    monkeypatch.setattr(listener_module, "_MAX_PATH_BYTES", 1)
    with pytest.raises(ValueError, match="at most 1 are possible"):
        private_listener()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(listener_module, "_short_folder", lambda: str(tmp_path / "no"))
    with pytest.raises(ResourceError, match="no directory to listen in can be made"):
        private_listener()


def test_a_left_over_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    stale(path)
    with closing(path_listener(str(path))) as found:
        assert connects(found.address)


def test_a_path_that_is_listened_on_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "w.sock")
    with closing(path_listener(path)) as found:
        with pytest.raises(ResourceError, match=f"cannot listen on '{path}': another worker"):
            path_listener(path)
        assert connects(found.address)


def test_a_worker_too_busy_to_answer_is_one_that_listens(tmp_path: Path) -> None:
    path = str(tmp_path / "w.sock")
    with closing(path_listener(path)):
        waiting = []
        try:
            for _ in range(BACKLOG + 2):
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                waiting.append(sock)
                sock.setblocking(False)
                sock.connect(path)
        except BlockingIOError:
            pass
        else:
            raise AssertionError("there was room for all")
        with pytest.raises(ResourceError, match="another worker listens there"):
            path_listener(path)
        for sock in waiting:
            sock.close()


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda p: p.symlink_to("elsewhere")])
def test_a_file_that_is_no_socket_is_left_alone(make: object, tmp_path: Path) -> None:
    path = tmp_path / "file"
    make(path)  # type: ignore[operator]
    words = (
        "that is a directory; name a file" if path.is_dir() else "no socket; remove it, or choose"
    )
    with pytest.raises(ResourceError, match=words):
        path_listener(str(path))
    assert os.path.lexists(path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=f"there is no directory '{tmp_path}/no'; make it"):
        path_listener(str(tmp_path / "no" / "w.sock"))
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="Not a directory"):
        path_listener(str(tmp_path / "file" / "w.sock"))


def test_a_path_must_fit_into_an_address(tmp_path: Path) -> None:
    longest = "/tmp/" + "é" * 51
    with pytest.raises(ValueError, match=r"has 109 bytes, at most 107 are possible; choose a sho"):
        path_listener(longest + "é")
    with pytest.raises(ResourceError, match="there is no directory"):
        path_listener(longest.replace("éé", "é/", 1))
    with pytest.raises(ValueError, match="is not UTF-8"):
        path_listener(os.fsdecode(b"/tmp/\xff.sock"))


def test_a_socket_that_took_its_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    first = path_listener(str(path))
    path.unlink()
    with closing(path_listener(str(path))) as second:
        first.close()
        assert connects(second.address)


def test_two_workers_that_find_the_same_left_over_do_not_take_each_others_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.sock"
    stale(path)
    seconds: list[Client] = []
    remove = listener_module._remove_stale

    def removing(found: str) -> None:
        if not seconds:  # the first is about to remove the file when the second begins
            seconds.append(Client(lambda: path_listener(str(path))))
            wait_for(lambda: bool(tries))
        remove(found)

    tries: list[bool] = []
    locked = listener_module._locked

    def locking(descriptor: int) -> bool:
        got = locked(descriptor)
        if seconds:
            tries.append(got)
        return got

    monkeypatch.setattr(listener_module, "_remove_stale", removing)
    monkeypatch.setattr(listener_module, "_locked", locking)
    with closing(path_listener(str(path))) as first:
        assert isinstance(seconds[0].ended().error, ResourceError)
        assert connects(first.address)
    assert tries[0] is False


def test_a_directory_that_somebody_keeps_locked_holds_nobody_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "_ALONE_S", 0.02)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        path_listener(str(tmp_path / "w.sock")).close()
    finally:
        os.close(folder)
