"""Reads a model repository from disk: an index of models by name, each with its versions.

    entries = read_repository(Path("/mnt/models"))

A repository is one of these; the first that fits counts:

    a file                                  one model of version 1
    <version>/model.{onnx,mindir}           one model, whose own folder was given
    <model>/<version>/model.{onnx,mindir}   models as Triton lays them out,
    a.onnx  b.mindir                        and next to them files, each a model of version 1

A folder of a model may hold config.pbtxt or model.ini. The main file of a version is the one that
the configuration names, or model.onnx, model.mindir or model_graph.mindir, or the only model file
there is; what belongs to it (external data, model_variables/) lies next to it. What is wrong with
one model is its own fault and leaves the others alone. Clients name models by the keys of the
index; no name that a client sends is ever part of a path.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.server.errors import printable
from mindspore_lite.server.models import check_name
from mindspore_lite.server.repository import model_ini, pbtxt
from mindspore_lite.server.repository.folder import Folder, Listing, status_stamp
from mindspore_lite.server.repository.records import ModelEntry, ServeConfig, chosen
from mindspore_lite.settings.names import nearest

READERS = {pbtxt.NAME: pbtxt.read_pbtxt, model_ini.NAME: model_ini.read_ini}
SUFFIXES = (".onnx", ".mindir")
USUAL_FILES = ("model.onnx", "model.mindir", "model_graph.mindir")
Known = Mapping[object, ModelEntry]  # by stamp
_LOG = logging.getLogger(__name__)
_VERSION = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_GRAPH = "_graph"  # of net_graph.mindir, whose weights lie in net_variables
_TRIES = 3  # of reading a folder that changes meanwhile; guess
_DEPTH = 3  # of folders in a model's folder that count as part of it: 1/model_variables, warmup
_LOOKED_AT = 16  # of the newest versions, to see whether a folder is a model; guess
_SURE = 0.85  # of difflib: a slip of the pen; guess
_SYSTEM = ("lost+found",)  # which file systems put into the root of a volume
_OUTSIDE = "is a link out of the repository; put a copy in its place, or serve what it leads to"


def read_repository(
    root: Path, name: str = "", known: Mapping[str, ModelEntry] | None = None
) -> dict[str, ModelEntry]:
    """The models of a repository, by name.

    Args:
        root: A file or folder.
        name: Under which to serve the model; only if there is exactly one.
        known: What was read before: the configuration of a folder that has not changed since is
            not read again.

    Raises:
        ModelFileError: It is not there, or cannot be read.
        ValueError: There is a name, but not exactly one model.
    """
    root = root.absolute()
    if root.is_dir():
        by_stamp = {one.stamp: one for one in (known or {}).values() if one.stamp is not None}
        found = _of_folder(Folder(root), name, by_stamp)
    elif root.exists():
        found = [_of_file(Folder(root.parent), root.name, name)]
    else:
        raise ModelFileError(f"the model repository does not exist: {nowhere(root)}")
    return {one.name: one for one in map(_checked, sorted(found, key=lambda one: one.name))}


def name_of(path: Path) -> str:
    """The name that a file is served under if it is given none."""
    stem = path.stem
    if path.name.endswith(f"{_GRAPH}.mindir"):
        stem = stem.removesuffix(_GRAPH)
    return _NO_NAME.sub("-", stem).lstrip(".")


def _of_folder(folder: Folder, name: str, known: Known) -> list[ModelEntry]:
    listing = folder.listing()
    if _is_model(folder, listing):
        entry = _read(folder, "", known)
        own = _NO_NAME.sub("-", os.path.basename(os.path.realpath(folder.path)))
        return [replace(entry, name=name or entry.config.name or own)]
    found = {one.name: one for one in _models(folder, listing, known)}
    for file in listing.files:
        if not _is_model_file(file):
            continue
        entry = _of_file(folder, file)
        if entry.name in found:
            fault = f"two models of the repository are called {entry.name!r}"
            entry = replace(entry, versions={}, fault=fault)
        found[entry.name] = entry
    if name:
        if len(found) != 1:
            raise ValueError(
                f"the name {name!r} is for one model, and the repository "
                f"{str(folder.path)!r} has {len(found)}: {', '.join(sorted(found))[:200]}"
            )
        return [replace(one, name=name) for one in found.values()]
    return list(found.values())


def _is_model(folder: Folder, listing: Listing) -> bool:
    """Whether a folder is that of one model, not one of several models."""
    if _has_config(listing) and any(map(_is_model_file, listing.files)):
        return True
    return bool(_holding_models(folder, _versions(listing)[-_LOOKED_AT:]))


def _holding_models(folder: Folder, names: Sequence[str]) -> str:
    """The first of the folders of these names in which a model file lies; "" if none."""
    for name in names:
        with suppress(ModelFileError):
            inside = folder.below(name).listing()
            if any(map(_is_model_file, [*inside.files, *inside.folders])):
                return name
    return ""


def _is_model_file(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _models(folder: Folder, listing: Listing, known: Known) -> Iterator[ModelEntry]:
    """The folders that are models; others are passed over."""
    for name in listing.folders:
        if name in _SYSTEM:
            continue
        below = folder.apart(name)
        try:
            inside = below.listing()
        except ModelFileError as exc:
            yield ModelEntry(name, fault=str(exc))
            continue
        if _versions(inside) or _has_config(inside) or set(USUAL_FILES) & set(inside.files):
            yield _read(below, name, known)
        elif misnamed := _holding_models(below, list(inside.folders)[:_LOOKED_AT]):
            fault = f"{misnamed!r} is no version; name its folder by a number, such as '1'"
            yield ModelEntry(name, fault=fault)
        else:
            _LOG.debug("%s is not a model: it has no version", below.path)
    for name in listing.outside:
        if _is_model_file(name):
            yield ModelEntry(name_of(Path(name)), fault=f"{name!r} {_OUTSIDE}")
        elif (folder.path / name).is_dir():
            yield ModelEntry(name, fault=f"{name!r} {_OUTSIDE}")


def _of_file(folder: Folder, file: str, name: str = "") -> ModelEntry:
    """A file that is a model of version 1."""
    path = folder.path / file
    return ModelEntry(name or name_of(path), {"1": path}, stamp=_file_stamp(path))


def _read(folder: Folder, name: str, known: Known) -> ModelEntry:
    """The model of a folder; read again if the folder changed meanwhile."""
    entry = ModelEntry(name)
    try:
        for _ in range(_TRIES):
            stamp = (folder.path, _stamp(folder))
            if stamp in known:
                return replace(known[stamp], name=name)
            entry = replace(_read_once(folder, name), stamp=stamp)
            if _stamp(folder) == stamp[1]:
                return entry
    except ModelFileError as exc:
        return replace(entry, fault=str(exc), stamp=None)
    return replace(entry, fault="its folder changes while it is read; try again later", stamp=None)


def _read_once(folder: Folder, name: str) -> ModelEntry:
    listing = folder.listing()
    config, fault = _config(folder, listing, name)
    versions, problems = _main_files(folder, listing, config.file)
    missing = [one for one in config.policy.specific if one not in versions]
    unused = [f"version {one}: it is not there" for one in missing]
    unused += [*problems, *_misspelt(listing)]
    entry = ModelEntry(name, versions, replace(config, ignored=(*config.ignored, *unused)))
    if not fault and not versions:
        fault = problems[-1]
    elif not fault and not chosen(entry):
        asked = ", ".join(config.policy.specific) or str(config.policy.latest)
        fault = (
            f"{config.source} asks for versions {asked}, and there are {', '.join(versions)}; "
            "change its version policy"
        )
    return replace(entry, fault=printable(fault))


def _config(folder: Folder, listing: Listing, name: str) -> tuple[ServeConfig, str]:
    """What its configuration says, and what is wrong with that."""
    try:
        config = ServeConfig()
        for file in READERS:
            if file in listing.outside:
                raise ModelFileError(f"{file} {_OUTSIDE}")
            if file in listing.other or file in listing.folders:
                raise ModelFileError(f"{file} is no plain file")
        if _has_config(listing):
            if all(file in listing.files for file in READERS):
                raise ModelFileError(f"it has {' and '.join(READERS)}; remove one of them")
            read = next(read for file, read in READERS.items() if file in listing.files)
            config = read(folder)
        if name and config.name not in ("", name):
            raise ModelFileError(
                f"{config.source} says that the model is called {config.name[:80]!r}, and its "
                f"folder {name[:80]!r}; make them equal, or leave the name out"
            )
        return config, ""
    except LiteError as exc:
        return ServeConfig(), printable(str(exc))


def _misspelt(listing: Listing) -> Iterator[str]:
    """Files that were perhaps meant to be a configuration."""
    for file in listing.files:
        near = "" if file in READERS else nearest(file, READERS, _SURE)
        if near and abs(len(file) - len(near)) <= 1:  # copies such as config.pbtxt.bak are usual
            yield f"file {printable(file)!r}: did you mean {near}?"


def _main_files(folder: Folder, listing: Listing, file: str) -> tuple[dict[str, Path], list[str]]:
    """The main file of each version, and why others have none."""
    found, problems = {}, []
    numbers = _versions(listing)
    for version in numbers:
        try:
            found[version] = _main(folder.below(version), file)
        except ModelFileError as exc:
            problems.append(f"version {version}: {exc}")
    if numbers:
        return found, problems
    if not folder.within:  # the folder that the user named: a single model, without versions
        try:
            return {"1": _main(folder, file)}, []
        except ModelFileError as exc:
            return {}, [str(exc)]
    return {}, ["it has no version; put the model file into a folder '1' in its folder"]


def _main(folder: Folder, file: str) -> Path:
    """The main file of a version."""
    listing = folder.listing()
    if file:
        if file in listing.files:
            return folder.path / file
        raise ModelFileError(f"there is no file {file[:200]!r}, which its configuration names")
    usual = [name for name in USUAL_FILES if name in listing.files]
    any_name = list(filter(_is_model_file, listing.files))
    for names in (usual, any_name):
        if len(names) == 1:
            return folder.path / names[0]
        if names:
            raise ModelFileError(
                f"there are {' and '.join(names)[:200]}; name one by default_model_filename in "
                "config.pbtxt, or by file in section [serve] of model.ini"
            )
    for name in USUAL_FILES:  # Triton takes a folder as well, in which it lies with its data
        if name in listing.folders:
            return _main(folder.below(name), name)
    outside = list(filter(_is_model_file, listing.outside))
    if outside:
        raise ModelFileError(f"there is no model file: {outside[0]!r} {_OUTSIDE}")
    raise ModelFileError(f"there is no model file; wanted {' or '.join(USUAL_FILES)}")


def _checked(entry: ModelEntry) -> ModelEntry:
    """The entry under a name that can be shown; it is at fault if it cannot be served under it."""
    try:
        check_name(entry.name, "1")
    except ValueError as exc:
        return replace(entry, name=printable(entry.name), fault=entry.fault or printable(str(exc)))
    return entry


def _versions(listing: Listing) -> list[str]:
    return sorted(filter(_VERSION.fullmatch, listing.folders), key=int)


def _has_config(listing: Listing) -> bool:
    return any(file in listing.files for file in READERS)


# --- what changes when a model changes ---


def _stamp(folder: Folder, depth: int = _DEPTH) -> tuple[object, ...]:
    listing = folder.listing()
    below = listing.folders if depth > 1 else ()
    return (listing.stamp(), *(_stamp(folder.below(name), depth - 1) for name in below))


def _file_stamp(path: Path) -> tuple[object, ...]:
    """Of a file, and of the files that usually lie next to it."""
    stem = path.stem.removesuffix(_GRAPH)
    names = [path.name, f"{path.name}.data", f"{path.name}_data", f"{path.stem}.data"]
    paths: Sequence[Path] = [path.with_name(name) for name in names]
    with suppress(OSError):
        paths = [*paths, *sorted(path.with_name(f"{stem}_variables").iterdir())]
    return tuple(_status(one) for one in paths)


def _status(path: Path) -> tuple[int, ...]:
    try:
        return status_stamp(os.stat(path))
    except OSError:
        return ()
