"""Which pages of compiled weights are in this process's memory, as the kernel says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mindspore_lite.engines.cache.artefact import WEIGHTS

_PAGE = 4096  # pagemap counts in these
_PRESENT = np.uint64(63)  # the bit of a pagemap entry


def weight_pages(cache: Path) -> list[tuple[int, int]]:
    """(inode, page of the file) of every present page, once per mapping that has it.

    Only files of this cache count, removed ones included: other tests may have left sessions.
    """
    mapping = re.compile(rf"(\w+)-(\w+) \S+ (\w+) \S+ (\d+) +{re.escape(str(cache))}/.*/{WEIGHTS}")
    with open("/proc/self/maps") as lines:
        found = [match for line in lines if (match := mapping.match(line))]
    pages = []
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for match in found:
            start, end, offset = (int(text, 16) for text in match.groups()[:3])
            pagemap.seek(start // _PAGE * 8)
            entries = np.frombuffer(pagemap.read((end - start) // _PAGE * 8), np.uint64)
            here = np.flatnonzero(entries >> _PRESENT) + offset // _PAGE
            pages += [(int(match[4]), int(page)) for page in here]
    return pages
