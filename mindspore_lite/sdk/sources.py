"""Finds the sources of a library: in the installed package, or in a clone."""

from __future__ import annotations

from pathlib import Path

from mindspore_lite.errors import LiteError

PACKAGE = Path(__file__).parent.parent


def find(folder: str, language: str, package: Path = PACKAGE) -> Path:
    """The directory bindings/`folder`: in the package, or next to it in a clone.

    Raises:
        LiteError: Neither is there.
    """
    for found in (package / "bindings" / folder, package.parent / "bindings" / folder):
        if (found / "src").is_dir():
            return found
    raise LiteError(
        f"the sources of the {language} library are not in {str(package)!r}; install mslite again "
        "from its wheel"
    )
