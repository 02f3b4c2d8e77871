"""The jail: what crosses its wall, what does not, and what is left of a child: nothing."""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite import errors
from mindspore_lite.core import jail, landlock, seccomp
from mindspore_lite.errors import LiteError, ModelFileError, ResourceError, UnsupportedOpError

TASKS = Path(__file__).parents[1] / "support"
LIMITS = jail.Limits(60, 120, 1 << 30, 16 << 30, 8 << 20)

whole = pytest.mark.skipif(bool(jail.missing()), reason="this kernel has no whole jail")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of its own, to see what stays there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def run(task: str, arguments: Any = None, limits: jail.Limits = LIMITS, **more: Any) -> Any:
    told = arguments or {}
    doing = "the test"
    return jail.run(f"jail_tasks:{task}", told, doing=doing, limits=limits, path=[TASKS], **more)


def test_arguments_and_blobs_go_in_and_a_result_comes_out() -> None:
    found = run("echo", {"a": [1, None, "\udcff"]}, blobs=[b"one", b""])
    assert found == [{"a": [1, None, "\udcff"]}, ["one", ""]]


def test_warnings_come_along_without_what_a_terminal_obeys() -> None:
    with pytest.warns(RuntimeWarning, match=r"look \\x1b\[31mhere"):
        run("warn")


@pytest.mark.parametrize(
    ("task", "limits", "words"),
    [
        ("crash", {}, r"the test was ended by signal 11 \(SIGSEGV\)"),
        ("abort", {}, r"the test was ended by signal 6 \(SIGABRT\)"),
        ("spin", {"cpu_s": 1}, "the test took more than 1 s of CPU time"),
        ("hang", {"wall_s": 1}, "the test did not end within 1 s and was stopped"),
        ("close_and_hang", {"wall_s": 1}, "the test did not end within 1 s and was stopped"),
        ("eat_at_once", {}, "the test needed more than 1024 MiB of memory"),
        ("eat_slowly", {"data_bytes": 256 << 20}, "the test needed more than 256 MiB of memory"),
        ("fill_a_file", {}, "the test wrote a file of more than 8 MiB"),
        ("raise_other", {}, "not foreseen: KeyError: 'a slip'; this is a bug"),
        ("missing", {}, "not foreseen: AttributeError"),
        ("flood", {"wall_s": 2}, "did not end within 2 s"),
    ],
)
def test_a_bad_end_is_an_error_with_the_reason(
    task: str, limits: dict[str, int], words: str
) -> None:
    with pytest.raises(ModelFileError, match=words):
        run(task, limits=replace(LIMITS, **limits))


@pytest.mark.parametrize("how", ["named", "removed", "memory", "empty"])
def test_files_that_are_too_much_together_are_an_error(how: str, place: Path) -> None:
    words = "the test wrote more than 17 MiB of files, or very many, and was stopped; the knob"
    with pytest.raises(ModelFileError, match=words):
        run("fill_files", {"how": how}, hint="the knob")
    assert list(place.iterdir()) == []


@whole
def test_a_child_cannot_hide_descriptors_in_a_socket() -> None:
    assert run("pair") == "refused"


def test_the_error_of_a_limit_says_what_sets_it() -> None:
    with pytest.raises(ModelFileError, match="1024 MiB of memory; turn the knob"):
        run("eat_at_once", hint="turn the knob")


def error_classes() -> list[str]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return [kind.__name__ for kind in found if issubclass(kind, LiteError)]


@pytest.mark.parametrize("kind", error_classes())
def test_an_error_of_ours_arrives_with_its_class_and_words(kind: str) -> None:
    with pytest.raises(getattr(errors, kind)) as caught:
        run("raise_one", {"kind": kind, "text": "what\nand why"})
    assert type(caught.value).__name__ == kind
    assert str(caught.value) == "what\nand why"


def test_an_error_keeps_its_list_of_problems() -> None:
    told = {"kind": "UnsupportedOpError", "text": "no Foo", "more": [{"Foo": ["a", "b"]}]}
    with pytest.raises(UnsupportedOpError) as caught:
        run("raise_one", told)
    assert caught.value.problems == {"Foo": ["a", "b"]}


def framed(body: bytes) -> str:
    return (struct.pack("<Q", len(body)) + body).hex()


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "00",
        struct.pack("<Q", 1 << 60).hex(),
        framed(b""),
        framed(b"{}"),
        framed(b"[]"),
        framed(b'{"warnings": 7}'),
        framed(b'{"warnings": [1]}'),
        framed(b"[" * 100_000),
        framed(b'{"result": 1, "warnings": []} and more'),
    ],
)
def test_a_reply_without_sense_is_an_error(reply: str) -> None:
    with pytest.raises(ModelFileError, match="gave no answer that makes sense"):
        run("lie", {"reply": reply})


