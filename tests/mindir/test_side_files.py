"""mindir/side_files.py: weights beside the model, in both layouts, and all that can be wrong."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.encryption import encrypt
from support.mindir_builder import Net, encode
from support.running import run
from support.split_builder import HEADER, split, split_oldest

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.decrypt import Key
from mindspore_lite.mindir.read import read, read_file
from mindspore_lite.mindir.side_files import SideFiles, open_side_files

KEY = Key(b"k" * 16)
W = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.array([1, 2, 3, 4], np.float32)
X = np.ones((2, 3), np.float32)


def dense(weight: np.ndarray = W) -> bytes:
    """x @ w + b; in the data file b comes first, for it is sorted by name."""
    net = Net()
    product = net.call("MatMulExt", net.input("x", (2, weight.shape[0])), net.weight("w", weight))
    return encode(net.model(net.call("Add", product, net.weight("b", B))))


def assert_dense(model: r.Model) -> None:
    np.testing.assert_array_equal(run(model, X)[0], X @ W + B)


def base_of(array: np.ndarray) -> object:
    found: object = array
    while isinstance(found, np.ndarray):
        found = found.base
    return found.obj if isinstance(found, memoryview) else found


# --- good -------------------------------------------------------------------------------------


def test_weights_are_read_from_the_data_file(tmp_path: Path) -> None:
    assert_dense(read_file(split(dense(), tmp_path)))


def test_even_small_weights_are_views_of_the_data_file(tmp_path: Path) -> None:
    weights = read_file(split(dense(), tmp_path)).graph.parameters
    assert all(isinstance(base_of(w.numpy()), mmap.mmap) for w in weights)
    assert len({id(base_of(w.numpy())) for w in weights}) == 1, "one copy serves all"


def test_weights_may_overlap(tmp_path: Path) -> None:
    def change(proto: pb.Model) -> None:
        places = {p.name: p.external_data for p in proto.graph.parameter}
        places["net:b"].offset = places["net:w"].offset

    (_, b) = read_file(split(dense(), tmp_path, change=change)).graph.parameters
    np.testing.assert_array_equal(b.numpy(), W[0])


def test_weights_may_lie_in_several_files_and_in_the_model_itself(tmp_path: Path) -> None:
    def change(proto: pb.Model) -> None:
        w, b = proto.graph.parameter
        w.external_data.location = "elsewhere"
        b.ClearField("external_data")
        b.raw_data = B.tobytes()

    path = split(dense(), tmp_path, change=change)
    (tmp_path / "net_variables/data_0").rename(tmp_path / "elsewhere")
    assert_dense(read_file(path))
    (found,) = open_side_files(path, memoryview(path.read_bytes())).values()
    assert found.path == tmp_path / "elsewhere"


def test_an_empty_weight_needs_no_place_in_the_file(tmp_path: Path) -> None:
    def change(proto: pb.Model) -> None:
        proto.graph.parameter[0].dims[:] = [0, 4]
        proto.graph.parameter[0].ClearField("external_data")

    assert read_file(split(dense(), tmp_path, change=change)).graph.parameters[0].shape == (0, 4)


def test_the_content_of_the_data_file_may_be_given(tmp_path: Path) -> None:
    path = split(dense(), tmp_path)
    data, weights = path.read_bytes(), (tmp_path / "net_variables/data_0").read_bytes()
    assert open_side_files(None, memoryview(data), memoryview(weights)) == {}
    assert_dense(read(memoryview(data), SideFiles(weights=memoryview(weights))))


@pytest.mark.parametrize("files", [1, 2, 3])
def test_the_oldest_layout_is_read(tmp_path: Path, files: int) -> None:
    path = split_oldest(dense(), tmp_path, files=files)
    (tmp_path / "net_variables/.hidden").write_bytes(b"left by an editor")
    assert_dense(read_file(path))
    found = open_side_files(path, memoryview(path.read_bytes()))
    assert list(found) == [f"data_{i}" for i in range(files)]


def test_big_weights_of_the_oldest_layout_stay_mapped(tmp_path: Path) -> None:
    path = split_oldest(dense(np.ones((1024, 4), np.float32)), tmp_path)
    (big,) = [w for w in read_file(path).graph.parameters if w.name == "net:w"]
    assert isinstance(base_of(big.numpy()), mmap.mmap)


def test_a_network_without_weights_needs_no_folder(tmp_path: Path) -> None:
    net = Net()
    path = tmp_path / "plain_graph.mindir"
    path.write_bytes(encode(net.model(net.call("Neg", net.input("x", (2,))))))
    assert read_file(path).graph.parameters == ()


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC", "SM4-CBC"])
@pytest.mark.parametrize("block", [64, 100, 64 << 20])
def test_an_encrypted_split_model_is_read(tmp_path: Path, mode: str, block: int) -> None:
    key = Key(b"0123456789abcdef", mode)
    sealed = split(dense(), tmp_path, seal=lambda p: encrypt(p, key.secret, mode, block=block))
    assert_dense(read_file(sealed, key))


def test_a_converter_encrypts_the_graph_alone(tmp_path: Path) -> None:
    path = split(dense(), tmp_path)
    path.write_bytes(encrypt(path.read_bytes(), KEY.secret))
    assert_dense(read_file(path, KEY))


def test_the_oldest_layout_may_be_encrypted(tmp_path: Path) -> None:
    path = split_oldest(dense(), tmp_path)
    for file in (path, *(tmp_path / "net_variables").iterdir()):
        file.write_bytes(encrypt(file.read_bytes(), KEY.secret))
    assert_dense(read_file(path, KEY))


# --- bad --------------------------------------------------------------------------------------


def _at(**place: Any) -> Callable[[pb.Model], None]:
    def change(proto: pb.Model) -> None:
        for name, value in place.items():
            setattr(proto.graph.parameter[0].external_data, name, value)

    return change


def _dims(*dims: int) -> Callable[[pb.Model], None]:
    return lambda proto: proto.graph.parameter[0].dims.__setitem__(slice(None), dims)


PLACES: dict[str, tuple[Callable[[pb.Model], None], str]] = {
    "negative offset": (_at(offset=-64), "weight 'w': it claims 48 bytes at -64 of"),
    "offset in the header": (_at(offset=63), "whose weights lie from byte 64 to 192"),
    "no offset": (_at(offset=0), "claims 48 bytes at 0"),
    "offset at the end": (_at(offset=192), "claims 48 bytes at 192"),
    "offset that overflows": (_at(offset=2**63 - 1), f"at {2**63 - 1}"),
    "negative length": (_at(length=-48), "claims -48 bytes"),
    "length beyond the file": (_at(length=65), "claims 65 bytes at 128"),
    "length that overflows": (_at(length=2**63 - 1), "whose weights lie from"),
    "length too short": (_at(length=44), "needs 48 bytes, the file holds 44"),
    "length too long": (_at(length=52), "needs 48 bytes, the file holds 52"),
    "length 0": (_at(length=0), "needs 48 bytes, the file holds 0"),
    "dims too large": (_dims(3, 5), "needs 60 bytes, the file holds 48"),
    "dims that overflow": (_dims(2**62, 4), "the file holds 48"),
    "absolute": (_at(location="/etc/passwd"), "lies outside the model's folder"),
    "upwards": (_at(location="../data_0"), "lies outside the model's folder"),
    "hidden upwards": (_at(location="net_variables/../../x"), "lies outside"),
    "empty": (_at(location=""), "lies outside the model's folder"),
    "missing": (_at(location="gone"), "is missing; put it beside the model"),
    "a folder": (_at(location="net_variables"), "it is a directory, wanted a plain file"),
    "a pipe": (_at(location="pipe"), "it is a pipe, wanted a plain file"),
    "a device": (_at(location="device"), "is a link out of the model's folder"),
    "a link out": (_at(location="link"), "is a link out of the model's folder"),
    "a folder that leads out": (_at(location="up/secret"), "is a link out of the model's folder"),
    "no name for a file": (_at(location="x" * 9999), "cannot be opened"),
}


@pytest.mark.parametrize("why", PLACES)
def test_a_weight_that_lies_nowhere_good_is_refused(tmp_path: Path, why: str) -> None:
    change, words = PLACES[why]
    (tmp_path / "secret").write_bytes(HEADER + W.tobytes())
    folder = tmp_path / "model"
    path = split(dense(), folder, change=change)
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    with pytest.raises(ModelFileError) as caught:
        read_file(path)
    assert words in str(caught.value)
    assert "net_graph.mindir' cannot be loaded as MindIR: " in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it has 0 bytes, its header alone has 64"),
        (HEADER[:63], "it has 63 bytes, its header alone has 64"),
        (b"\0" * 192, "it is big-endian; export the model on a little-endian machine"),
        (b"\2" + bytes(191), "does not begin with the header of a MindIR data file"),
        (HEADER, "whose weights lie from byte 64 to 64"),
        (encrypt(HEADER + bytes(128), KEY.secret), "is encrypted (AES-GCM); pass its key"),
        (b"\xd8\x5e\x3a\x7f", "is encrypted (AES-GCM)"),
    ],
    ids=lambda v: v[:30] if isinstance(v, str) else "",
)
def test_a_data_file_that_is_none_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = split(dense(), tmp_path)
    (tmp_path / "net_variables/data_0").write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_file(path)
    assert words in str(caught.value)
    assert "'net_variables/data_0'" in str(caught.value)


def test_a_data_file_under_another_key_is_refused(tmp_path: Path) -> None:
    path = split(dense(), tmp_path, seal=lambda pieces: encrypt(pieces, KEY.secret))
    (tmp_path / "net_variables/data_0").write_bytes(encrypt(HEADER + bytes(128), b"x" * 16))
    with pytest.raises(ModelFileError, match=r"data file 'net_variables/data_0': .*key is wrong"):
        read_file(path, KEY)


def test_without_a_folder_the_error_says_what_to_set(tmp_path: Path) -> None:
    data = memoryview(split(dense(), tmp_path).read_bytes())
    with pytest.raises(ModelFileError) as caught:
        open_side_files(None, data)
    for words in ("'net_variables/data_0'", "weight_bytes", "mindir_path", "[model_file]"):
        assert words in str(caught.value)
    with pytest.raises(ModelFileError, match="data_0': it was not opened with the model"):
        read(data)


def test_weights_given_for_a_model_that_has_its_own_are_refused() -> None:
    with pytest.raises(ModelFileError, match="lie in 0 side files, wanted one"):
        open_side_files(None, memoryview(dense()), memoryview(HEADER))


@pytest.mark.parametrize("kind", ["garbage", "pipe", "folder", "link"])
def test_a_file_of_the_oldest_layout_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    path = split_oldest(dense(), tmp_path)
    extra = tmp_path / "net_variables/extra"
    if kind == "pipe":
        os.mkfifo(extra)
    elif kind == "folder":
        extra.mkdir()
    elif kind == "link":
        extra.symlink_to("/etc/passwd")
    else:
        extra.write_bytes(b"\xff" * 20)
    with pytest.raises(ModelFileError):
        read_file(path)


def test_a_weight_given_twice_in_the_oldest_layout_is_refused(tmp_path: Path) -> None:
    path = split_oldest(dense(), tmp_path)
    data = (tmp_path / "net_variables/data_0").read_bytes()
    (tmp_path / "net_variables/data_1").write_bytes(data)
    with pytest.raises(ModelFileError, match="the name 'net:w' is given twice"):
        read_file(path)
