"""Tests of core/boundary.py: what callers see of any exception."""

from __future__ import annotations

import errno
import gc
import json
import re
import weakref

import pytest

from mindspore_lite.core.boundary import boundary, engine_failure, reraise
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    LiteError,
    ModelFileError,
    ResourceError,
    ShapeError,
)
from mindspore_lite.version import __version__

BUGS = [AttributeError, KeyError, IndexError, RecursionError, AssertionError, TypeError, ValueError]


@pytest.mark.parametrize("kind", BUGS)
def test_an_exception_that_nobody_expected_is_told_as_a_bug(kind: type[Exception]) -> None:
    with pytest.raises(LiteError) as caught, boundary("build failed! "):
        raise kind("odd")
    assert type(caught.value) is LiteError
    assert isinstance(caught.value.__cause__, kind)
    text = str(caught.value)
    assert text.startswith(f"build failed! this is a bug of mslite: {kind.__name__} at ")
    assert "please report this message" in text
    assert f"mslite {__version__}, Python 3." in text


def test_a_bug_names_its_place_in_our_code_and_no_folder() -> None:
    with pytest.raises(LiteError) as caught, boundary(""):
        try:
            read_json("{")
        except ValueError as exc:
            exc.args = ("no JSON in /home/somebody/models/secret.json",)
            raise
    text = str(caught.value)
    assert re.search(r"at mindspore_lite\.core\.json_text:\d+, in json\.decoder:\d+: ", text)
    assert "no JSON in secret.json" in text
    assert not re.search(r"(?<!\w)/\w", text)  # versions may hold one inside


@pytest.mark.parametrize(
    ("exc", "words"),
    [
        (MemoryError(), "there is no more memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "there is no more memory"),
        (OSError(errno.EMFILE, "Too many open files"), "no more file descriptors of this process"),
        (OSError(errno.ENFILE, "Too many"), "no more file descriptors of the machine"),
        (OSError(errno.ENOSPC, "No space left on device"), "no more space on a disk"),
        (RuntimeError("can't start new thread"), "no more threads can be started"),
    ],
)
def test_a_limit_of_the_machine_is_a_resource_error(exc: Exception, words: str) -> None:
    with pytest.raises(ResourceError, match=words) as caught, boundary("build failed! "):
        raise exc
    assert caught.value.__cause__ is exc


@pytest.mark.parametrize("kind", [ModelFileError, EngineError])
def test_a_limit_behind_an_error_of_ours_is_a_resource_error(kind: type[LiteError]) -> None:
    with (
        pytest.raises(ResourceError, match=r"^no! cannot read it: there is no more file desc"),
        boundary("no! "),
    ):
        raise kind("cannot read it") from OSError(errno.EMFILE, "Too many open files")


def test_another_error_of_the_system_is_about_a_file() -> None:
    with pytest.raises(ModelFileError, match="a file 'x' cannot be used: Permission denied"):
        try:
            raise PermissionError(errno.EACCES, "Permission denied", "x")
        except OSError as exc:
            reraise(exc, "")


def test_an_error_of_ours_stays_and_keeps_its_cause() -> None:
    error, cause = ShapeError("too small"), KeyError("why")
    with pytest.raises(ShapeError) as caught, boundary("resize failed! "):
        raise error from cause
    assert caught.value is error
    assert str(error) == "resize failed! too small"
    assert error.__cause__ is cause


def test_what_was_said_already_is_not_said_again() -> None:
    doing = "predict failed! "
    with pytest.raises(ClosedError) as caught, boundary(doing), boundary(doing):
        raise ClosedError("closed")
    assert str(caught.value) == "predict failed! closed"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, UserWarning])
def test_what_is_no_error_passes(kind: type[BaseException]) -> None:
    error = kind()
    with pytest.raises(kind) as caught, boundary("build failed! "):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "text",
    [
        "std::bad_alloc",
        "Failed to allocate memory for requested buffer of size 4096",
        "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory",
    ],
)
def test_memory_that_a_runtime_lacks_is_a_resource_error(text: str) -> None:
    found = engine_failure(f"it could not run: {text}", RuntimeError(text))
    assert type(found) is ResourceError
    assert str(found).startswith("it could not run: there is not enough memory")
    assert "; give fewer rows in a request, free some" in str(found)
    assert "alloc" not in str(found)  # its own words are the cause's


def test_how_much_memory_a_runtime_lacks_is_said_where_it_says_so() -> None:
    text = (
        "Non-zero status code returned while running Conv node. Name:'features/2' Status Message: "
        "Failed to allocate memory for requested buffer of size 6553600000"
    )
    found = engine_failure(f"ONNX Runtime could not run the model: {text}", RuntimeError(text))
    assert str(found).startswith(
        "ONNX Runtime could not run the model: there is not enough memory for 6,250.0 MiB more, at "
        "Conv 'features/2'; give fewer rows in a request, "
    )


def test_another_failure_of_a_runtime_is_an_engine_error() -> None:
    assert type(engine_failure("it could not run", RuntimeError("Invalid rank"))) is EngineError


def test_an_error_that_was_wrapped_leaves_no_circle_behind() -> None:
    class Held:
        pass

    def fail() -> None:
        held = Held()
        gone.append(weakref.ref(held))
        with boundary("build failed! "):
            json.loads("{")

    gone: list[weakref.ref[Held]] = []
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(LiteError):
            fail()
        assert gone[0]() is None
    finally:
        gc.enable()
