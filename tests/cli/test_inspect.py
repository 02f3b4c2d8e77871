from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.conversion import unusual_onnx
from support.mindir_builder import Net, encode, tensor_type
from support.models import DYN_BATCH, written

from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.cli.inspect import printable, size_text
from mindspore_lite.conversion.convert import convert
from mindspore_lite.conversion.job import Job
from mindspore_lite.inspection.facts import Facts
from mindspore_lite.mindir.records import GraphRef
from mindspore_lite.ops.table import OPS
from mindspore_lite.version import __version__

Run = Callable[..., Any]
ESCAPE = "\x1b[31mred\nline"


@pytest.fixture
def unsupported(tmp_path: Path) -> Path:
    net = Net()
    made = net.call("ReLU", net.input("x", (-1, 3)), type=tensor_type((-1, 3)))
    for number in range(7):
        made = net.call("FancyOp", made, type=tensor_type((-1, 3)), scope=f"Default/{number}")
    model = net.model(made, user_info={"note": ESCAPE})
    return written(tmp_path / "fancy.mindir", encode(model))


def test_a_model_that_can_run_is_told_and_the_exit_code_is_0(mslite: Run) -> None:
    done = mslite("inspect", DIGITS_MODEL)
    assert (done.code, done.err) == (0, "")
    for line in (
        "MindIR of 937.4 KiB, written by MindSpore 2.10.0",
        "x  float32  [-1, 1, 8, 8]  open dims: 0",
        "weights: 201,834 parameters in 157 tensors: float32 788.4 KiB",
        "per batch item (open dims taken as 1)",
        "operators: 286 nodes of 14 kinds",
        "it can run: everything in it is supported",
    ):
        assert line in done.out


def test_a_converted_model_names_its_converter_and_can_run_with_custom_operators(
    mslite: Run, tmp_path: Path
) -> None:
    source = unusual_onnx(tmp_path / "net.onnx")
    convert(Job(model=source, output=tmp_path / "net.mindir"))
    done = mslite("inspect", tmp_path / "net.mindir")
    assert done.code == 0
    assert f"written by mslite {__version__}\n" in done.out
    assert "Custom  1  custom" in done.out
    assert "it can run" in done.out


def test_what_is_not_supported_is_told_with_every_place_and_exit_code_1(
    mslite: Run, unsupported: Path
) -> None:
    done = mslite("inspect", unsupported)
    assert done.code == 1
    assert done.err == ""
    assert all(f"    at Default/{number}\n" in done.out for number in range(7))
    assert "FancyOp  7" in done.out
    assert "not supported" in done.out
    assert "it cannot run" in done.out


def test_texts_of_a_file_cannot_command_the_terminal(mslite: Run, unsupported: Path) -> None:
    done = mslite("inspect", unsupported)
    assert "user info note: \\x1b[31mred\\nline" in done.out
    assert "\x1b" not in done.out
    assert printable("ünï ✓") == "ünï ✓"


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xd8\x5e\x3a\x7f" + bytes(100), None])
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(
    mslite: Run, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "net.mindir"
    if content is not None:
        path.write_bytes(content)
    done = mslite("inspect", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("mslite: ")
    assert str(path) in done.err
    assert done.err.count("\n") == 1


def test_without_a_model_it_says_what_it_wants(mslite: Run) -> None:
    done = mslite("inspect")
    assert (done.code, done.out) == (2, "")
    assert "wants a MODEL" in done.err


def test_json_has_the_documented_keys(mslite: Run, unsupported: Path) -> None:
    for path, code in ((DYN_BATCH, 0), (unsupported, 1)):
        done = mslite("inspect", path, "--json")
        assert done.code == code
        found = json.loads(done.out)
        assert list(found) == ["can_run", *(field.name for field in dataclasses.fields(Facts))]
        assert found["can_run"] is (code == 0)
    docs = (Path(__file__).parent.parent.parent / "docs/inspect.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in docs for key in found)


def test_ops_lists_the_whole_table(mslite: Run) -> None:
    done = mslite("inspect", "--ops")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["primitive", "family", "signature", "remark"]
    assert {line[0] for line in lines} >= OPS.keys()
    row = next(line for line in lines if line[0] == "Rsqrt")
    assert row == ["Rsqrt", "elementwise", "Rsqrt(x)", "1", "/", "sqrt(x)."]


def test_ops_as_json(mslite: Run) -> None:
    found = {row["primitive"]: row for row in json.loads(mslite("inspect", "--ops", "--json").out)}
    assert found["Conv2D"]["family"] == "conv"
    assert found["Load"] == {
        "primitive": "Load",
        "signature": "Load",
        "family": "structure",
        "remark": "Another name for the first input.",
    }


def test_html_writes_a_page_and_keeps_the_exit_code(
    mslite: Run, unsupported: Path, tmp_path: Path
) -> None:
    page = tmp_path / "fancy.html"
    done = mslite("inspect", unsupported, "--html", page)
    assert done.code == 1
    assert f"the graph is drawn in {page}" in done.out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_stays_json_beside_a_page(mslite: Run, tmp_path: Path) -> None:
    done = mslite("inspect", DIGITS_MODEL, "--json", "--html", tmp_path / "page.html")
    assert json.loads(done.out)["can_run"]


def test_a_page_that_cannot_be_written_is_an_error(mslite: Run, tmp_path: Path) -> None:
    done = mslite("inspect", DIGITS_MODEL, "--html", tmp_path / "missing" / "page.html")
    assert done.code == 1
    assert "page.html" in done.err


def test_a_terminal_sees_that_something_happens(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    mslite("inspect", DIGITS_MODEL)
    assert "reading digits.mindir" in terminal.getvalue()


def test_weights_in_another_type_and_a_second_graph_are_shown(mslite: Run, tmp_path: Path) -> None:
    inner = Net("3_↻_construct")
    body = inner.graph(inner.call("ReLU", inner.input("x", (2,))))
    net = Net()
    x = net.call("Cast", net.weight("w", np.ones(2, np.float16)), net.constant(43))
    net.input("x", (2,))
    made = net.call(GraphRef("3_↻_construct"), x, scope="Default/loop")
    path = written(tmp_path / "net.mindir", encode(net.model(made, functions=[body])))
    out = mslite("inspect", path).out
    assert "float16 4 B" in out
    assert "loop body, 1 nodes, called at Default/loop: 3_↻_construct" in out


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 2**20, "5.0 MiB"),
        (2**41, "2048.0 GiB"),
    ],
)
def test_sizes_are_told_in_fitting_units(size: int, text: str) -> None:
    assert size_text(size) == text
