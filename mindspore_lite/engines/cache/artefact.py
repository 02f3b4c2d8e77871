"""Compiled models as folders: sealed after a build, checked before use.

    model.onnx      the optimised graph
    weights.bin     its large weights, also in packed form; absent when there are none
    skeleton.onnx   the graph as it was before, without its large weights
    model.blob      what OpenVINO has compiled, weights included; in place of the first two
    ports.json      inputs, outputs and metadata of a model for OpenVINO, which has no model.onnx
    meta.json       size, digest and stat of each file, and a digest over meta itself

Nothing is flushed to the platter: after a power cut a file that did not arrive differs from meta
in size or digest, and the artefact is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from mindspore_lite.core.json_text import read_json
from mindspore_lite.engines.cache.digest import sha256_of

FORMAT = 4  # raise when the folder, or how it is compiled, changes
MODEL = "model.onnx"
WEIGHTS = "weights.bin"
SKELETON = "skeleton.onnx"
BLOB = "model.blob"
PORTS = "ports.json"
META = "meta.json"
_REQUIRED = frozenset({SKELETON})
_ALLOWED = _REQUIRED | {MODEL, WEIGHTS, BLOB, PORTS}


def seal(folder: Path, key: str) -> int:
    """Make a freshly built folder read-only, describe it in meta.json, return its size in bytes."""
    names = _names(folder)
    if not _REQUIRED <= names <= _ALLOWED:
        raise OSError(f"compiled folder holds {sorted(names)}, wanted {sorted(_ALLOWED)}")
    for name in names:
        os.chmod(folder / name, 0o400)
    digests = {name: sha256_of(folder / name) for name in names}
    _write_meta(folder, key, digests)
    return size_bytes(folder)


def trusted(folder: Path, key: str) -> bool:
    """Whether the files are untouched since they were sealed, judged by stat() alone."""
    meta = _read_meta(folder, key)
    if meta is None:
        return False
    try:
        return all(_stamp(folder / name) == tuple(f["stamp"]) for name, f in meta.items())
    except OSError:
        return False


def sound(folder: Path, key: str) -> bool:
    """Whether the content is right, judged by reading it; then the stats in meta are renewed.

    A copied or restored cache has new inodes and times but good content. Only for a caller that
    holds the artefact's lock alone, because meta may be rewritten.
    """
    if trusted(folder, key):
        return True
    meta = _read_meta(folder, key)
    if meta is None:
        return False
    try:
        digests = {}
        for name, recorded in meta.items():
            if _stamp(folder / name)[1] != recorded["size"]:
                return False
            digests[name] = sha256_of(folder / name)
        if any(digests[name] != recorded["sha256"] for name, recorded in meta.items()):
            return False
        _write_meta(folder, key, digests)
    except OSError:
        return False
    return True


def size_bytes(folder: Path) -> int:
    """What the files of a folder take together."""
    with os.scandir(folder) as entries:  # closed, too, when one of them is removed meanwhile
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in os.scandir(folder)}


def _stamp(path: Path) -> tuple[int, ...]:
    s = os.lstat(path)
    if not stat.S_ISREG(s.st_mode):
        raise OSError(f"{path} is not a plain file")
    return (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def _body_digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _write_meta(folder: Path, key: str, digests: dict[str, str]) -> None:
    files = {}
    for name, digest in digests.items():
        now = _stamp(folder / name)
        files[name] = {"size": now[1], "sha256": digest, "stamp": list(now)}
    body = {"format": FORMAT, "key": key, "files": files}
    part = folder / f"{META}.part"
    part.unlink(missing_ok=True)
    part.write_text(json.dumps({"body": body, "digest": _body_digest(body)}, indent=1))
    os.chmod(part, 0o400)
    os.replace(part, folder / META)


def _read_meta(folder: Path, key: str) -> dict[str, dict[str, Any]] | None:
    """What meta.json says of each file; None unless it is whole and names just what is there."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return None
        _stamp(folder / META)
        meta = read_json((folder / META).read_bytes())
        body = meta["body"]
        if meta["digest"] != _body_digest(body):
            return None
        files: dict[str, dict[str, Any]] = body["files"]
        whole = _REQUIRED <= files.keys() <= _ALLOWED and _names(folder) == files.keys() | {META}
        return files if whole and body["format"] == FORMAT and body["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
