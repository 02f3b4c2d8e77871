"""docs/wire.md says what the code does: its tables and its example are held against it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.wire_vectors import FOLDER

from mindspore_lite.context import Context
from mindspore_lite.core import dtypes
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.wire import bodies, faults, fields, frames, handshake, memory, tensors
from mindspore_lite.remote.wire.frames import Message
from mindspore_lite.remote.worker import client_session, server
from mindspore_lite.remote.worker.groups import NAME, SHARE
from mindspore_lite.settings.text import _settings, from_map, text_of

PAGE = (Path(__file__).parents[3] / "docs" / "wire.md").read_text(encoding="utf-8")


def table(heading: str, first: str) -> list[list[str]]:
    """The cells of the table under a heading whose first row begins so."""
    section = re.split(r"^#+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[
        0
    ]
    found = re.search(rf"^\| {re.escape(first)} .*\n\|[ |-]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert found, f"no such table under {heading}"
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in found[1].splitlines()]
    assert rows
    return rows


def test_messages_have_their_numbers() -> None:
    rows = table("Frames", "| message | from")
    assert {row[1]: int(row[0]) for row in rows} == {m.name: int(m) for m in Message}


def test_the_header_has_its_places() -> None:
    places = {row[0]: row[1] for row in table("Frames", "at | field")}
    assert places == {"0": "u32", "4": "u16", "6": "u16", "8": "u64", "16": "u64", "24": ""}
    assert frames._HEADER.format == "<IHHQQ"
    assert f"0x{frames._MAGIC:08x}" in PAGE


def test_types_have_their_numbers_and_sizes() -> None:
    rows = [(int(row[0]), row[1], int(row[2])) for row in table("Tensors", "type | name")]
    assert rows == [(row.type_id, row.name, row.item_bytes) for row in dtypes.TABLE]
    aliases = {n: row.type_id for n, row in dtypes.BY_TYPE_ID.items() if n != row.type_id}
    assert aliases == {31: 34, 36: 39, 41: 43}


def test_errors_have_their_codes() -> None:
    codes = {row[0]: int(row[1]) for row in table("Errors", "kind | code")}
    wanted = {
        name: kind.code if issubclass(kind, LiteError) else faults._PARAM_INVALID
        for name, kind in faults._KINDS.items()
    }
    assert codes == wanted


def test_limits_are_the_codes() -> None:
    limits = {row[0]: int(re.sub(r"\D", "", row[1])) for row in table("Limits", "| at most")}
    assert limits == {
        "body of a frame": frames.MAX_BODY,
        "text": fields.MAX_TEXT,
        "name of a tensor": tensors.MAX_NAME,
        "text of the greeting": handshake._MAX_TEXT,
        "key": bodies.MAX_KEY,
        "dims of a tensor": tensors.MAX_RANK,
        "items of a list": fields.MAX_ITEMS,
        "size of a block": memory.MAX_BLOCK,
        "blocks of a session": client_session.MAX_BLOCKS,
        "models of a session": client_session.MAX_MODELS,
        "connections of a worker": server.MAX_CONNECTIONS,
    }
    assert f"more than {tensors.INLINE_BYTES:,} bytes into blocks" in PAGE


def test_settings_are_those_of_a_context() -> None:
    context = Context()
    told = {row[0]: row[2] for row in table("Settings", "name | kind")}
    assert told == {name: text_of(s.default) for name, _, s in _settings(context)}
    kinds = {row[0]: row[1] for row in table("Settings", "name | kind")}
    names = {str: "text", int: "number", float: "number", bool: "true or false", list: "numbers"}
    wanted = {name: names[type(setting.default)] for name, _, setting in _settings(context)}
    assert kinds == wanted | {"target": "texts"}
    assert from_map({name: text for name, text in told.items() if text}).cpu.thread_num == 0


def test_settings_of_groups_are_told() -> None:
    section = PAGE.split("\n## Settings\n", 1)[1].split("\n## ", 1)[0]
    assert all(f"`{name}`" in section for name in (NAME, SHARE))


@pytest.mark.parametrize("name", ["01-greeting", "03-build", "05-predict", "19-exit"])
def test_the_conversation_is_from_the_vectors(name: str) -> None:
    lines = (FOLDER / f"{name}.txt").read_text(encoding="ascii")
    section = PAGE.split("## A whole conversation\n", 1)[1].split("\n## ", 1)[0]
    assert lines in section
