"""`mslite worker`: what it is told, and one line for whatever is wrong with that."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S
from support.workers import MAIN, connected, listening, process

from mindspore_lite.cli.worker import core_list


def refused(*arguments: object, fds: tuple[int, ...] = ()) -> tuple[int, str]:
    """Exit code and the line that is said; in a process of its own, which it would change."""
    with process(MAIN, "worker", *arguments, fds=fds) as worker:
        out, err = worker.communicate(timeout=LIMIT_S)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("mslite: ")
    return worker.returncode, err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of --socket PATH, --fd N or --private"),
        (["--socket", "a", "--fd", "3"], "one of --socket PATH, --fd N or --private"),
        (["--private", "--fd", "3"], "one of --socket PATH, --fd N or --private"),
        (["--fd", "3", "--stay"], "--stay goes with --socket"),
        (["--private", "--stay"], "--stay goes with --socket"),
        (["--fd", "three"], "three"),
    ],
)
def test_wrong_usage_is_said_in_one_line(arguments: list[str], words: str) -> None:
    code, said = refused(*arguments)
    assert (code, words in said) == (2, True), said


def test_a_path_that_cannot_be_had_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, words in {
        tmp_path / ("x" * 108): "at most 107 are possible; choose a shorter one",
        tmp_path / "no" / "w.sock": "there is no directory",
        tmp_path / "file": "there is a file that is no socket",
        tmp_path: "that is a directory; name a file in it",
        "": "the socket path is empty",
    }.items():
        code, said = refused("--socket", path)
        assert (code, words in said) == (1, True), said


def test_a_second_worker_on_a_path_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path):
        code, said = refused("--socket", path)
        assert (code, "another worker listens there" in said) == (1, True), said
        with connected(path) as session:
            session.info("pid")


def test_a_descriptor_must_be_a_connected_unix_stream_socket(tmp_path: Path) -> None:
    wanted = "must be a connected Unix stream socket that was inherited"
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with (
        one,
        other,
        socket.socket() as inet,
        socket.socket(socket.AF_UNIX) as alone,
        open(tmp_path / "file", "w") as file,
    ):
        for number, words in {
            999: "Bad file descriptor",
            -1: "",
            file.fileno(): "Socket operation on non-socket",
            one.fileno(): "it is AF_UNIX SOCK_DGRAM",
            inet.fileno(): "it is AF_INET SOCK_STREAM",
            alone.fileno(): "not connected",
        }.items():
            fds = (number,) if 0 <= number < 999 else ()
            code, said = refused("--fd", number, fds=fds)
            assert (code, wanted in said, words in said) == (1, True, True), said


def test_cores_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    for text, words in {
        "9999": f"cores [9999] cannot be used; this process may use {usable}",
        f"{usable[0]},4095": "cores [4095] cannot be used",
        "": "--cores is '', wanted numbers and ranges, such as 0-3,6",  # of a variable not set
        "many": "--cores is 'many', wanted numbers and ranges, such as 0-3,6",
    }.items():
        code, said = refused("--socket", tmp_path / "w.sock", "--cores", text)
        assert (code, words in said) == (1, True), said


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0", [0]), ("0-2,5", [0, 1, 2, 5]), (" 3 , 1-1,1", [1, 3]), ("7-8", [7, 8])],
)
def test_lists_of_cores_are_read(text: str, cores: list[int]) -> None:
    assert core_list(text) == cores


@pytest.mark.parametrize("text", ["x", "1,", "-1", "3-1", "0-99999999", "1--2", "0x1", "1;2", "٣"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="wanted numbers and ranges"):
        core_list(text)
