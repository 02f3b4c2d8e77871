"""Files of tests as engines want them."""

from __future__ import annotations

from pathlib import Path

from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot


def snapshot(*paths: Path) -> Snapshot:
    return Snapshot([open_file(path) for path in paths])
