"""Tests of core/json_text.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mindspore_lite
from mindspore_lite.core.json_text import MAX_DEPTH, read_json


@pytest.mark.parametrize("text", [b'{"a": [1, 2.5, null, "x"]}', '{"a": [1, 2.5, null, "x"]}'])
def test_a_text_is_read_from_bytes_and_str(text: bytes | str) -> None:
    assert read_json(text) == {"a": [1, 2.5, None, "x"]}


def test_nesting_is_allowed_up_to_the_limit() -> None:
    assert read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) != []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\xff",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_what_is_wrong_with_a_text_is_a_value_error(text: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_no_other_module_parses_json_by_itself() -> None:
    """Programs that the package starts as text, and the tools, have no file of a stranger."""
    package = Path(mindspore_lite.__file__).parent
    # the second: a script outside of the package, which reads what its parent wrote
    own = (package / "core/json_text.py", package / "core/jail_child.py")
    found = [
        f"{file.relative_to(package)}:{node.lineno}"
        for file in package.rglob("*.py")
        if file not in own
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("load", "loads")
        and isinstance(node.value, ast.Name)
        and node.value.id == "json"
    ]
    assert found == []
