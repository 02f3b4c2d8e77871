"""graph/source.py: what decides a model's content, and that nothing is translated too early."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.mindir_builder import Net, encode
from support.running import DATA

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph import source
from mindspore_lite.graph.source import OpenRankError, mindir_source, onnx_source, translator_digest


def test_a_source_translates_only_when_asked(tmp_path: Path) -> None:
    made = mindir_source(tmp_path / "not there yet.mindir")
    assert made.files == (tmp_path / "not there yet.mindir",)
    with pytest.raises(ModelFileError, match="not there yet"):
        made.translate()
    shutil.copy(DATA / "nets/io_identity.mindir", tmp_path / "not there yet.mindir")
    assert made.translate().graph.outputs


def test_the_recipe_tells_shapes_and_kinds_apart() -> None:
    path = DATA / "nets/io_identity.mindir"
    plain = mindir_source(path).recipe
    assert mindir_source(path).recipe == plain
    assert mindir_source(path, {}).recipe == plain
    shaped = mindir_source(path, {"x": [1, None]}).recipe
    assert len({plain, shaped, mindir_source(path, {"x": [None, 1]}).recipe}) == 3
    assert shaped == mindir_source(path, {"x": (1, None)}).recipe


def test_the_order_in_which_shapes_are_given_does_not_matter() -> None:
    path = DATA / "nets/io_identity.mindir"
    one = mindir_source(path, {"a": [1], "b": [2]}).recipe
    assert mindir_source(path, {"b": [2], "a": [1]}).recipe == one


def test_onnx_and_mindir_have_different_recipes(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"\x08\x0a")
    assert onnx_source(file).recipe != mindir_source(file).recipe


def test_the_digest_changes_with_any_line_of_the_translator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(source.__file__).parent.parent
    for folder in ("mindir", "ops", "graph"):
        shutil.copytree(package / folder, tmp_path / folder)
    monkeypatch.setattr(source, "__file__", str(tmp_path / "graph/source.py"))
    digest = translator_digest.__wrapped__
    before = digest()
    assert before == digest()
    for name in ("mindir/read.py", "ops/conv.py", "graph/storage.py"):
        file = tmp_path / name
        file.write_text(file.read_text() + "\n# changed\n")
        after = digest()
        assert after != before
        before = after


def test_input_shapes_reach_the_translation() -> None:
    made = mindir_source(DATA / "nets/dyn_batch.mindir")
    (value,) = made.translate().graph.inputs
    name, dims = str(value.name), list(value.shape)  # type: ignore[arg-type]
    wanted = [4, *[d if isinstance(d, int) else 8 for d in dims[1:]]]
    changed = mindir_source(DATA / "nets/dyn_batch.mindir", {name: wanted}).translate()
    assert list(changed.graph.inputs[0].shape) == wanted  # type: ignore[arg-type]


def test_an_input_of_unknown_rank_is_told_of_with_what_is_known(tmp_path: Path) -> None:
    net = Net()
    data = encode(net.model(net.call("Neg", net.input("x", None), scope="Default/neg")))
    (tmp_path / "free.mindir").write_bytes(data)
    with pytest.raises(OpenRankError, match=r"'x'.* no fixed number of dims") as caught:
        mindir_source(tmp_path / "free.mindir").translate()
    trial = caught.value.trial
    assert trial.open == ("x",)
    assert [name for name, _, _ in trial.outputs] == ["Default/neg"]
    made = mindir_source(tmp_path / "free.mindir", {"x": [None, 2]}).translate()
    assert list(made.graph.inputs[0].shape) == ["x_0", 2]  # type: ignore[arg-type]


def test_what_is_unsupported_is_told_before_any_rank_is_known(tmp_path: Path) -> None:
    net = Net()
    data = encode(net.model(net.call("NoSuchOp", net.input("x", None))))
    (tmp_path / "free.mindir").write_bytes(data)
    with pytest.raises(UnsupportedOpError, match="NoSuchOp"):
        mindir_source(tmp_path / "free.mindir").translate()
