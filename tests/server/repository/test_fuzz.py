"""Anything in a model's folder ends in an entry: its own fault, or a model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mindspore_lite.errors import LiteError
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.pbtxt import from_message, parsed
from mindspore_lite.server.repository.read import read_repository
from mindspore_lite.server.repository.records import chosen


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


FIELDS = sorted(
    {
        field.name
        for message in [ModelConfig, *ModelConfig.DESCRIPTOR.file.message_types_by_name.values()]
        for field in getattr(message, "DESCRIPTOR", message).fields
    }
)
WORDS = st.sampled_from(
    [
        *FIELDS, "{", "}", "[", "]", "<", ">", ":", ",", ";", "-", "0", "1", "-1", "4", "1e9",
        "nan", "99999999999999999999", "true", "false", '"a"', '"x"', "'", '"', "#", "\\", "key",
        "value",
        "TYPE_FP32", "TYPE_STRING", "KIND_CPU", "KIND_GPU", "DELAY", "\n", "\x00", "é", '"share"',
        '"isolation"', '"parallel.workers_num"', '"build.sandbox"', '"process"', '"../x"', '"/"',
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=60).map(" ".join))
MESSAGES = st.recursive(
    st.sampled_from(["1", "-1", "0", "true", '"x"', '"a.txt"', "TYPE_FP32", "KIND_GPU"]),
    lambda inner: st.lists(st.tuples(st.sampled_from(FIELDS), inner), max_size=4).map(
        lambda pairs: "{ " + " ".join(f"{name}: {value}" for name, value in pairs) + " }"
    ),
    max_leaves=20,
).map(lambda text: text.strip("{}"))
INI = st.lists(
    st.sampled_from(
        [
            "[serve]", "[parallel]", "[batching]", "[build]", "[x]", "[", "share=1", "share=nan",
            "versions=all", "versions=latest:2", "versions=1,,2", "workers_num=1", "queue_size=0",
            "labels=y:x", "labels=:", "file=../x", "evictable=on", "cache_bytes=9G", "=", "a=b",
            "#", "target=gpu", "isolation=process", "max_batch_size=9", "engine=torch", "\x00=\x00",
        ]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(TEXTS, MESSAGES))
def test_any_text_as_config_pbtxt(text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        try:
            from_message(parsed(text), Folder(Path(name)))
        except LiteError as exc:
            assert len(str(exc)) < 2000


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(TEXTS.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=60)),
    st.one_of(INI.map(str.encode), st.binary(max_size=60)),
    st.sampled_from(["config.pbtxt", "model.ini"]),
)
def test_any_folder(text: bytes, ini: bytes, file: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "m/1").mkdir(parents=True)
        (root / "m/1/model.onnx").touch()
        (root / "m" / file).write_bytes(text if file == "config.pbtxt" else ini)
        assert list(read_repository(root)) == ["m"]


NAMES = st.sampled_from(
    ["1", "2", "02", "m", "n", "model.onnx", "a.mindir", "config.pbtxt", "model.ini", "..data"]
)
TREES = st.recursive(
    st.one_of(
        st.sampled_from(["", "max_batch_size: 4", "[serve]\nversions=all", "\x00"]),
        st.sampled_from([Link("."), Link(".."), Link("m"), Link("../1"), Link("/etc"), Link("x")]),
    ),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def plant(path: Path, tree: object) -> None:
    if isinstance(tree, dict):
        path.mkdir()
        for name, one in tree.items():
            plant(path / name, one)
    elif isinstance(tree, Link):
        path.symlink_to(tree.target)
    else:
        path.write_text(str(tree))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_any_tree(tree: object) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        plant(root, tree)
        real = root.resolve()
        for entry in read_repository(root).values():
            for version in chosen(entry):
                assert entry.versions[version].resolve().is_relative_to(real)
                assert entry.versions[version].is_file()
