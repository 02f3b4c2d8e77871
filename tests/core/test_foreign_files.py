"""core/foreign_files.py: files of other kinds are recognised, with the command that helps."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.models import DIGITS, MINDIR, ONNX, conv_onnx

import mindspore_lite as mslite
from mindspore_lite.core.foreign_files import HEAD_BYTES, recognised
from mindspore_lite.errors import ModelFileError
from mindspore_lite.inspection.examine import examine


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"data")
    return out.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def npz() -> bytes:
    out = io.BytesIO()
    np.savez(out, w=np.zeros(3, np.float32))
    return out.getvalue()


def record(name: bytes, rest: bytes) -> bytes:
    """One record of a protobuf list, whose first field is a name."""
    inner = b"\n" + bytes([len(name)]) + name + rest
    return b"\n" + bytes([len(inner)]) + inner


FILES: dict[str, tuple[bytes, str]] = {
    "model.ms": (b"\x20\0\0\0MSL2" + bytes(60), r"an \.ms model.*mslite convert"),
    "model.tflite": (b"\x1c\0\0\0TFL3" + bytes(60), r"a TFLite model.*mslite convert"),
    "old.pt": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", r"a pickle.*torch\.onnx\.export"),
    "plain.pkl": (pickle.dumps({"a": 1}), r"a pickle.*torch\.onnx\.export"),
    "new.pt": (zipped("archive/data.pkl", "archive/version"), r"a PyTorch file.*mslite convert"),
    "script.pt": (zipped("net/data/0", "net/data.pkl"), r"a PyTorch file.*mslite convert"),
    "net.pt2": (zipped("net/data/weights/weight_0"), r"a PyTorch file.*mslite convert"),
    "net.ckpt": (record(b"conv.weight", b"\x12\x08\x08\x03"), r"checkpoint of MindSpore.*export"),
    "w.safetensors": (safetensors(), r"weights without a network.*load_weights"),
    "w.npz": (npz(), r"an \.npz file.*load_weights"),
    "lfs.mindir": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n",
        r"a pointer of git-lfs.*git lfs pull",
    ),
    "page.mindir": (b"\n<!DOCTYPE html>\n<html><head>", r"an HTML page.*download"),
    "net.mindir.gz": (gzip.compress(b"abc"), r"compressed.*gunzip"),
    "README": (b"# A model\n\nIt is large.\n", r"a text, no model.*give the model file"),
    "net.om": (b"IMOD" + bytes(60), r"an \.om model"),
    "net.plan": (b"ftrt" + bytes(60), r"a TensorRT plan"),
    "net.xml": (b'<?xml version="1.0"?>\n<net name="a" version="11">', r"an OpenVINO IR"),
    "net.h5": (b"\x89HDF\r\n\x1a\n" + bytes(60), r"an HDF5 file.*--saved-model"),
    "net.keras": (zipped("metadata.json", "config.json"), r"a Keras model.*--saved-model"),
    "saved_model.pb": (b"\x08\x01\x12\x10abcdefgh", r"SavedModel.*--saved-model"),
    "frozen.pb": (record(b"x", b"\x12\x0bPlaceholder"), r"frozen graph of TensorFlow.*convert"),
    "empty.mindir": (b"", r"an empty file"),
    "net.ort": (b"\x20\0\0\0ORTM" + bytes(60), r"ONNX Runtime's own format"),
    "x.npy": (b"\x93NUMPY\x01\x00", r"an array of NumPy"),
    "cat.jpg": (b"\xff\xd8\xff\xe0" + bytes(60), r"a picture"),
}


@pytest.fixture(params=FILES)
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    content, words = FILES[request.param]
    path = tmp_path / request.param
    path.write_bytes(content)
    return path, words


def build_mindir(path: Path) -> None:
    mslite.Model().build_from_file(path, MINDIR)


def build_onnx(path: Path) -> None:
    mslite.Model().build_from_file(path, ONNX)


def build_runner(path: Path) -> None:
    mslite.ModelParallelRunner().build_from_file(path)


def build_buffer(path: Path) -> None:
    mslite.Model().build_from_buffer(path.read_bytes() or b"\0", MINDIR)


def inspected(path: Path) -> None:
    examine(path)


@pytest.mark.parametrize("way", [build_mindir, build_onnx, build_runner, build_buffer, inspected])
def test_every_way_in_says_what_the_file_is(
    foreign: tuple[Path, str], way: Callable[[Path], None]
) -> None:
    path, words = foreign
    if way is build_buffer and not path.stat().st_size:
        pytest.skip("an empty buffer has words of its own")
    if way is build_runner and path.suffix == ".ms":
        words = "MINDIR_LITE"  # by its name
    with pytest.raises(ModelFileError, match=words) as caught:
        way(path)
    assert "protobuf field" not in str(caught.value)


@pytest.mark.parametrize("name", ["lfs.mindir", "page.mindir", "net.mindir.gz", "empty.mindir"])
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".pt2", mslite.FmkType.PYTORCH),
        (".onnx", mslite.FmkType.ONNX),
        (".tflite", mslite.FmkType.TFLITE),
        (".pb", mslite.FmkType.TF),
        (".mindir", mslite.FmkType.MINDIR),
    ],
)
def test_a_conversion_says_it_too(
    tmp_path: Path, name: str, suffix: str, kind: mslite.FmkType
) -> None:
    content, words = FILES[name]
    path = tmp_path / f"net{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        mslite.Converter().convert(kind, str(path), str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["lfs.mindir", "page.mindir", "w.npz"])
def test_weights_say_it_too(tmp_path: Path, name: str) -> None:
    content, _ = FILES[name]
    path = tmp_path / "tuned.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"it is an? .*, wanted a \.safetensors file; "):
        mslite.load_weights(path)


def test_our_own_files_are_not_foreign(tmp_path: Path) -> None:
    files = [DIGITS, conv_onnx(tmp_path / "conv.onnx")]
    files += sorted((Path(__file__).parents[1] / "data").rglob("*.mindir"))
    files += sorted((Path(__file__).parents[1] / "data").rglob("*.onnx"))
    assert len(files) > 20
    for path in files:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_BYTES)
        assert recognised(head, refused=True) is None, path
