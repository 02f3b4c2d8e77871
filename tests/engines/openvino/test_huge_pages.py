"""huge_pages.py: which memory is put into huge pages, and that it stays what it was."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mindspore_lite.engines.openvino import huge_pages

HUGE = 2 << 20
SIZE = 4 * HUGE


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Where a huge page was asked for, on a system that has some."""
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    (tmp_path / "hpage_pmd_size").write_text(f"{HUGE}\n")
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    own, found = huge_pages._libc(), []

    def madvise(start: int, size: int, advice: int) -> int:
        assert (start % HUGE, size, advice) == (0, HUGE, huge_pages._COLLAPSE)
        found.append(start)
        return 0

    library = SimpleNamespace(madvise=madvise, mincore=own.mincore)
    monkeypatch.setattr(huge_pages, "_libc", lambda: library)
    return found


@pytest.fixture
def maps() -> Iterator[list[mmap.mmap]]:
    """Memory of the test, which goes at its end."""
    made: list[mmap.mmap] = []
    yield made
    for one in made:
        one.close()


def mapped(made: list[mmap.mmap], filled: int = SIZE) -> range:
    """Addresses of new memory, filled from its beginning."""
    one = mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    made.append(one)
    one[:filled] = bytes([7]) * filled
    start = ctypes.addressof(ctypes.c_char.from_buffer(one))
    return range(start, start + SIZE)


def blocks_of(found: list[int], addresses: range) -> list[int]:
    return [start for start in found if start in addresses]


def test_new_memory_that_is_full_is_asked_for(asked: list[int], maps: list[mmap.mmap]) -> None:
    with huge_pages.for_new_memory():
        addresses = mapped(maps)
    first = -(-addresses.start // HUGE) * HUGE
    assert blocks_of(asked, addresses) == list(range(first, addresses.stop - HUGE + 1, HUGE))


def test_memory_of_before_and_memory_that_is_not_full_stays(
    asked: list[int], maps: list[mmap.mmap]
) -> None:
    before = mapped(maps)
    with huge_pages.for_new_memory():
        sparse = mapped(maps, filled=4096)
    assert blocks_of(asked, before) == blocks_of(asked, sparse) == []


@pytest.mark.parametrize(
    ("name", "text"), [("enabled", "always madvise [never]\n"), ("hpage_pmd_size", "?\n")]
)
def test_a_system_without_huge_pages_is_asked_for_none(
    name: str, text: str, asked: list[int], maps: list[mmap.mmap]
) -> None:
    (huge_pages._SETTINGS / name).write_text(text)
    with huge_pages.for_new_memory():
        mapped(maps)
    assert asked == []


def test_another_system_is_asked_for_none(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, maps: list[mmap.mmap]
) -> None:
    monkeypatch.setattr(huge_pages, "_SETTINGS", Path("nowhere"))
    with huge_pages.for_new_memory():
        mapped(maps)
    assert asked == []


def test_memory_keeps_what_it_holds(maps: list[mmap.mmap]) -> None:
    with huge_pages.for_new_memory():
        mapped(maps)
    assert maps[0][:] == bytes([7]) * SIZE


def test_memory_that_has_gone_meanwhile_is_no_error(maps: list[mmap.mmap]) -> None:
    addresses = mapped(maps)
    maps.pop().close()
    assert list(huge_pages._full_blocks((addresses.start, addresses.stop), HUGE)) == []


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], [(2, 6), (8, 10)]),
        ([(0, 2), (6, 8), (10, 12)], [(2, 6), (8, 10)]),
        ([(3, 4)], [(2, 3), (4, 6), (8, 10)]),
        ([(1, 3), (5, 9)], [(3, 5), (9, 10)]),
        ([(0, 20)], []),
    ],
)
def test_what_was_there_is_taken_away(
    others: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    assert list(huge_pages._without([(2, 6), (8, 10)], others)) == left
