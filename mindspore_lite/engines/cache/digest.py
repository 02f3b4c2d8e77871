"""Digests of model files, by which compiled models are found in the cache.

A large file is read once. Its digest is remembered under the file's real path together with what
stat() said then, and a later call trusts the memory as long as stat() says the same. A digest taken
within RACY_NS of the file's last change (core/snapshot.py) is not trusted, only replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mindspore_lite.core.files import Stamp
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.snapshot import RACY_NS, Snapshot
from mindspore_lite.weights.records import Identity


@dataclass(frozen=True)
class Content:
    """What the files of a model hold."""

    sha256: tuple[str, ...]


def stamp(path: Path) -> Stamp:
    """What distinguishes one state of a file from another without reading it."""
    s = os.stat(path)
    return (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def sha256_of(path: Path) -> str:
    """The digest of a file of ours, read in pieces: a mapping would die when it is truncated."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(snapshot: Snapshot, seen: Path | None) -> Content:
    """Digest each file, or recall its digest from the folder `seen`, where there is one."""
    return Content(tuple(_digest(snapshot, at, seen) for at in range(len(snapshot.files))))


def _digest(snapshot: Snapshot, at: int, seen: Path | None) -> str:
    if seen is None:
        return snapshot.sha256(at)
    file = snapshot.files[at]
    path = file.real_path()
    note = seen / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"
    known = _recall(note, path, file.stamp)
    if known is not None:
        snapshot.recall(at, known)
        return known
    digest = snapshot.sha256(at)
    if file.stamp_now() == file.stamp:
        _remember(note, path, file.stamp, file.opened_ns, digest)
    return digest


def _recall(note: Path, path: str, now: Stamp) -> str | None:
    """The remembered digest, or None when there is none to trust; damage counts as none."""
    try:
        if note.is_symlink():
            return None
        known = read_json(note.read_bytes())
        fits = known["path"] == path and tuple(known["stamp"]) == now
        settled = int(known["read_ns"]) - max(now[-2:]) >= RACY_NS
        digest = str(known["sha256"])
        return digest if fits and settled and len(digest) == 64 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(note: Path, path: str, now: Stamp, read_ns: int, digest: str) -> None:
    """Write the memory; a failure only means that the file is read again next time."""
    part = note.with_name(f"{note.name}.{secrets.token_hex(4)}.part")
    body = {"path": path, "stamp": now, "read_ns": read_ns, "sha256": digest}
    try:
        part.write_text(json.dumps(body))
        os.replace(part, note)
    except (OSError, UnicodeError):  # UnicodeError: a path that is not UTF-8
        with suppress(OSError):
            part.unlink()


def joined(digests: Sequence[str]) -> str:
    """One digest for several contents in their order."""
    return hashlib.sha256(json.dumps(list(digests)).encode()).hexdigest()


def key(identity: Identity) -> str:
    """The name of what an engine compiles from a model on this kind of CPU."""
    parts = [identity.model, sorted(identity.settings.items()), cpu_features()]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def code_of(*modules: str) -> str:
    """Changes with any line of these modules of engines/: no artefact outlives its makers."""
    folder = Path(__file__).parent.parent
    texts = [(folder / f"{name}.py").read_bytes() for name in modules]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


@cache
def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Machine and instruction sets: compiled graphs and packed weights fit only these."""
    flags: list[str] = []
    try:
        with open(cpuinfo) as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):  # x86, arm64
                    flags = sorted(value.split())
                    break  # one entry is enough: the kernel reports only what all cores share
    except OSError:
        pass
    return " ".join([platform.machine(), *flags])
