"""engines/cache/store.py: files that torch's compiler keeps beside the artefacts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite.engines.base import Options
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine

ENGINE = OnnxRuntimeEngine()


def compiler_file(place: Path, name: str, size: int, used_ns: int) -> Path:
    """A file as torch's compiler keeps them."""
    path = place / "torch" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, ns=(used_ns, used_ns))
    return path


def test_files_of_the_compiler_are_bounded_together_with_the_artefacts(
    make_dense: Callable[[int], Any], cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENGINE.load(make_dense(0).source(), Options())
    size = cache.describe().size_bytes
    old = [compiler_file(cache_place, name, 1000, 1) for name in ("ab/x.py", "ab/y.py")]
    outer = compiler_file(cache_place, "fxgraph/z", 1000, 2)
    new = compiler_file(cache_place, "fxgraph/cd/w", 1000, 2**62)
    assert cache.describe().size_bytes == size + 4000
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(2 * size + 1500))
    ENGINE.load(make_dense(1).source(), Options())
    assert not any(path.exists() for path in (*old, old[0].parent, outer))
    assert new.exists()
    assert cache.describe().entries == 2
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(2 * size + 500))
    ENGINE.load(make_dense(2).source(), Options())
    assert new.exists()
    assert cache.describe().entries == 1


def test_a_place_for_the_compiler_that_others_may_write_to_is_not_used(cache_place: Path) -> None:
    store = cache.usable()
    assert store is not None
    place = store.compiler_place()
    assert place == cache_place / "torch"
    place.chmod(0o777)
    assert store.compiler_place() is None
    place.rmdir()
    place.write_text("no directory")
    assert store.compiler_place() is None
