"""core/extras.py: extras come from where the package came."""

from __future__ import annotations

from importlib import metadata

import pytest

from mindspore_lite.core import extras

ORIGIN = extras.origin.__wrapped__  # without its memory, before conftest.py takes its place


@pytest.fixture(autouse=True)
def real_origin(from_an_index: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "origin", ORIGIN)


@pytest.mark.parametrize(
    ("noted", "wanted"),
    [
        (None, "pip install 'mslite[gpu]'"),
        ("not json", "pip install 'mslite[gpu]'"),
        (
            '{"url": "file:///w/mslite-0.1.0.whl", "archive_info": {}}',
            "pip install 'mslite[gpu] @ file:///w/mslite-0.1.0.whl'",
        ),
        (
            '{"url": "file:///my%20code/mslite", "dir_info": {"editable": true}}',
            "pip install -e '/my code/mslite[gpu]'",
        ),
        (
            '{"url": "https://host/mslite", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "pip install 'mslite[gpu] @ git+https://host/mslite@abc'",
        ),
    ],
)
def test_the_command_names_the_origin(
    monkeypatch: pytest.MonkeyPatch, noted: str | None, wanted: str
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return noted

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert extras.pip_install("gpu") == wanted


def test_a_package_that_is_not_installed_is_taken_from_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert extras.pip_install("crypto") == "pip install 'mslite[crypto]'"
