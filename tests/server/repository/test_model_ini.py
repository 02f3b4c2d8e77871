"""model.ini: the grammar and keys of settings/, and the section [serve]."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from mindspore_lite.errors import LiteError
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.model_ini import read_ini
from mindspore_lite.server.repository.records import ServeConfig, VersionPolicy

WHOLE = """
# how to serve it
[serve]
max_batch_size = 8
versions = latest:2
share = 0.5
isolation = process
cache_bytes = 4M
evictable = true
labels = Default/y:0 : labels.txt, z:more.txt
file = net.onnx
target = cpu
[parallel]
workers_num = 2
queue_size = 16
[batching]
max_batch_rows = 8
"""


def read(folder: Path, text: str | bytes) -> ServeConfig:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "model.ini").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_ini(Folder(folder))


def test_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    (tmp_path / "more.txt").write_text("one\n")
    found = read(tmp_path, WHOLE)
    assert found.labels == {"Default/y:0": ("cat", "dog"), "z": ("one",)}
    assert [(one.name, one.label_file) for one in found.outputs] == [
        ("Default/y:0", "labels.txt"),
        ("z", "more.txt"),
    ]
    assert found.policy == VersionPolicy(latest=2)
    assert found.settings == {
        "parallel": {"workers_num": "2", "queue_size": "16"},
        "batching": {"max_batch_rows": "8"},
    }
    assert found.context == {"target": "cpu"}
    assert (found.max_batch_size, found.share, found.isolation) == (8, 0.5, "process")
    assert (found.cache_bytes, found.evictable, found.file) == (4 << 20, True, "net.onnx")
    assert found.source == "model.ini" and found.ignored == ()


def test_nothing_said(tmp_path: Path) -> None:
    assert read(tmp_path, "") == ServeConfig(source="model.ini")


@pytest.mark.parametrize(
    ("text", "policy"),
    [("all", VersionPolicy(all=True)), ("3, 1", VersionPolicy(specific=("3", "1")))],
)
def test_policies(tmp_path: Path, text: str, policy: VersionPolicy) -> None:
    assert read(tmp_path, f"[serve]\nversions={text}\n").policy == policy


def test_keys_of_the_original_are_listed(tmp_path: Path) -> None:
    found = read(tmp_path, "[ascend_context]\nrank_id=1\n[ge_graph_options]\na=b\n")
    assert found.ignored == ("[ascend_context] rank_id", "[ge_graph_options] a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve]\nshares=1\n", "did you mean 'share'"),
        ("[serve]\nshare=0\n", "wanted a number above 0"),
        ("[serve]\nshare=\n", "wanted a number above 0"),
        ("[serve]\nversions=latest:0\n", "wanted latest:N"),
        ("[serve]\nversions=0\n", "wanted latest:N"),
        ("[serve]\nversions=\n", "wanted latest:N"),
        ("[serve]\ntarget=tpu\n", "one of cpu, gpu, ascend"),
        ("[serve]\nlabels=labels.txt\n", "wanted OUTPUT:FILE"),
        ("[serve]\nlabels=y:../x\n", "outside"),
        ("[serve]\nmax_batch_size=-1\n", "0 or more"),
        ("[serv]\nshare=1\n", r"did you mean \[serve\]"),
        ("[parallel]\nworker_num=1\n", "did you mean 'workers_num'"),
        ("[parallel]\nworkers_num=x\n", "wanted a number"),
        ("[build]\nsandbox=off\n", "cannot be set in a model's folder"),
        ("[service]\nname=x\n", "cannot be set in a model's folder"),
        ("[model_File]\nmindir_path=/etc/passwd\n", "cannot be set in a model's folder"),
        ("share=1\n", "line 1: .*before the first"),
        ("[serve]\nshare\n", "line 2: 'share' is neither"),
        ("[serve]\nshare=1\nshare=2\n", "line 3: key 'share' was already there"),
        ("[serve\n", r"line 1: '\[serve' is no \[section\]"),
        (b"[serve]\n\xff\n", "not UTF-8"),
        (b"#" * (1 << 21), "more than the 1048576 allowed"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(LiteError, match=words):
        read(tmp_path, text)
