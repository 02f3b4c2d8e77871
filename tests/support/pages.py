"""Which pages of compiled weights are in this process's memory, as the kernel says."""

from __future__ import annotations

import re

import numpy as np

from mindspore_lite.engines.artefact import WEIGHTS

_MAPPING = re.compile(rf"(\w+)-(\w+) \S+ (\w+) \S+ (\d+) +.*/{WEIGHTS}(?: \(deleted\))?$")
_PAGE = 4096  # pagemap counts in these
_PRESENT = np.uint64(63)  # the bit of a pagemap entry


def mappings() -> list[tuple[int, int, int, int]]:
    """(start, end, offset in the file, inode) of every mapping of a data file."""
    with open("/proc/self/maps") as lines:
        found = [_MAPPING.match(line.rstrip("\n")) for line in lines]
    return [(int(m[1], 16), int(m[2], 16), int(m[3], 16), int(m[4])) for m in found if m]


def weight_pages() -> list[tuple[int, int]]:
    """(inode, page of the file) of every present page, once per mapping that has it."""
    pages = []
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for start, end, offset, inode in mappings():
            pagemap.seek(start // _PAGE * 8)
            entries = np.frombuffer(pagemap.read((end - start) // _PAGE * 8), np.uint64)
            here = np.flatnonzero(entries >> _PRESENT) + offset // _PAGE
            pages += [(inode, int(page)) for page in here]
    return pages
