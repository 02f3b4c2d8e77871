"""model.py: update_weights, wherever the model and its compiled form lie, and what stays behind."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.encryption import encrypt
from support.models import ONNX, written
from support.onnx_updates import dense, some
from support.split_builder import split, split_oldest
from support.updates import (
    assert_same_bits,
    changeable,
    filled,
    outputs,
    telling_net,
    told,
    update,
    versions,
)
from support.workers import ROOT

import mindspore_lite as mslite
from mindspore_lite.core import machine
from mindspore_lite.errors import EngineError, LiteError

A_AND_B = ("a", "b")
SECRET = b"A very secret k."


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compile cache of this test alone."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net())


def artefacts(cache_dir: Path) -> list[Path]:
    return [p for p in cache_dir.iterdir() if len(p.name) == 64]


# --- where the model comes from -------------------------------------------------------------------


def from_file(folder: Path) -> mslite.Model:
    return changeable(written(folder / "m.mindir", telling_net()), *A_AND_B)


def from_buffer(folder: Path) -> mslite.Model:
    return changeable(telling_net(), *A_AND_B)


def from_side_files(folder: Path) -> mslite.Model:
    return changeable(split(telling_net(), folder), *A_AND_B)


def from_oldest_side_files(folder: Path) -> mslite.Model:
    return changeable(split_oldest(telling_net(), folder), *A_AND_B)


def encrypted(folder: Path) -> mslite.Model:
    sealed = written(folder / "m.mindir", encrypt(telling_net(), SECRET))
    return changeable(sealed, *A_AND_B, dec_key=SECRET)


def encrypted_buffer(folder: Path) -> mslite.Model:
    return changeable(encrypt(telling_net(), SECRET), *A_AND_B, dec_key=SECRET)


def encrypted_side_files(folder: Path) -> mslite.Model:
    sealed = split(telling_net(), folder, seal=lambda pieces: encrypt(pieces, SECRET))
    return changeable(sealed, *A_AND_B, dec_key=SECRET)


@pytest.mark.parametrize("stored", ["on", "off"])
@pytest.mark.parametrize(
    "make",
    [
        from_file,
        from_buffer,
        from_side_files,
        from_oldest_side_files,
        encrypted,
        encrypted_buffer,
        encrypted_side_files,
    ],
)
def test_weights_change_wherever_the_model_comes_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], mslite.Model],
    stored: str,
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", stored)
    model = make(tmp_path)
    seen = [told(model)]
    for number in (1, 2):
        update(model, versions(number))
        seen.append(told(model))
    model.resize(model.get_inputs(), [[4, 8]])
    seen.append(told(model, 4))
    model.update_weights([])
    seen.append(told(model, 4))
    assert seen == [0, 1, 2, 2, 0]


def test_nothing_of_an_encrypted_model_or_of_new_weights_comes_to_lie_on_a_disk(
    tmp_path: Path, cache_dir: Path
) -> None:
    model = encrypted(tmp_path)
    update(model, versions(1))
    assert not cache_dir.exists() or artefacts(cache_dir) == []
    plain = from_file(tmp_path)
    secret = np.random.default_rng(5).random((8, 8), np.float32)
    update(plain, {"a": secret})
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert len(files) > 3
    assert not any(secret.tobytes()[:64] in f.read_bytes() for f in files)


@pytest.mark.parametrize("beside", [False, True])
def test_an_onnx_model_after_an_update_is_the_file_with_those_weights(
    tmp_path: Path, beside: bool
) -> None:
    made, x, new = dense(), some(2, 8), some(8, 4)
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    onnx.save(
        onnx.ModelProto.FromString(made.SerializeToString()),
        path,
        save_as_external_data=beside,
        location="m.data",
        size_threshold=0,
    )
    (weight,) = [t for t in made.graph.initializer if t.name == "w"]
    weight.CopyFrom(onnx.numpy_helper.from_array(new, "w"))
    onnx.save(made, other)
    model = changeable(path, "w", kind=ONNX)
    assert_same_bits(outputs(model, x), outputs(changeable(path, kind=ONNX), x))
    update(model, {"w": new})
    assert_same_bits(outputs(model, x), outputs(changeable(other, kind=ONNX), x))


# --- what happens to the files meanwhile ----------------------------------------------------------


def test_the_compiled_model_may_go_between_build_and_update(path: Path, cache_dir: Path) -> None:
    model = changeable(path, *A_AND_B)
    (folder,) = artefacts(cache_dir)
    shutil.rmtree(folder)
    update(model, versions(1))
    assert told(model) == 1
    assert artefacts(cache_dir) == [], "nothing was compiled"
    model.update_weights([])
    assert told(model) == 0


@pytest.mark.parametrize("name", ["weights.bin", "model.onnx"])
def test_a_compiled_model_that_was_written_to_stops_updates(
    path: Path, cache_dir: Path, name: str
) -> None:
    """The very file that is in use: what it holds now is nobody's model."""
    model = changeable(path, *A_AND_B)
    (folder,) = artefacts(cache_dir)
    file = folder / name
    os.chmod(file, 0o600)
    os.utime(file, (1, 1))
    for _ in range(2):  # also when it cannot be found any more
        with pytest.raises(EngineError, match=r"was changed by somebody .* build the model again"):
            update(model, {"a": filled(1)})
        shutil.rmtree(folder, ignore_errors=True)
    assert (told(model), model.get_model_info("weights_version")) == (0, "0")
    again = changeable(path, *A_AND_B)
    update(again, versions(1))
    assert told(again) == 1


