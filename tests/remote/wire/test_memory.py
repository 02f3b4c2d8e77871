from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindspore_lite.errors import ResourceError, WireError
from mindspore_lite.remote.wire.memory import MAX_BLOCK, Block, Made, aligned


def test_both_sides_see_the_same_memory() -> None:
    made = Block.make(3, 100)
    assert bytes(made.view) == bytes(100)
    opened = Block.open(os.getpid(), made.made)
    assert (opened.number, opened.size) == (3, 100)
    opened.part(64, 4)[:] = b"abcd"
    assert bytes(made.part(64, 4)) == b"abcd"
    made.close()


def test_memory_lasts_as_long_as_one_side_uses_it() -> None:
    made = Block.make(1, 64)
    opened = Block.open(os.getpid(), made.made)
    part = made.part(0, 64)
    made.close()
    made.close()  # harmless
    part[:5] = b"alive"
    assert bytes(opened.view[:5]) == b"alive"


def test_memory_has_no_name_in_a_file_system() -> None:
    block = Block.make(1, 64)
    assert os.readlink(f"/proc/self/fd/{block.made.descriptor}").startswith("/memfd:")
    assert not os.get_inheritable(block.made.descriptor)
    block.close()


@pytest.mark.parametrize("size", [0, 1, 99, 101, 1 << 30])
def test_sealed_memory_cannot_change_its_size(size: int) -> None:
    block = Block.make(1, 100)
    descriptor = os.open(f"/proc/self/fd/{block.made.descriptor}", os.O_RDWR)
    with pytest.raises(OSError) as caught:
        os.ftruncate(descriptor, size)
    assert caught.value.errno == errno.EPERM
    os.close(descriptor)
    block.close()


def test_a_client_cannot_seal_more() -> None:
    seal_write = 8
    block = Block.make(1, 100)
    descriptor = os.open(f"/proc/self/fd/{block.made.descriptor}", os.O_RDWR)
    with pytest.raises(PermissionError):
        fcntl.fcntl(descriptor, 1033, seal_write)
    os.close(descriptor)
    block.close()


@pytest.mark.parametrize("size", [0, MAX_BLOCK + 1, 1 << 63])
def test_sizes_that_make_no_sense_are_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"a block of {size} bytes was asked for"):
        Block.make(1, size)


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "free memory"), (errno.EMFILE, "ulimit -n")]
)
def test_memory_that_cannot_be_had_is_an_error_that_tells_the_way_out(
    number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(number, os.strerror(number))

    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(ResourceError, match=words):
            Block.make(1, 4096)
    assert set(os.listdir("/proc/self/fd")) <= before
    Block.make(1, 4096).close()  # and then it works again


@pytest.mark.parametrize(
    ("offset", "size"), [(1, 1), (32, 1), (128, 1), (64, 37), (0, 101), (1 << 63, 1), (64, 1 << 63)]
)
def test_places_outside_of_a_block_or_not_aligned_are_refused(offset: int, size: int) -> None:
    block = Block.make(7, 100)
    with pytest.raises(WireError, match=f"{size} bytes at {offset} of block 7"):
        block.part(offset, size)
    block.close()


def test_a_part_may_reach_to_the_end_and_be_empty() -> None:
    block = Block.make(7, 128)
    assert len(block.part(64, 64)) == 64
    assert len(block.part(128, 0)) == 0
    block.close()


def test_a_freed_block_cannot_be_opened_any_more() -> None:
    block = Block.make(1, 64)
    made = block.made
    block.close()
    with pytest.raises(ResourceError, match="the worker has ended"):
        Block.open(os.getpid(), made)


def test_a_block_of_a_dead_worker_cannot_be_opened_but_used_on() -> None:
    code = """
import sys
from mindspore_lite.remote.wire.memory import Block
block = Block.make(1, 64)
block.view[:5] = b"words"
print(block.made.descriptor, flush=True)
sys.stdin.read()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True
    ) as child:
        assert child.stdout is not None
        made = Made(1, int(child.stdout.readline()), 64)
        block = Block.open(child.pid, made)
        child.kill()
        child.wait()
        with pytest.raises(ResourceError, match="the worker has ended"):
            Block.open(child.pid, made)
    assert bytes(block.view[:5]) == b"words"


@pytest.mark.parametrize("size", [64, 65])
def test_what_is_not_the_memory_that_was_told_of_is_refused(size: int, tmp_path: Path) -> None:
    """A process id that is another's by now: its descriptor is a file, or other memory."""
    file = tmp_path / "file"
    file.write_bytes(bytes(size))
    other = Block.make(1, 63)
    with file.open("r+b") as opened:
        for descriptor in (opened.fileno(), other.made.descriptor):
            with pytest.raises(WireError, match="not the memory"):
                Block.open(os.getpid(), Made(1, descriptor, size))
    other.close()


def test_sizes_are_rounded_up_to_the_alignment() -> None:
    assert [aligned(size) for size in (0, 1, 64, 65)] == [0, 64, 64, 128]
