from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest

from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.request import InferOutput
from mindspore_lite.server.shared_memory import SharedMemory

FP32 = DATATYPES["FP32"]
VALUES = np.arange(16, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """In place of /dev/shm."""
    (tmp_path / "mine").write_bytes(VALUES.tobytes())
    return tmp_path


@pytest.fixture
def memory(folder: Path) -> SharedMemory:
    found = SharedMemory(folder=str(folder))
    found.register("r", "/mine", 8, 32)  # values 2 to 9
    return found


def output(*values: float) -> InferOutput:
    array = np.array(values, np.float32)
    return InferOutput("OUT", "FP32", array.shape, array)


def kind_of(info: pytest.ExceptionInfo[RequestError]) -> Kind:
    return info.value.kind


def test_inputs_are_read_from_a_region(memory: SharedMemory) -> None:
    assert memory.reader("r", 0, 8)(FP32, (2,)).tolist() == [2, 3]
    assert memory.reader("r", 24, 8)(FP32, (1, 2)).tolist() == [[8, 9]]
    assert memory.reader("r", 32, 0)(FP32, (0,)).size == 0


def test_outputs_are_written_to_a_region(memory: SharedMemory, folder: Path) -> None:
    memory.writer("r", 4, 16)(output(-1, -2))
    got = np.frombuffer((folder / "mine").read_bytes(), np.float32)
    assert got[:6].tolist() == [0, 1, 2, -1, -2, 5]


def test_an_input_does_not_change_when_the_memory_does(memory: SharedMemory, folder: Path) -> None:
    array = memory.reader("r", 0, 8)(FP32, (2,))
    (folder / "mine").write_bytes(bytes(64))
    assert array.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("offset", "size", "words"),
    [
        (0, 33, "do not lie in"),
        (33, 0, "do not lie in"),
        (28, 8, "do not lie in"),
        (1 << 64, 1, "do not lie in"),
        (1, 1 << 70, "do not lie in"),
    ],
)
def test_a_range_must_lie_in_its_region(
    memory: SharedMemory, offset: int, size: int, words: str
) -> None:
    for use in (memory.reader, memory.writer):
        with pytest.raises(RequestError, match=words) as info:
            use("r", offset, size)
        assert kind_of(info) is Kind.INVALID


def test_sizes_must_fit_the_tensor(memory: SharedMemory, folder: Path) -> None:
    with pytest.raises(RequestError, match="byte size mismatch"):
        memory.reader("r", 0, 12)(FP32, (2,))
    with pytest.raises(RequestError, match="has 12 bytes, its range in shared memory only 8"):
        memory.writer("r", 0, 8)(output(1, 2, 3))
    assert (folder / "mine").read_bytes() == VALUES.tobytes()


def test_an_input_is_no_larger_than_a_request(folder: Path) -> None:
    memory = SharedMemory(most_bytes=16, folder=str(folder))
    memory.register("r", "mine", 0, 64)
    with pytest.raises(RequestError, match="at most 16 go") as info:
        memory.reader("r", 0, 20)
    assert kind_of(info) is Kind.TOO_LARGE


def test_memory_that_shrinks_is_an_error_and_not_the_end(
    memory: SharedMemory, folder: Path
) -> None:
    """A mapped page that is gone would end the process with SIGBUS."""
    read, write = memory.reader("r", 0, 32), memory.writer("r", 0, 32)
    os.truncate(folder / "mine", 16)
    with pytest.raises(RequestError, match="shorter than it was"):
        read(FP32, (8,))
    with pytest.raises(RequestError, match="shorter than it was"):
        write(output(*range(8)))
    assert (folder / "mine").stat().st_size == 16


def test_a_region_lives_as_long_as_it_is_used(memory: SharedMemory, folder: Path) -> None:
    read = memory.reader("r", 0, 8)
    memory.unregister("r")
    (folder / "mine").unlink()
    assert read(FP32, (2,)).tolist() == [2, 3]
    before = len(os.listdir("/proc/self/fd"))
    del read
    assert len(os.listdir("/proc/self/fd")) == before - 1


def test_regions_are_listed_and_forgotten(memory: SharedMemory) -> None:
    memory.register("s", "mine", 0, 64)  # the same memory under another name
    (one, other) = memory.status()
    assert (one.name, one.key, one.offset, one.byte_size) == ("r", "/mine", 8, 32)
    assert memory.status("s") == [other]
    memory.unregister("nowhere")
    memory.unregister("r")
    assert memory.status() == [other]
    memory.unregister()
    assert memory.status() == []
    for use in (lambda: memory.status("r"), lambda: memory.reader("r", 0, 1)):
        with pytest.raises(RequestError, match="Unable to find shared memory region 'r'") as info:
            use()
        assert kind_of(info) is Kind.NOT_FOUND


def test_a_name_is_taken_once(memory: SharedMemory) -> None:
    with pytest.raises(RequestError, match="already in manager") as info:
        memory.register("r", "/mine", 0, 4)
    assert kind_of(info) is Kind.EXISTS


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 65), (64, 1), (60, 8), (0, 0), (-1, 4), (1 << 70, 1), (0, 1 << 70)]
)
def test_a_region_must_lie_in_its_memory(memory: SharedMemory, offset: int, size: int) -> None:
    with pytest.raises(RequestError, match="does not lie in shared memory") as info:
        memory.register("s", "/mine", offset, size)
    assert kind_of(info) is Kind.INVALID


@pytest.mark.parametrize(
    "key",
    ["", "/", "//", ".", "..", "/..", "a/b", "../mine", "x/../mine", "mine/", "m\0ine", "nowhere",
     "link", "up", "folder", "pipe", "socket", "sem.x", "triton_python_backend_shm_region_1",
     "x" * 256, "\ud800", "read_only"],
)  # fmt: skip
def test_only_a_users_own_plain_files_are_memory(
    memory: SharedMemory, folder: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link").symlink_to(folder / "mine")
    (folder / "up").symlink_to("/etc")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("sem.x", "triton_python_backend_shm_region_1"):
        (folder / name).write_bytes(bytes(64))
    if key == "read_only" and os.geteuid() != 0:
        (folder / "read_only").write_bytes(bytes(64))
        (folder / "read_only").chmod(0o400)
    with socket.socket(socket.AF_UNIX) as sock:
        if key == "socket":
            monkeypatch.chdir(folder)  # the path of a socket must be short
            sock.bind("socket")
        with pytest.raises(RequestError) as info:
            memory.register("s", key, 0, 4)
    assert kind_of(info) is Kind.INVALID
    assert str(folder) not in str(info.value)


def test_memory_of_other_users_counts_if_they_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = (folder / "mine").stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(RequestError, match="cannot be opened"):
        SharedMemory(folder=str(folder)).register("r", "mine", 0, 4)
    SharedMemory([owner], folder=str(folder)).register("r", "mine", 0, 4)


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_names_have_a_length(memory: SharedMemory, name: str) -> None:
    with pytest.raises(RequestError, match="1 to 255 bytes"):
        memory.register(name, "mine", 0, 4)


def test_the_number_of_regions_is_limited(memory: SharedMemory) -> None:
    for number in range(1023):
        memory.register(str(number), "mine", 0, 4)
    with pytest.raises(RequestError, match="no room for more"):
        memory.register("x", "mine", 0, 4)
    memory.unregister()
    memory.register("x", "mine", 0, 4)


def test_refused_registrations_leave_no_file_open(memory: SharedMemory, folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with pytest.raises(RequestError):
            memory.register("s", "mine", 0, 65)
    assert len(os.listdir("/proc/self/fd")) == before