@pytest.mark.parametrize("name", ["SystemExit", "Mapping", "nothing", "__doc__", 7])
def test_a_reply_cannot_choose_a_class_that_is_none_of_ours(name: object) -> None:
    body = json.dumps({"error": name, "text": "\x1b[2J", "warnings": []}).encode()
    with pytest.raises(ModelFileError, match=r"not foreseen: .*\\x1b\[2J; this is a bug"):
        run("lie", {"reply": framed(body)})


def test_what_a_child_writes_to_standard_error_does_not_block_it() -> None:
    assert run("chatter") == "done"


def test_a_child_may_have_threads() -> None:
    assert run("thread") == [7]


@whole
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls of x86_64")
@pytest.mark.skipif(landlock.abi() < 3, reason="files can be cut below ABI 3")
def test_a_child_reaches_the_model_and_its_output_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    model, output, outside = place / "in" / "model", place / "out", place / "outside"
    for folder in (model.parent, output):
        folder.mkdir()
    model.write_text("model")
    outside.write_text("secret")
    outside.chmod(0o600)
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = {
            "model": str(model),
            "output": str(output),
            "outside": str(outside),
            "parent": os.getpid(),
            "address": server.getsockname(),
        }
        found = run("probe", told, read=[model.parent], write=[output])
    done = {what for what, met in found.items() if met == "done"}
    assert done == {"read the model", "write the output"}, found
    assert outside.read_text() == "secret"
    assert outside.stat().st_mode & 0o777 == 0o600
    assert not Path("/tmp/mslite-escaped").exists()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == open_files


def test_a_child_has_a_small_environment_and_its_own_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "x")
    found = run("state")
    assert "SECRET" not in found["environment"]
    assert "PATH" not in found["environment"]
    assert found["group"]
    assert found["stdin"] == ""
    assert found["dont_write_bytecode"]
    # standard streams, and the pipe for the reply
    assert len(found["descriptors"]) == 4


@whole
def test_a_child_has_no_rights_that_could_lift_its_limits() -> None:
    told = dict(line.split(":", 1) for line in run("state")["status"])
    assert told["NoNewPrivs"].strip() == "1"
    assert told["Seccomp"].strip() == "2"
    assert int(told["CapPrm"], 16) & ~0b110 == 0  # reading what the parent may read, no more
    assert told["CapEff"] == told["CapPrm"]


def test_nothing_is_left_of_a_child(place: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    run("echo")
    for task, limits in (("crash", {}), ("hang", {"wall_s": 0.5}), ("raise_other", {})):
        with pytest.raises(ModelFileError):
            run(task, limits=replace(LIMITS, **limits))
    assert set(os.listdir("/proc/self/fd")) <= before
    assert list(place.iterdir()) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_many_threads_may_each_have_a_child() -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(run("echo", {"n": n})[0]["n"]))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2, 3]


WITHOUT_STREAMS = """
    import os, sys
    from mindspore_lite.core import jail
    out = os.fdopen(os.dup(1), "w")
    os.closerange(0, 3)
    limits = jail.Limits(60, 60, 1 << 30, 16 << 30, 1 << 20)
    found = jail.run("jail_tasks:echo", {}, doing="it", limits=limits, path=[sys.argv[1]])
    out.write(repr(found))
    out.flush()
"""


def test_a_program_without_standard_streams_may_have_a_child() -> None:
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_STREAMS), str(TASKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[{}, []]"


PARENT = """
    import signal, sys
    from mindspore_lite.core import jail
    print("ready", flush=True)
    limits = jail.Limits(600, 600, 1 << 30, 16 << 30, 1 << 20)
    jail.run("jail_tasks:hang", {}, doing="it", limits=limits, path=[sys.argv[1]])
"""


def children_of(parent: int) -> list[int]:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(one) for one in text.split()]


def wait_until_gone(process: int) -> None:
    """Wait for the end of a process that is none of ours."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return
    import select

    try:
        ready, _, _ = select.select([watched], [], [], 120)
        assert ready, "the child still runs"
    finally:
        os.close(watched)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_child_ends_with_its_parent(number: int, place: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(TASKS)]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(place)},  # who is killed removes nothing
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        while not (found := children_of(parent.pid)):
            assert parent.poll() is None
        parent.send_signal(number)
        parent.wait(120)
        for child in found:
            wait_until_gone(child)


def test_a_process_that_cannot_be_started_is_a_resource_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ResourceError, match="no process could be started for it: No such file"):
        run("echo")


def test_a_machine_without_a_whole_jail_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr(seccomp, "available", lambda: False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run("echo")
    (told,) = [str(one.message) for one in caught]
    assert "no Landlock" in told
    assert "no seccomp filter" in told


def test_a_program_that_ignores_its_children_gets_results_all_the_same() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run("echo") == [{}, []]
    finally:
        signal.signal(signal.SIGCHLD, before)
