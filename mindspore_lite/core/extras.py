"""The command that installs an extra of this package from where the package itself came.

One that came from a wheel, a folder or a repository need not be on any index: pip notes its address
(PEP 610), and takes extras from there as well.
"""

from __future__ import annotations

import functools
from urllib.parse import unquote, urlsplit

from mindspore_lite.core.json_text import read_json

_NAME = "mslite"


def pip_install(extra: str) -> str:
    """The command, for an error message."""
    address, editable = origin()
    if editable:
        return f"pip install -e '{unquote(urlsplit(address).path)}[{extra}]'"
    return f"pip install '{_NAME}[{extra}]{f' @ {address}' if address else ''}'"


@functools.cache
def origin() -> tuple[str, bool]:
    """Where this package was installed from, and whether from a folder that it still lies in."""
    from importlib import metadata  # which takes some milliseconds, and is for errors only

    try:
        noted = read_json(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
        address = str(noted["url"])
        version = noted.get("vcs_info") or {}
        if version:
            address = f"{version['vcs']}+{address}@{version['commit_id']}"
        return address, bool((noted.get("dir_info") or {}).get("editable"))
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return "", False  # of an index, or not installed at all
