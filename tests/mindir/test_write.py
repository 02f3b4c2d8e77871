"""Files appear whole or not at all, in one piece or with the weights beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.mindir_builder import Net

from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import Piece, pieces, write_file

_RNG = np.random.default_rng(0)
_WEIGHTS = {
    "b": _RNG.standard_normal((40, 50)).astype(np.float32),  # large enough to stay mapped
    "a": np.arange(3, dtype=np.int64),
    "empty": np.zeros((0, 2), np.float32),
}


def _model() -> r.Model:
    net = Net("main")
    for name, array in _WEIGHTS.items():
        net.weight(name, array)
    return net.model(net.call("ReLU", net.input("x", (2,))))


def _weights(path: Path) -> dict[str, np.ndarray]:
    return {w.name.split(":")[1]: w.numpy() for w in read_file(path).graph.parameters}


def _check_weights(path: Path) -> None:
    found = _weights(path)
    assert list(found) == list(_WEIGHTS)
    for name, array in _WEIGHTS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_a_file_holds_all_weights(tmp_path: Path) -> None:
    path = tmp_path / "net.mindir"
    assert write_file(_model(), path) == (path,)
    assert os.listdir(tmp_path) == ["net.mindir"]
    _check_weights(path)


def test_large_weights_go_to_a_side_file_as_mindspore_has_it(tmp_path: Path) -> None:
    written = write_file(_model(), tmp_path / "net.mindir", external_above=100)
    graph, data = tmp_path / "net_graph.mindir", tmp_path / "net_variables" / "data_0"
    assert written == (graph, data)
    assert sorted(os.listdir(tmp_path)) == ["net_graph.mindir", "net_variables"]
    content = data.read_bytes()
    assert content[:64] == b"\x01" + bytes(63)
    assert content[64:88] == _WEIGHTS["a"].tobytes()  # sorted by name, padded to 64 bytes
    assert content[128 : 128 + 8000] == _WEIGHTS["b"].tobytes()
    assert len(content) == 128 + 8000
    _check_weights(graph)


def test_a_limit_that_is_just_met_keeps_one_file(tmp_path: Path) -> None:
    total = sum(array.nbytes for array in _WEIGHTS.values())
    assert len(write_file(_model(), tmp_path / "a.mindir", external_above=total)) == 1
    assert len(write_file(_model(), tmp_path / "b.mindir", external_above=total - 1)) == 2


def test_the_file_has_the_rights_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_file(_model(), tmp_path / "net.mindir")
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("plain", "net.mindir")]
    assert modes[0] == modes[1]


def _breaks(content: Iterable[Piece]) -> Iterator[Piece]:
    yield next(iter(content))
    raise OSError("no space left")


@pytest.mark.parametrize("limit", [2**30, 100])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, limit: int) -> None:
    path = tmp_path / ("net.mindir" if limit > 100 else "net_graph.mindir")
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="no space"):
        write_file(_model(), tmp_path / "net.mindir", cipher=_breaks, external_above=limit)
    assert path.read_bytes() == b"old"
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files == [path]


def test_a_file_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "net.mindir"
    path.write_bytes(b"old")
    write_file(_model(), path)
    _check_weights(path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_file(_model(), tmp_path / "none" / "net.mindir")


def test_a_cipher_sees_the_content_of_every_file(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def cipher(content: Iterable[Piece]) -> Iterable[Piece]:
        seen.append(b"".join(bytes(piece) for piece in content))
        return [b"hidden"]

    graph, data = write_file(_model(), tmp_path / "net.mindir", cipher=cipher, external_above=100)
    assert (graph.read_bytes(), data.read_bytes()) == (b"hidden", b"hidden")
    assert _WEIGHTS["b"].tobytes() in seen[0]
    assert b"data_0" in seen[1]


def test_weights_are_streamed_from_where_they_lie() -> None:
    model = _model()
    large = [piece for piece in pieces(model) if isinstance(piece, memoryview)]
    assert all(any(p.obj is w.data.obj for w in model.graph.parameters) for p in large)
    assert sum(p.nbytes for p in large) == sum(w.data.nbytes for w in model.graph.parameters)


def test_a_new_folder_of_weights_goes_again_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no space"):
        write_file(_model(), tmp_path / "net.mindir", cipher=_breaks, external_above=0)
    assert list(tmp_path.iterdir()) == []


def test_old_weights_stay_with_their_graph_where_only_the_new_graph_fails(tmp_path: Path) -> None:
    graph, data = write_file(_model(), tmp_path / "net.mindir", external_above=0)
    before = graph.read_bytes(), data.read_bytes()
    seen = []

    def second_breaks(content: Iterable[Piece]) -> Iterable[Piece]:
        seen.append(1)
        return content if len(seen) == 1 else _breaks(content)

    old = _model().graph
    fewer = replace(old, parameters=old.parameters[:1])
    other = replace(_model(), graph=fewer)
    with pytest.raises(OSError, match="no space"):
        write_file(other, tmp_path / "net.mindir", cipher=second_breaks, external_above=0)
    assert (graph.read_bytes(), data.read_bytes()) == before
    assert sorted(p.name for p in tmp_path.rglob("*")) == [
        "data_0", "net_graph.mindir", "net_variables",
    ]  # fmt: skip


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 248 + ".mindir")
    write_file(_model(), path)
    _check_weights(path)


def test_the_same_model_gives_the_same_bytes_and_the_same_order(tmp_path: Path) -> None:
    notes = {f"key {number}": "value" for number in range(20)}
    once, again = (replace(_model(), user_info=dict(notes)) for _ in range(2))
    assert b"".join(pieces(once)) == b"".join(pieces(again))
    write_file(once, tmp_path / "net.mindir")
    assert list(read_file(tmp_path / "net.mindir").user_info) == sorted(notes)
