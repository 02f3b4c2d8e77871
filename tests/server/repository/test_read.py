from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.read import name_of, read_repository
from mindspore_lite.server.repository.records import ModelEntry, ServeConfig, chosen


def put(root: Path, *names: str) -> Path:
    """Files that nobody opens here."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return root


def versions(entry: ModelEntry) -> dict[str, str]:
    return {version: path.name for version, path in entry.versions.items()}


def test_the_layout_of_triton(tmp_path: Path) -> None:
    put(tmp_path, "a/1/model.onnx", "a/3/model.onnx", "a/3/model.onnx.data", "b/2/model.mindir")
    put(tmp_path, "b/02/model.mindir", "b/0/model.mindir", "b/x/model.mindir", "README.md")
    found = read_repository(tmp_path)
    assert list(found) == ["a", "b"]
    assert versions(found["a"]) == {"1": "model.onnx", "3": "model.onnx"}
    assert versions(found["b"]) == {"2": "model.mindir"}
    assert chosen(found["a"]) == ["3"] and not found["a"].fault


def test_a_split_mindir_and_a_file_of_another_name(tmp_path: Path) -> None:
    put(tmp_path, "a/1/model_graph.mindir", "a/1/model_variables/data_0", "b/1/resnet.onnx")
    put(tmp_path, "c/1/model.onnx/model.onnx", "c/1/model.onnx/weights.bin")
    found = read_repository(tmp_path)
    assert versions(found["a"]) == {"1": "model_graph.mindir"}
    assert versions(found["b"]) == {"1": "resnet.onnx"}
    assert found["c"].versions["1"] == tmp_path / "c/1/model.onnx/model.onnx"


def test_a_plain_folder_of_files(tmp_path: Path) -> None:
    put(tmp_path, "a.onnx", "a.onnx.data", "b net.mindir", "c_graph.mindir", "c_variables/data_0")
    found = read_repository(tmp_path)
    assert {name: versions(one) for name, one in found.items()} == {
        "a": {"1": "a.onnx"},
        "b-net": {"1": "b net.mindir"},
        "c": {"1": "c_graph.mindir"},
    }


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    put(tmp_path, "a.ONNX", "b/1/Net.MindIR")
    found = read_repository(tmp_path)
    assert {name: versions(one) for name, one in found.items()} == {
        "a": {"1": "a.ONNX"},
        "b": {"1": "Net.MindIR"},
    }


@pytest.mark.parametrize("name", ["config.pbtx", "Config.pbtxt", "modle.ini", "model.init"])
def test_a_configuration_whose_name_is_misspelt_is_listed(tmp_path: Path, name: str) -> None:
    put(tmp_path, "m/1/model.onnx", f"m/{name}", "n/1/model.onnx", "n/config.pbtxt.bak")
    found = read_repository(tmp_path)
    (told,) = found["m"].config.ignored
    assert "did you mean" in told and name in told
    assert found["n"].config.ignored == ()


def test_a_single_file(tmp_path: Path) -> None:
    put(tmp_path, "net.v1.onnx")
    found = read_repository(tmp_path / "net.v1.onnx")
    assert versions(found["net.v1"]) == {"1": "net.v1.onnx"} and not found["net.v1"].fault
    assert list(read_repository(tmp_path / "net.v1.onnx", "resnet")) == ["resnet"]


@pytest.mark.parametrize(
    "names", [["1/model.onnx", "2/model.onnx"], ["model.onnx"], ["m/1/model.onnx"]]
)
def test_one_model_as_kserve_mounts_it_can_be_named(tmp_path: Path, names: list[str]) -> None:
    root = put(tmp_path / "models", *names)
    (found,) = read_repository(root, "resnet").values()
    assert found.name == "resnet" and chosen(found) == [str(len(names))]


def test_a_model_folder_that_is_given_itself(tmp_path: Path) -> None:
    put(tmp_path / "resnet", "1/model.onnx", "4/model.onnx", "warmup/x")
    found = read_repository(tmp_path / "resnet")
    assert list(found) == ["resnet"] and chosen(found["resnet"]) == ["4"]


def test_a_name_is_for_one_model(tmp_path: Path) -> None:
    put(tmp_path, "a.onnx", "b.onnx")
    with pytest.raises(ValueError, match="has 2: a, b"):
        read_repository(tmp_path, "x")


def test_models_whose_names_are_numbers(tmp_path: Path) -> None:
    put(tmp_path, "1/2/model.onnx", "7/1/model.onnx")
    assert list(read_repository(tmp_path)) == ["1", "7"]


def test_the_volumes_of_kubernetes(tmp_path: Path) -> None:
    put(tmp_path, "..2026_01/a/1/model.onnx", "..2026_01/b.onnx")
    (tmp_path / "..data").symlink_to("..2026_01")
    for name in ("a", "b.onnx"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    put(tmp_path, ".hidden.onnx", ".git/1/model.onnx", "lost+found/x")
    found = read_repository(tmp_path)
    assert list(found) == ["a", "b"] and not any(one.fault for one in found.values())
    before = found["a"].stamp
    put(tmp_path, "..2026_02/a/1/model.onnx", "..2026_02/b.onnx")
    (tmp_path / "..new").symlink_to("..2026_02")
    os.replace(tmp_path / "..new", tmp_path / "..data")
    assert read_repository(tmp_path)["a"].stamp != before


def test_links_out_of_the_repository_are_faults(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/m/1/model.onnx", "elsewhere/x.onnx", "repo/good/1/model.onnx")
    repo = tmp_path / "repo"
    (repo / "m").symlink_to("../elsewhere/m")
    (repo / "x.onnx").symlink_to(tmp_path / "elsewhere/x.onnx")
    put(repo, "n/1/README")
    (repo / "n/1/model.onnx").symlink_to(tmp_path / "elsewhere/x.onnx")
    found = read_repository(repo)
    assert {name for name, one in found.items() if "link out" in one.fault} == {"m", "n", "x"}
    assert not found["good"].fault
    assert not read_repository(tmp_path / "repo/x.onnx")["x"].fault  # which the user named


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["m/1/README"], "version 1: there is no model file"),
        (["m/1/model.onnx", "m/1/model.mindir"], "model.onnx and model.mindir"),
        (["m/1/a.onnx", "m/1/b.onnx"], "a.onnx and b.onnx"),
        (["m/model.onnx"], "folder '1'"),
        (["m/v1/model.onnx"], "'v1' is no version"),
        (["m/01/net.mindir"], "'01' is no version"),
        (["m m/1/model.onnx"], "cannot be served as"),
        (["stats/1/model.onnx"], "cannot be served as"),
        ([f"{'m' * 200}/1/model.onnx"], "cannot be served as"),
        (["a.onnx", "a/1/model.onnx"], "two models"),
    ],
)
def test_a_fault_is_of_one_model(tmp_path: Path, names: list[str], words: str) -> None:
    put(tmp_path, "good/1/model.onnx", *names)
    found = read_repository(tmp_path)
    assert not found.pop("good").fault
    (bad,) = found.values()
    assert words in bad.fault and chosen(bad) == []


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"bad\xff\n")
    os.makedirs(os.path.join(folder, b"1"))
    put(tmp_path, "good.onnx")
    found = read_repository(tmp_path)
    assert [one.fault != "" for one in found.values()] == [True, False]
    assert all((name + one.fault).isprintable() for name, one in found.items())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    put(tmp_path, "good/1/model.onnx", "m/1/model.onnx")
    (tmp_path / "m").chmod(0)
    found = read_repository(tmp_path)
    (tmp_path / "m").chmod(0o700)
    assert "Permission denied" in found["m"].fault and not found["good"].fault


def test_a_version_that_is_not_complete_is_not_there_yet(tmp_path: Path) -> None:
    put(tmp_path, "m/1/model.onnx", "m/2/model.onnx.part")
    found = read_repository(tmp_path)["m"]
    assert chosen(found) == ["1"] and not found.fault
    (told,) = found.config.ignored
    assert told.startswith("version 2: there is no model file")


def test_a_folder_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindspore_lite.server.repository import read

    put(tmp_path, "good/1/model.onnx", "m/1/model.onnx")
    plain, count = read._read_once, 0

    def changing(folder: Folder, name: str) -> ModelEntry:
        nonlocal count
        found = plain(folder, name)
        if name == "m":
            count += 1
            put(tmp_path, f"m/{count + 1}/model.onnx")
        return found

    monkeypatch.setattr(read, "_read_once", changing)
    found = read_repository(tmp_path)
    assert "changes while it is read" in found["m"].fault and not found["good"].fault
    monkeypatch.setattr(read, "_read_once", plain)
    assert not read_repository(tmp_path)["m"].fault


@pytest.mark.parametrize("change", ["m/2/model.onnx", "m/1/model_variables/data_0", "m/config.x"])
def test_the_stamp_changes_with_anything(tmp_path: Path, change: str) -> None:
    put(tmp_path, "m/1/model.onnx", "n/1/model.onnx")
    before = read_repository(tmp_path)
    assert read_repository(tmp_path) == before
    put(tmp_path, change)
    after = read_repository(tmp_path)
    assert after["m"].stamp != before["m"].stamp and after["n"] == before["n"]


def test_the_stamp_of_a_file_knows_its_data(tmp_path: Path) -> None:
    put(tmp_path, "a.onnx", "b_graph.mindir", "b_variables/data_0")
    before = read_repository(tmp_path)
    put(tmp_path, "a.onnx.data", "b_variables/data_1")
    after = read_repository(tmp_path)
    assert all(after[name].stamp != before[name].stamp for name in "ab")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="does not exist"):
        read_repository(tmp_path / "x")
    assert read_repository(tmp_path) == {}


def test_links_that_go_in_circles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindspore_lite.server.repository.folder.MAX_LISTED", 2000)
    put(tmp_path, "m/1/model.onnx", "good/1/model.onnx")
    (tmp_path / "loop").symlink_to(".")
    for number in range(100):
        (tmp_path / f"m/{number + 2}").symlink_to(".")
    found = read_repository(tmp_path)
    assert "more than 2000 entries" in found["m"].fault and not found["good"].fault


def test_a_folder_with_too_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindspore_lite.server.repository.folder.MAX_ENTRIES", 5)
    put(tmp_path, "good.onnx", *(f"m/1/{number}" for number in range(7)))
    found = read_repository(tmp_path)
    assert "more than 5 entries" in found["m"].fault and not found["good"].fault


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
@pytest.mark.parametrize("file", ["config.pbtxt", "model.ini"])
def test_a_configuration_that_is_no_file(tmp_path: Path, kind: str, file: str) -> None:
    path = put(tmp_path, "m/1/model.onnx") / "m" / file
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}
    make.get(kind, lambda: path.symlink_to("nowhere"))()
    assert read_repository(tmp_path)["m"].fault == f"{file} is no plain file"


def test_hundreds_of_models(tmp_path: Path) -> None:
    put(tmp_path, *(f"m{number}/1/model.onnx" for number in range(500)))
    assert len(read_repository(tmp_path)) == 500


def test_names_of_files() -> None:
    found = [name_of(Path(name)) for name in ("a.onnx", "my net.v1.onnx", "net_graph.mindir")]
    assert found == ["a", "my-net.v1", "net"]


# --- configurations ---


def configured(root: Path, name: str, text: str, file: str = "config.pbtxt") -> Path:
    put(root, *(f"{name}/{version}/model.onnx" for version in (1, 2, 10)))
    (root / name / file).write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "text", "versions"),
    [
        ("config.pbtxt", "", ["10"]),
        ("config.pbtxt", "version_policy { latest { num_versions: 2 } }", ["2", "10"]),
        ("config.pbtxt", "version_policy { all { } }", ["1", "2", "10"]),
        ("config.pbtxt", "version_policy { specific { versions: [ 1, 7 ] } }", ["1"]),
        ("model.ini", "[serve]\nversions=latest:2\n", ["2", "10"]),
        ("model.ini", "[serve]\nversions=all\n", ["1", "2", "10"]),
        ("model.ini", "[serve]\nversions=1,10\n", ["1", "10"]),
    ],
)
def test_versions_by_policy(tmp_path: Path, file: str, text: str, versions: list[str]) -> None:
    found = read_repository(configured(tmp_path, "m", text, file))["m"]
    assert chosen(found) == versions and not found.fault and found.config.source == file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name: "other"', "is called 'other', and its folder 'm'"),
        ("version_policy { specific { versions: 7 } }", "asks for versions 7, and there are 1, 2"),
        ("sequence_batching { }", "sequence_batching is not supported"),
        ('default_model_filename: "x.onnx"', "there is no file 'x.onnx'"),
        ('default_model_filename: "../1/model.onnx"', "there is no file '../1/model.onnx'"),
        ("}", "cannot be read"),
    ],
)
def test_a_configuration_that_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    configured(tmp_path, "good", 'name: "good"')
    found = read_repository(configured(tmp_path, "m", text))
    assert words in found["m"].fault and not found["good"].fault


def test_two_configurations(tmp_path: Path) -> None:
    configured(tmp_path, "m", "")
    found = read_repository(configured(tmp_path, "m", "", "model.ini"))["m"]
    assert found.fault == "it has config.pbtxt and model.ini; remove one of them"


def test_a_file_that_the_configuration_names(tmp_path: Path) -> None:
    put(tmp_path, "m/1/model.onnx", "m/1/net.mindir")
    (tmp_path / "m/config.pbtxt").write_text('default_model_filename: "net.mindir"')
    assert versions(read_repository(tmp_path)["m"]) == {"1": "net.mindir"}


def test_a_mount_with_one_file_and_its_configuration(tmp_path: Path) -> None:
    put(tmp_path / "models", "model.onnx")
    (tmp_path / "models/config.pbtxt").write_text("max_batch_size: 4")
    (found,) = read_repository(tmp_path / "models").values()
    assert (found.name, chosen(found), found.config.max_batch_size) == ("models", ["1"], 4)
    (tmp_path / "models/config.pbtxt").write_text('name: "resnet"')
    assert list(read_repository(tmp_path / "models")) == ["resnet"]
    assert list(read_repository(tmp_path / "models", "mine")) == ["mine"]


def test_configurations_in_volumes_of_kubernetes(tmp_path: Path) -> None:
    put(tmp_path, "..2026_01/m/1/model.onnx", "..2026_01/m/labels.txt")
    text = 'output { name: "y" label_filename: "labels.txt" }'
    (tmp_path / "..2026_01/m/config.pbtxt").write_text(text)
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "m").symlink_to("..data/m")
    found = read_repository(tmp_path)["m"]
    assert not found.fault and found.config.labels == {"y": ("..2026_01/m/labels.txt",)}


def test_a_configuration_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    put(tmp_path / "repo", "m/1/model.onnx", "n/1/model.onnx")
    (tmp_path / "secret").write_text("version_policy { all { } }")
    (tmp_path / "repo/m/config.pbtxt").symlink_to("../../secret")
    os.link(tmp_path / "secret", tmp_path / "repo/n/config.pbtxt")
    found = read_repository(tmp_path / "repo")
    assert "link out of the repository" in found["m"].fault
    assert "hard links" in found["n"].fault


def test_what_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindspore_lite.server.repository import read

    root = tmp_path / "repo"
    for name in ("m", "n", "wrong"):
        configured(root, name, "x: 1" if name == "wrong" else "max_batch_size: 4")
    first = read_repository(root)
    opened: list[Path] = []

    def reads(folder: Folder) -> ServeConfig:
        opened.append(folder.path)
        return ServeConfig(max_batch_size=8)

    monkeypatch.setitem(read.READERS, "config.pbtxt", reads)
    assert read_repository(root, known=first) == first and not opened
    (root / "n/config.pbtxt").write_text("max_batch_size: 16")
    second = read_repository(root, known=first)
    assert opened == [root / "n"] and second["n"].config.max_batch_size == 8
    assert second["m"] == first["m"] and second["wrong"] == first["wrong"]


def test_a_model_that_could_not_be_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "m/1/model.onnx")
    monkeypatch.setattr("mindspore_lite.server.repository.folder.MAX_LISTED", 2)
    first = read_repository(tmp_path)
    assert first["m"].fault
    monkeypatch.undo()
    assert not read_repository(tmp_path, known=first)["m"].fault
