"""What every test gets: a compile cache of its own, never the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def worker_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache per test process: equal models are compiled once, which keeps the suite quick."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(worker_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the compile cache away from the user's; tests that look into it set their own."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(worker_cache))
    for name in ("MSLITE_CACHE", "MSLITE_CACHE_MAX_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return worker_cache
