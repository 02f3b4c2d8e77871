"""Each rule of Landlock is proved by a child that tries to break it."""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

import pytest
from support import landlocked
from support.landlocked import needs_landlock

from mindspore_lite.core import installation, landlock

TRY = """
import sys
def tried(what, work):
    try:
        work()
    except OSError as exc:
        print(what, type(exc).__name__)
    else:
        print(what, "done")
"""


def lines(script: str, **rules: object) -> list[str]:
    done = landlocked.run(TRY + script, **rules)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_landlock
def test_only_named_folders_can_be_read(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("x")
    (inside / "link").symlink_to(outside / "file")
    script = f"""
tried("inside", lambda: open({str(inside / "file")!r}).read())
tried("outside", lambda: open({str(outside / "file")!r}).read())
tried("link", lambda: open({str(inside / "link")!r}).read())
tried("through /proc", lambda: open("/proc/self/root" + {str(outside / "file")!r}).read())
import os
tried("list", lambda: os.listdir({str(outside)!r}))
tried("write", lambda: open({str(inside / "file")!r}, "a"))
tried("make", lambda: open({str(inside / "new")!r}, "w"))
tried("remove", lambda: os.unlink({str(inside / "file")!r}))
"""
    assert lines(script, read=[inside]) == [
        "inside done",
        *(f"{what} PermissionError" for what in ("outside", "link", "through /proc", "list")),
        *(f"{what} PermissionError" for what in ("write", "make", "remove")),
    ]


@needs_landlock
def test_a_single_file_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("x")
    (tmp_path / "two").write_text("x")
    script = f"""
tried("one", lambda: open({str(tmp_path / "one")!r}).read())
tried("two", lambda: open({str(tmp_path / "two")!r}).read())
"""
    assert lines(script, read=[tmp_path / "one"]) == ["one done", "two PermissionError"]


@needs_landlock
def test_plain_files_can_be_made_in_a_folder_for_writing_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    script = f"""
import os, socket
os.chdir({str(out)!r})
tried("file", lambda: open("file", "w").write("x"))
tried("folder", lambda: os.mkdir("folder"))
tried("move", lambda: os.rename("file", "folder/file"))
tried("cut", lambda: os.truncate("folder/file", 0))
tried("remove", lambda: os.unlink("folder/file"))
tried("link", lambda: os.symlink("/etc/passwd", "link"))
tried("fifo", lambda: os.mkfifo("fifo"))
tried("socket", lambda: socket.socket(socket.AF_UNIX).bind("socket"))
tried("escape", lambda: os.rename("folder", "../folder"))
"""
    assert lines(script, write=[out]) == [
        *(f"{what} done" for what in ("file", "folder", "move", "cut", "remove")),
        *(f"{what} PermissionError" for what in ("link", "fifo", "socket", "escape")),
    ]


@needs_landlock
def test_no_program_can_be_executed(tmp_path: Path) -> None:
    script = """
import subprocess
tried("true", lambda: subprocess.run(["/bin/true"]))
tried("python", lambda: subprocess.run([sys.executable, "-c", "pass"]))
"""
    found = lines(script, read=["/bin", "/usr/bin"])
    assert found == ["true PermissionError", "python PermissionError"]


@pytest.mark.skipif(landlock.abi() < 4, reason="Landlock rules TCP from ABI 4 on")
def test_tcp_is_refused_unless_it_is_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        script = f"""
import socket
tried("connect", lambda: socket.create_connection({address!r}))
tried("bind", lambda: socket.create_server(("127.0.0.1", 0)))
"""
        assert lines(script) == ["connect PermissionError", "bind PermissionError"]
        assert lines(script, network=True) == ["connect done", "bind done"]


@pytest.mark.skipif(landlock.abi() < 6, reason="Landlock rules signals from ABI 6 on")
def test_processes_outside_cannot_be_signalled() -> None:
    script = f"""
import os
tried("parent", lambda: os.kill({os.getpid()}, 0))
tried("itself", lambda: os.kill(os.getpid(), 0))
"""
    assert lines(script) == ["parent PermissionError", "itself done"]


@needs_landlock
def test_what_is_missing_needs_no_rule(tmp_path: Path) -> None:
    assert lines("print('here')", read=[tmp_path / "missing"]) == ["here"]


@needs_landlock
def test_the_package_can_be_used_with_what_the_installation_names() -> None:
    script = """
from mindspore_lite.cli.demo import DIGITS_MODEL, samples
import mindspore_lite as mslite
model = mslite.Model()
model.build_from_file(str(DIGITS_MODEL), mslite.ModelType.MINDIR)
print(len(model.predict([samples()[0]])))
"""
    assert lines(script) == ["1"]


def test_a_project_of_the_user_is_not_part_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, packages = tmp_path / "project", tmp_path / "packages"
    project.mkdir()
    (packages / "some-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(project)
    monkeypatch.syspath_prepend(packages)
    assert packages in installation.readable()
    assert project not in installation.readable()
    assert {project, packages} <= set(installation.path_folders())


class _NoLandlock:
    """A C library on a kernel without Landlock."""

    def syscall(self, *arguments: object) -> int:
        ctypes.set_errno(38)
        return -1


def test_a_kernel_without_landlock_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_libc", _NoLandlock)
    assert landlock.abi() == 0
    assert landlock.restrict(read=["/"]) == 0


class _Refusing:
    """A C library on a kernel that has Landlock, and refuses what it is asked."""

    def syscall(self, number: ctypes.c_long, *arguments: object) -> int:
        if arguments[0] is None:
            return 7
        ctypes.set_errno(7)
        return -1


def test_rules_that_the_kernel_refuses_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_libc", _Refusing)
    with pytest.raises(OSError, match="making the rules failed"):
        landlock.restrict(read=["/"])