def test_a_compiled_model_of_the_same_key_is_not_taken_for_the_one_in_use(
    path: Path, cache_dir: Path
) -> None:
    """Whatever has come into its place: it was not looked at."""
    model = changeable(path, *A_AND_B)
    (folder,) = artefacts(cache_dir)
    folder.rename(folder.with_name("away"))
    shutil.copytree(folder.with_name("away"), folder)
    os.chmod(folder / "model.onnx", 0o600)
    (folder / "model.onnx").write_bytes(b"no model")
    update(model, versions(1))
    assert told(model) == 1


@pytest.mark.parametrize("stored", ["on", "off"])
@pytest.mark.parametrize(
    ("happens", "error"),
    [
        (lambda p: p.unlink(), r"cannot read '.*telling\.mindir': No such file"),
        (
            lambda p: p.write_bytes(telling_net(rows=3)),
            r"telling\.mindir' changed since it was built; build it again",
        ),
    ],
)
def test_a_model_file_that_goes_or_changes_stops_a_resize_but_no_update(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path], Any],
    error: str,
    stored: str,
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", stored)
    model = changeable(path, *A_AND_B)
    update(model, versions(1))
    happens(path)
    update(model, versions(2))
    assert told(model) == 2
    with pytest.raises(LiteError, match=error):
        model.resize(model.get_inputs(), [[5, 8]])
    model.update_weights([])
    assert (told(model), model.get_model_info("weights_version")) == (0, "3")


def test_a_side_file_that_changes_stops_no_update(tmp_path: Path) -> None:
    model = from_side_files(tmp_path)
    data = tmp_path / "net_variables/data_0"
    os.utime(data, (1, 1))
    update(model, versions(1))
    assert told(model) == 1


# --- processes ------------------------------------------------------------------------------------


def run(program: str, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from support.updates import changeable, told, update, versions
model = changeable(Path(sys.argv[1]), "a", "b")
print(told(model))
update(model, versions(7))
print(told(model))
"""


def test_another_process_starts_from_the_same_compiled_model_with_the_first_weights(
    path: Path, cache_dir: Path
) -> None:
    model = changeable(path, *A_AND_B)
    update(model, versions(3))
    before = artefacts(cache_dir)
    assert run(IN_ANOTHER_PROCESS, path).split() == ["0.0", "7.0"]
    assert artefacts(cache_dir) == before
    assert told(model) == 3


FORK = """
import os, sys, warnings
from pathlib import Path
warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
from support.updates import changeable, told, update, versions
model = changeable(Path(sys.argv[1]), "a", "b")
update(model, versions(1))
child = os.fork()
if child == 0:
    try:
        told(model)
    except RuntimeError as exc:
        assert "made before this process was forked" in str(exc), exc
    else:
        raise AssertionError("no error")
    update(model, versions(2))  # opens a session of the child's own
    print(told(model), flush=True)
    model.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(told(model))
update(model, versions(3))
print(told(model))
"""


def test_a_forked_child_and_its_parent_change_weights_for_themselves(path: Path) -> None:
    assert run(FORK, path).split() == ["2.0", "1.0", "3.0"]


# --- what stays behind ----------------------------------------------------------------------------


@pytest.mark.parametrize("stored", ["on", "off", "removed"])
def test_updates_leave_no_memory_descriptors_or_threads_behind(
    tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off" if stored == "off" else "on")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    growth = importlib.import_module("growth")
    weights = {"w": some(512, 512)}  # 1 MiB: 50 that stay would be seen
    made = dense()
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 512
    for tensor in made.graph.initializer:
        value = weights["w"] if tensor.name == "w" else some(512)
        tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    path = written(tmp_path / "m.onnx", made.SerializeToString())
    model = changeable(path, "w", kind=ONNX, threads=2)
    x = some(2, 512)
    if stored == "removed":
        shutil.rmtree(cache_dir)
        update(model, {"w": weights["w"]})

    def cycle() -> None:
        update(model, {"w": weights["w"]})
        outputs(model, x)

    gc.collect()
    ((before, after),) = growth.grown([os.getpid()], cycle, 50)
    gc.collect()
    assert after["own KiB"] <= before["own KiB"] + 8192
    for name in ("descriptors", "threads"):
        assert growth.holdings(os.getpid())[name] <= before[name]


def test_memory_is_given_back_when_the_session_before_has_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = changeable(path, *A_AND_B)
    before = weakref.ref(model._service.built.session)  # type: ignore[union-attr]
    was_gone = []
    monkeypatch.setattr(machine, "trim_heap", lambda: was_gone.append(before() is None))
    update(model, versions(1))
    assert was_gone[-1]
