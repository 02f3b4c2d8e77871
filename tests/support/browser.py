"""A real browser for pages: Debian's Chromium, driven by Playwright.

Pages run under their own content security policy: `wait_for_function` would need eval, so tests
wait with `expect`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

WAIT_MS = 30_000  # for a machine that is busy with other tests
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window; the test is skipped where it is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium")
    api.expect.set_options(timeout=WAIT_MS)
    with api.sync_playwright() as playwright:
        # root has no sandbox to put a browser into
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page, and everything that it complained about or asked for."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith("data:"):
            self.hosts.add(urlsplit(request.url).netloc)


@contextmanager
def watched(chromium: Any, complains: bool = False, **options: Any) -> Iterator[Watched]:
    """A page of its own; afterwards it must have had no error, and have asked one host only."""
    context = chromium.new_context(**options)
    found = Watched(context)
    try:
        yield found
        assert complains or found.complaints == []
        assert len(found.hosts) == 1
    finally:
        context.close()
