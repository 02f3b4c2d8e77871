"""model.py: models in memory, models with weights beside them, and encrypted ones."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.encryption import encrypt
from support.models import MINDIR, MOBILENET, ONNX, dense_net, written
from support.split_builder import split, split_oldest

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError, LiteError, ModelFileError, ShapeError

X = np.ones((2, 3), np.float32)
SECRET = b"A very secret k."


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compile cache of this test alone."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def from_buffer(data: Any, kind: Any = MINDIR, **more: Any) -> mslite.Model:
    model = mslite.Model()
    model.build_from_buffer(data, model_type=kind, **more)
    return model


def from_file(path: Path, kind: Any = MINDIR, **more: Any) -> mslite.Model:
    model = mslite.Model()
    model.build_from_file(str(path), kind, **more)
    return model


def assert_dense(model: mslite.Model, factor: float = 1.0, rows: int = 2) -> None:
    (got,) = model.predict([np.ones((rows, 3), np.float32)])
    np.testing.assert_array_equal(got.get_data_to_numpy(), np.full((rows, 4), 3 * factor + 1))


def onnx_net(location: str = "") -> bytes:
    """x @ ones(3, 4) + 1 as ONNX; with a location, the weight lies there."""
    weight = numpy_helper.from_array(np.ones((3, 4), np.float32), "w")
    if location:
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=location)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [weight, numpy_helper.from_array(np.ones(4, np.float32), "b")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(onnx.ModelProto.SerializeToString(made))


def artefacts(cache_dir: Path) -> list[Path]:
    return [p for p in cache_dir.iterdir() if len(p.name) == 64]


# --- models in memory ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_model_is_built_from_anything_that_holds_its_bytes(kind: Any) -> None:
    assert_dense(from_buffer(kind(dense_net())))
    assert_dense(from_buffer(kind(onnx_net()), ONNX))


def test_a_mapped_file_may_be_closed_once_the_model_is_built(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mindir", dense_net())
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        model = from_buffer(data)
    path.unlink()
    assert_dense(model)
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_the_callers_memory_may_change_once_the_model_is_built() -> None:
    data = bytearray(dense_net())
    model = from_buffer(data)
    data[:] = bytes(len(data))
    assert_dense(model)
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_a_model_in_memory_gives_what_its_file_gives() -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 64, 64)).astype(np.float32)
    (want,) = from_file(MOBILENET).predict([x])
    (got,) = from_buffer(MOBILENET.read_bytes()).predict([x])
    np.testing.assert_array_equal(got.get_data_to_numpy(), want.get_data_to_numpy())


def test_the_arguments_have_the_documented_names_and_order() -> None:
    model = mslite.Model()
    model.build_from_buffer(
        model_bytes=dense_net(), weight_bytes=None, model_type=MINDIR, context=None,
        config_path="", config_dict=None, dec_key=None, dec_mode="AES-GCM", dec_num_parallel=0,
    )  # fmt: skip
    mslite.Model().build_from_buffer(dense_net(), None, MINDIR, mslite.Context(), "", {})
    mslite.Model().build_from_buffer(dense_net(), MINDIR, mslite.Context())
    mslite.Model().build_from_buffer(dense_net(), MINDIR, context=mslite.Context())
    assert str(model) == "model_path: ."


def refused(kind: type[Exception], words: str, *args: Any, **more: Any) -> None:
    with pytest.raises(kind) as caught:
        mslite.Model().build_from_buffer(*args, **more)
    assert words in str(caught.value)


def test_the_checks_come_in_the_documented_order() -> None:
    """Each call has everything after its own mistake wrong, too."""
    wrong: dict[str, Any] = {"config_dict": "x", "dec_key": 1}
    data = dense_net()
    refused(TypeError, "model_bytes must be bytes", "text", "w", "t", "c", 1, **wrong)
    refused(TypeError, "model_bytes must be bytes", Path("gone"), model_type=MINDIR)
    refused(TypeError, "weight_bytes must be bytes", b"", "w", "t", "c", 1, **wrong)
    refused(TypeError, "context must be Context", b"", MINDIR, "c", "", 1, **wrong)
    refused(TypeError, "model_type must be ModelType", b"", None, None, "c", 1, **wrong)
    refused(TypeError, "context must be Context", b"", None, MINDIR, "c", 1, **wrong)
    refused(TypeError, "config_path must be str", b"", None, MINDIR, None, 1, **wrong)
    refused(RuntimeError, "model_bytes is empty", b"", None, MINDIR, None, "gone", **wrong)
    refused(RuntimeError, "config_path does not exist", data, None, MINDIR, None, "gone", **wrong)
    refused(TypeError, "config_dict must be dict", data, None, MINDIR, **wrong)
    refused(TypeError, "dec_key must be bytes", data, None, MINDIR, dec_key=1)
    refused(ValueError, "dec_mode must be in", data, None, MINDIR, dec_key=b"k", dec_mode="x")


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"no model at all", MINDIR, "the model in memory cannot be loaded as MindIR: "),
        (b"no model at all", ONNX, "the model in memory cannot be loaded as ONNX: "),
        (onnx_net(), MINDIR, "pass ModelType.ONNX"),
        (dense_net(), mslite.ModelType.MINDIR_LITE, ".ms files of the edge runtime"),
        (encrypt(dense_net(), SECRET), MINDIR, "is encrypted (AES-GCM); pass its key as dec_key"),
    ],
)
def test_bytes_that_are_no_model_are_refused(data: bytes, kind: Any, words: str) -> None:
    refused(RuntimeError, "build_from_buffer failed! Error is ", data, model_type=kind)
    refused(ModelFileError, words, data, model_type=kind)


def test_a_model_is_built_once() -> None:
    model = from_buffer(dense_net())
    for build in (
        lambda: model.build_from_buffer(dense_net(), model_type=MINDIR),
        lambda: model.build_from_file(str(MOBILENET), MINDIR),
    ):
        with pytest.raises(EngineError, match="is built from the model in memory already"):
            build()
    model.close()
    model.build_from_file(str(MOBILENET), MINDIR)
    model.close()
    model.build_from_buffer(dense_net(), model_type=MINDIR)
    assert_dense(model)
    assert str(model) == "model_path: ."


def test_equal_bytes_share_one_artefact_and_others_do_not(cache_dir: Path) -> None:
    from_buffer(dense_net())
    from_buffer(bytearray(dense_net()))
    assert len(artefacts(cache_dir)) == 1
    assert_dense(from_buffer(dense_net(factor=2.0)), factor=2.0)
    assert len(artefacts(cache_dir)) == 2


def test_equal_graphs_with_other_weights_do_not_share(tmp_path: Path, cache_dir: Path) -> None:
    for factor in (1.0, 2.0):
        path = split(dense_net(factor=factor), tmp_path)
        weights = (tmp_path / "net_variables/data_0").read_bytes()
        assert_dense(from_buffer(path.read_bytes(), weight_bytes=weights), factor)
    assert len(artefacts(cache_dir)) == 2


LIGHT = """
import sys
import mindspore_lite as mslite
model = mslite.Model()
if sys.argv[2] == "file":
    model.build_from_file(sys.argv[1], mslite.ModelType.MINDIR)
