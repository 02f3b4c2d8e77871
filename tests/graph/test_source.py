"""graph/source.py: what decides a model's content, and that nothing is translated too early."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.encryption import encrypt
from support.mindir_builder import Net, encode
from support.models import dense_net
from support.running import DATA
from support.split_builder import split, split_oldest

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph import source
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.graph.source import ModelInput, ModelSource, source_of, translator_digest
from mindspore_lite.mindir.decrypt import Key


def mindir_source(path: Path, shapes: Any = None) -> ModelSource:
    return source_of(ModelInput("MINDIR", path), shapes)


def test_a_source_translates_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "m.mindir"
    path.write_bytes(b"\x3a\x00")  # an empty graph
    made = mindir_source(path)
    assert made.files == (path,)
    with pytest.raises(ModelFileError, match="there is no graph inside"):
        made.translate()


def test_a_missing_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot read .*gone\.mindir': No such file"):
        mindir_source(tmp_path / "gone.mindir")


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
    assert source_of(ModelInput("ONNX", file)).recipe != mindir_source(file).recipe


def test_the_digest_changes_with_any_line_of_the_translator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(source.__file__).parent.parent
    for folder in ("mindir", "ops", "passes", "graph"):
        shutil.copytree(package / folder, tmp_path / folder)
    monkeypatch.setattr(source, "__file__", str(tmp_path / "graph/source.py"))
    digest = translator_digest.__wrapped__
    before = digest()
    assert before == digest()
    for name in ("mindir/read.py", "ops/conv.py", "passes/inline.py", "graph/storage.py"):
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


# --- what was given -----------------------------------------------------------------------------


def test_side_files_count_as_files_of_the_model(tmp_path: Path) -> None:
    """They are hashed with it, and watched for changes."""
    path = split(dense_net(), tmp_path)
    assert mindir_source(path).files == (path, tmp_path / "net_variables/data_0")
    old = split_oldest(dense_net(), tmp_path / "old", files=2)
    names = [file.name for file in mindir_source(old).files]
    assert names == ["net_graph.mindir", "data_0", "data_1"]


def test_bytes_are_told_apart_by_digests_and_have_no_files() -> None:
    made = [source_of(ModelInput("MINDIR", data=dense_net(factor=f))) for f in (1.0, 2.0, 1.0)]
    assert made[0].digests == made[2].digests != made[1].digests
    assert all(m.files == () and m.storable for m in made)
    assert made[0].translate().graph.outputs


def test_the_side_files_of_bytes_are_found_beside_another_path(tmp_path: Path) -> None:
    path = split(dense_net(), tmp_path)
    given = ModelInput("MINDIR", data=path.read_bytes(), beside=path)
    assert source_of(given).files == (tmp_path / "net_variables/data_0",)
    assert source_of(given).translate().graph.outputs


def test_what_was_encrypted_may_not_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "m.mindir"
    path.write_bytes(encrypt(dense_net(), b"k" * 16))
    made = source_of(ModelInput("MINDIR", path, key=Key(b"k" * 16)))
    assert not made.storable
    assert made.files == (path,)
    assert made.translate().graph.outputs


def test_what_is_translated_is_the_file_that_was_opened(tmp_path: Path) -> None:
    """The engine digests it in between: what it then stores must not be another one."""
    path = tmp_path / "m.mindir"
    path.write_bytes(dense_net())
    made = mindir_source(path)
    path.with_name("new").write_bytes(dense_net(rows=7))
    path.with_name("new").replace(path)
    (value,) = made.translate().graph.inputs
    assert list(value.shape) == [2, 3]  # type: ignore[arg-type]


def test_neither_bytes_nor_keys_are_shown() -> None:
    shown = repr(
        ModelInput("MINDIR", data=b"content", weights=b"more", key=Key(b"secret key 12345"))
    )
    assert not any(word in shown for word in ("content", "more", "secret"))
