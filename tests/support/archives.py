"""The cases in tests/data: a MindIR file, NAME.mindir, and its inputs and outputs, NAME.npz.

A family of one-operator cases is an archive, FAMILY.zip, which git stores and checks out faster
than hundreds of small files. Families that documents name by path are folders. A case is named
FAMILY/NAME in both. Only the standard library is imported: scripts/fixtures/export.py runs in an
environment with MindSpore and nothing of ours.
"""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


# networks that must be run by a Model, which keeps their parameters, or with bfloat16=strict
_APART = ("state", "bfloat16")


def cases() -> tuple[str, ...]:
    """All cases that any engine can run as they are, sorted: ("activation/celu", ...)."""
    return tuple(case for case in all_cases() if case.partition("/")[0] not in _APART)


def cases_of(family: str) -> tuple[str, ...]:
    """The cases of one family; later runs of state/... are run1_i0, run1_o0, ..."""
    return tuple(case for case in all_cases() if case.startswith(f"{family}/"))


@functools.cache
def all_cases() -> tuple[str, ...]:
    """The cases of all families."""
    found = [str(path.relative_to(DATA)) for path in DATA.glob("*/*.mindir")]
    for archive in DATA.glob("*.zip"):
        found += (f"{archive.stem}/{name}" for name in _archive(archive.stem).namelist())
    return tuple(n.removesuffix(".mindir") for n in sorted(found) if n.endswith(".mindir"))


def content(name: str) -> bytes:
    """The bytes of a file, such as "conv/same.npz"."""
    family, _, member = name.partition("/")
    if (DATA / family).is_dir():
        return (DATA / name).read_bytes()
    return _archive(family).read(member)


def extracted(case: str, folder: Path) -> Path:
    """The path of a case's .mindir, with the .npz next to it.

    A case of an archive is written to folder/FAMILY on the first call.
    """
    if (DATA / case).parent.is_dir():
        return DATA / f"{case}.mindir"
    made = folder / f"{case}.mindir"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".npz", ".mindir"):
            (folder / f"{case}{suffix}").write_bytes(content(f"{case}{suffix}"))
    return made


def add(archive: Path, members: Mapping[str, bytes]) -> None:
    """Add members to an archive, or replace them; the archive is made if there is none."""
    held = unpacked(archive.read_bytes()) if archive.exists() else {}
    archive.write_bytes(packed(dict(sorted((held | members).items()))))


def unpacked(data: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of members in this order; equal members give equal bytes.

    Members are stored, not deflated, by default: git compresses the archive as a whole, which
    makes it smaller, and a new version of an archive is stored as what differs from the old one.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return out.getvalue()


@functools.cache
def _archive(family: str) -> zipfile.ZipFile:
    """An archive in memory: no descriptor stays open."""
    return zipfile.ZipFile(io.BytesIO((DATA / f"{family}.zip").read_bytes()))