else:
    model.build_from_buffer(open(sys.argv[1], "rb").read(), model_type=mslite.ModelType.MINDIR)
print(sorted({"onnx", "onnx_ir", "google.protobuf", "cryptography"} & set(sys.modules)))
"""


@pytest.mark.parametrize("how", ["file", "buffer"])
def test_a_start_from_the_cache_parses_nothing(tmp_path: Path, cache_dir: Path, how: str) -> None:
    path = written(tmp_path / "m.mindir", dense_net())
    command = [sys.executable, "-c", LIGHT, str(path), how]
    for wanted in ("['google.protobuf', 'onnx', 'onnx_ir']\n", "[]\n"):
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        assert found.stdout == wanted


# --- weights beside the model --------------------------------------------------------------------


@pytest.mark.parametrize("layout", [split, split_oldest])
def test_a_split_model_is_built_cached_and_resized(
    tmp_path: Path, cache_dir: Path, layout: Callable[..., Path]
) -> None:
    path = layout(dense_net(), tmp_path / "model")
    for _ in range(2):
        model = from_file(path)
        assert_dense(model)
        assert len(artefacts(cache_dir)) == 1
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    path = split(dense_net(), tmp_path)
    model = from_file(path)
    split(dense_net(factor=2.0), tmp_path)
    assert_dense(from_file(path), factor=2.0)
    with pytest.raises(ShapeError, match="changed since it was built; build it again"):
        model.resize(model.get_inputs(), [[5, 3]])


@pytest.mark.parametrize("section", ["model_file", "model_File"])
@pytest.mark.parametrize("by", ["config_dict", "config_path"])
def test_mindir_path_says_where_the_weights_of_a_model_in_memory_lie(
    tmp_path: Path, section: str, by: str
) -> None:
    path = split(dense_net(), tmp_path)
    data = path.read_bytes()
    path.unlink()  # only its folder counts
    config = tmp_path / "config.ini"
    config.write_text(f"[{section}]\nmindir_path={path}\n")
    given: Any = {section: {"mindir_path": str(path)}} if by == "config_dict" else str(config)
    model = from_buffer(data, **{by: given})
    assert_dense(model)
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_mindir_path_serves_a_file_too(tmp_path: Path) -> None:
    path = split(dense_net(), tmp_path / "weights")
    moved = path.rename(tmp_path / "moved.mindir")
    assert_dense(from_file(moved, config_dict={"model_file": {"mindir_path": str(path)}}))


def test_mindir_path_serves_the_oldest_layout_and_onnx(tmp_path: Path) -> None:
    path = split_oldest(dense_net(), tmp_path / "old")
    assert_dense(
        from_buffer(path.read_bytes(), config_dict={"model_file": {"mindir_path": str(path)}})
    )
    (tmp_path / "data").write_bytes(np.ones((3, 4), np.float32).tobytes())
    beside = {"model_file": {"mindir_path": str(tmp_path / "any.onnx")}}
    model = from_buffer(onnx_net("data"), ONNX, config_dict=beside)
    assert_dense(model)
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_weights_in_memory_serve_a_model_in_memory(tmp_path: Path) -> None:
    path = split(dense_net(), tmp_path)
    data, weights = path.read_bytes(), (tmp_path / "net_variables/data_0").read_bytes()
    model = from_buffer(data, weight_bytes=bytearray(weights))
    assert_dense(model)
    model.resize(model.get_inputs(), [[5, 3]])
    assert_dense(model, rows=5)


def test_weights_that_cannot_be_found_are_told_with_the_way_out(tmp_path: Path) -> None:
    data = split(dense_net(), tmp_path).read_bytes()
    for words in ("weight_bytes", "mindir_path", "[model_file]"):
        refused(ModelFileError, words, data, model_type=MINDIR)
    refused(ModelFileError, "mindir_path", onnx_net("data"), model_type=ONNX)
    refused(ModelFileError, "serves MindIR alone", onnx_net(), b"w", ONNX)
    refused(ModelFileError, "in 0 side files, wanted one", dense_net(), b"w", MINDIR)
    gone = {"model_file": {"mindir_path": str(tmp_path / "gone/net.mindir")}}
    refused(ModelFileError, "is missing; put it", data, model_type=MINDIR, config_dict=gone)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for kind in (MINDIR, ONNX):
        with pytest.raises(ModelFileError, match="it is a pipe, wanted a plain file"):
            from_file(tmp_path / "pipe", kind)


# --- encrypted models ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC", "SM4-CBC"])
@pytest.mark.parametrize("parallel", [0, 1, 3])
def test_an_encrypted_model_is_built_and_resized(tmp_path: Path, mode: str, parallel: int) -> None:
    sealed = encrypt(dense_net(), SECRET, mode, block=100)
    given: dict[str, Any] = {"dec_key": SECRET, "dec_mode": mode, "dec_num_parallel": parallel}
    for model in (
        from_file(written(tmp_path / "m.mindir", sealed), **given),
        from_buffer(sealed, **given),
    ):
        assert_dense(model)
        model.resize(model.get_inputs(), [[5, 3]])
        assert_dense(model, rows=5)


def test_an_encrypted_split_model_is_built_from_file_and_memory(tmp_path: Path) -> None:
    path = split(dense_net(), tmp_path, seal=lambda pieces: encrypt(pieces, SECRET))
    assert_dense(from_file(path, dec_key=SECRET))
    weights = (tmp_path / "net_variables/data_0").read_bytes()
    assert_dense(from_buffer(path.read_bytes(), weight_bytes=weights, dec_key=SECRET))


def test_an_exchanged_encrypted_file_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mindir", encrypt(dense_net(), SECRET))
    model = from_file(path, dec_key=SECRET)
    written(path, encrypt(dense_net(factor=2.0), SECRET))
    with pytest.raises(ShapeError, match="changed since it was built"):
        model.resize(model.get_inputs(), [[5, 3]])


def test_nothing_of_an_encrypted_model_comes_to_lie_on_the_disk(
    tmp_path: Path, cache_dir: Path
) -> None:
    path = split(
        dense_net(factor=1234.5),
        tmp_path / "model",
        seal=lambda pieces: encrypt(pieces, SECRET, block=64),
    )
    before = {p: p.read_bytes() for p in (tmp_path / "model").rglob("*") if p.is_file()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = from_file(path, dec_key=SECRET)
        model.resize(model.get_inputs(), [[5, 3]])
        assert_dense(model, 1234.5, rows=5)
        from_buffer(encrypt(dense_net(factor=1234.5), SECRET), dec_key=SECRET)
    assert not cache_dir.exists() or artefacts(cache_dir) == []
    found = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == before
    from_buffer(dense_net(factor=1234.5))  # the same in the clear is stored
    assert len(artefacts(cache_dir)) == 1


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC", "SM4-CBC"])
def test_no_error_shows_the_key(tmp_path: Path, mode: str) -> None:
    sealed = encrypt(dense_net(), b"another key 1234", mode)
    for data in (sealed, sealed[:60], sealed[:-1], b"\x00" * 99, dense_net()):
        for build in (
            lambda data=data: from_buffer(data, dec_key=SECRET, dec_mode=mode),
            lambda data=data: from_file(
                written(tmp_path / "m", data), dec_key=SECRET, dec_mode=mode
            ),
        ):
            with pytest.raises(LiteError) as caught:
                build()
            error: BaseException | None = caught.value
            while error is not None:
                assert "very secret" not in f"{error} {error!r}"
                error = error.__cause__ or error.__context__


def test_a_built_model_does_not_show_the_key() -> None:
    model = from_buffer(encrypt(dense_net(), SECRET), dec_key=SECRET)
    assert "very secret" not in f"{model} {vars(model)}"


def test_bytes_that_a_wrong_key_made_are_told_as_that(tmp_path: Path) -> None:
    """The oldest form has nothing to tell a wrong key by but its result."""
    sealed = encrypt(dense_net(), b"another key 1234", tagless=True)
    words = "cannot be loaded as MindIR with this dec_key: "
    with pytest.warns(RuntimeWarning, match="no tags"), pytest.raises(ModelFileError, match=words):
        from_buffer(sealed, dec_key=SECRET)


def test_a_model_can_be_asked_to_be_authentic(tmp_path: Path) -> None:
    asked = {"build": {"require_authenticated": "on"}}
    sealed = encrypt(dense_net(), SECRET)
    from_buffer(sealed, dec_key=SECRET, config_dict=asked)
    with pytest.raises(ModelFileError, match="the file has no tags"):
        from_buffer(sealed[:4] + sealed[20:], dec_key=SECRET, config_dict=asked)
    with pytest.raises(ModelFileError, match="was given without dec_key"):
        from_buffer(dense_net(), config_dict=asked)


def test_onnx_files_have_no_key() -> None:
    refused(ModelFileError, "ONNX files are not encrypted", onnx_net(), None, ONNX, dec_key=b"k")
