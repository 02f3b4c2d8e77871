from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mindspore_lite.server.access import Gate, Need, read_tokens
from mindspore_lite.server.errors import Kind, RequestError

CLIENT, ADMIN = "client-token-0123456789", "admin-token-0123456789"


def outcome(gate: Gate, need: Need, authorization: str | None) -> Kind | None:
    try:
        gate.check(need, authorization)
    except RequestError as exc:
        return exc.kind
    return None


NO, FEW = Kind.UNAUTHENTICATED, Kind.FORBIDDEN


@pytest.mark.parametrize(
    ("authorization", "found"),
    [
        (None, [None, NO, NO]),
        ("", [None, NO, NO]),
        ("Bearer", [None, NO, NO]),
        ("Bearer ", [None, NO, NO]),
        (f"Basic {CLIENT}", [None, NO, NO]),
        (f"Bearer {CLIENT}x", [None, NO, NO]),
        (f"Bearer {CLIENT[:-1]}", [None, NO, NO]),
        (f"Bearer {CLIENT.upper()}", [None, NO, NO]),
        ("Bearer é\ud800", [None, NO, NO]),
        (f"Bearer {CLIENT}", [None, None, FEW]),
        (f"bearer {CLIENT}", [None, None, FEW]),
        (f"Bearer {ADMIN}", [None, None, None]),
    ],
)
def test_a_token_opens_what_it_is_for(authorization: str | None, found: list[Kind | None]) -> None:
    gate = Gate([CLIENT], [ADMIN])
    assert [outcome(gate, need, authorization) for need in Need] == found


def test_without_tokens_everybody_may_use_and_nobody_administer() -> None:
    gate = Gate()
    assert gate.is_open
    assert [outcome(gate, need, None) for need in Need] == [None, None, FEW]
    assert outcome(gate, Need.ADMIN, f"Bearer {CLIENT}") is FEW


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n\n  {CLIENT}  \n{ADMIN}\n")
    assert read_tokens(path) == [CLIENT, ADMIN]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "holds none"), ("# x\n", "holds none"), ("short\n", "16 or more"), ("a b" * 9, "spaces")],
)
def test_a_file_of_bad_tokens_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_tokens(path)


@pytest.mark.parametrize("data", [b"\xff\xfe0123456789abcdef", b"0123456789abcdef\x01"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"no text|printable"):
        read_tokens(path)


def test_a_mark_of_an_editor_is_no_part_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(CLIENT, encoding="utf-8-sig")
    assert read_tokens(path) == [CLIENT]


@pytest.mark.parametrize("tokens", [CLIENT, [""], [CLIENT, "short"], [None], [CLIENT + "\n"]])
def test_tokens_that_would_let_others_in_are_refused(tokens: Any) -> None:
    """A single text is a list of letters, each of which would open the gate."""
    with pytest.raises((TypeError, ValueError), match="token"):
        Gate(tokens)
    with pytest.raises((TypeError, ValueError), match="token"):
        Gate((), tokens)
