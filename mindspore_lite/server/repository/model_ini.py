"""Reads model.ini: sections of settings/, and [serve] with what only a server needs to know."""

from __future__ import annotations

from typing import Any

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.labels import read_labels
from mindspore_lite.server.repository.own_keys import (
    SERVE,
    check_serve_key,
    check_settings,
    value_of,
)
from mindspore_lite.server.repository.records import Declared, ServeConfig, VersionPolicy
from mindspore_lite.settings.names import nearest
from mindspore_lite.settings.read import parse_config, useful_lines_of
from mindspore_lite.settings.table import SECTIONS

NAME = "model.ini"
_MAX_BYTES = 1 << 20


def read_ini(folder: Folder) -> ServeConfig:
    """What model.ini of a folder says.

    Raises:
        LiteError: It makes no sense.
    """
    content = folder.read(NAME, _MAX_BYTES)
    try:
        sections = parse_config(useful_lines_of(content, NAME), _refuse)
    except ValueError as exc:
        raise ModelFileError(str(exc)) from exc
    for name in sections:
        if name != "serve" and name not in SECTIONS and nearest(name, ["serve"]):
            raise ModelFileError(f"there is no section [{name[:80]}]; did you mean [serve]?")
    own = {name: entries for name, entries in sections.items() if name != "serve"}
    values = _values(sections.get("serve", {}))
    context = {"target": values["target"]} if values["target"] else {}
    ignored = check_settings(own, context)
    files = _label_files(values["labels"])
    return ServeConfig(
        max_batch_size=values["max_batch_size"],
        labels=read_labels(folder, files),
        outputs=tuple(Declared(name, label_file=file) for name, file in files.items()),
        policy=_policy(values["versions"]),
        settings=own,
        context=context,
        isolation=values["isolation"],
        share=values["share"],
        cache_bytes=values["cache_bytes"],
        evictable=values["evictable"],
        file=values["file"],
        source=NAME,
        ignored=ignored,
    )


def _refuse(number: int, problem: str) -> None:
    raise ModelFileError(f"{NAME}, line {number}: {problem.removesuffix(' and is ignored')}")


def _values(entries: dict[str, str]) -> dict[str, Any]:
    for name in entries:
        check_serve_key(name, "[serve]")
    return {
        name: value_of(key, entries[name], "[serve]") if name in entries else key.default
        for name, key in SERVE.items()
    }


def _policy(words: tuple[str, ...]) -> VersionPolicy:
    if words == ("all",):
        return VersionPolicy(all=True)
    if words[0] == "latest":
        return VersionPolicy(latest=int(words[1]))
    return VersionPolicy(specific=words)


def _label_files(text: str) -> dict[str, str]:
    """The file of each output."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        output, colon, file = (word.strip() for word in part.rpartition(":"))
        if not colon or not output or not file:
            raise ModelFileError(f"[serve] labels has {part[:80]!r}, wanted OUTPUT:FILE")
        found[output] = file
    return found
