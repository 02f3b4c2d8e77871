"""config.pbtxt: what it says in our terms, what it refuses, and what it lists as ignored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindspore_lite.errors import LiteError
from mindspore_lite.server.repository.folder import Folder
from mindspore_lite.server.repository.pbtxt import (
    MAX_BYTES,
    USUAL_CACHE_BYTES,
    from_message,
    parsed,
    read_pbtxt,
)
from mindspore_lite.server.repository.records import ServeConfig, VersionPolicy

WHOLE = """
name: "resnet"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, -1, 224 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
version_policy: { specific: { versions: [ 1, 3 ] } }
instance_group [ { count: 2 kind: KIND_CPU } ]
dynamic_batching {
  preferred_batch_size: [ 4 ]
  max_queue_delay_microseconds: 100
  default_queue_policy { max_queue_size: 16 default_timeout_microseconds: 1500000 }
}
model_warmup [ {
  name: "first" batch_size: 2 count: 3
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 3, 2, 224 ] zero_data: true } }
} ]
parameters { key: "intra_op_thread_count" value { string_value: "2" } }
parameters { key: "share" value { string_value: "2.5" } }
parameters { key: "isolation" value { string_value: "process" } }
parameters { key: "evictable" value { string_value: "true" } }
parameters { key: "common_context.engine" value { string_value: "openvino" } }
response_cache { enable: true }
"""


def read(folder: Path, text: str) -> ServeConfig:
    return from_message(parsed(text), Folder(folder))


def parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def test_all_that_has_a_meaning_here(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\r\ndog\n\nbird\n")
    (tmp_path / "config.pbtxt").write_text(WHOLE)
    found = read_pbtxt(Folder(tmp_path))
    assert (found.name, found.max_batch_size, found.source) == ("resnet", 8, "config.pbtxt")
    assert found.labels == {"y": ("cat", "dog", "", "bird")}
    assert found.policy == VersionPolicy(specific=("1", "3"))
    assert found.settings == {
        "parallel": {"workers_num": "2", "queue_size": "16", "timeout_s": "1.500000",
                     "thread_num": "2"},
        "batching": {"max_batch_rows": "4", "max_batch_wait_us": "100"},
        "common_context": {"engine": "openvino"},
    }  # fmt: skip
    assert found.context == {"target": "cpu"}
    assert (found.share, found.isolation, found.evictable) == (2.5, "process", True)
    assert found.cache_bytes == USUAL_CACHE_BYTES
    (declared,) = found.inputs
    assert (declared.datatype, declared.dims) == ("FP32", (3, -1, 224))
    assert declared.layout == "FORMAT_NCHW"
    (warm_up,) = found.warm_ups
    assert (warm_up.name, warm_up.batch_size, warm_up.count) == ("first", 2, 3)
    assert warm_up.inputs["x"].kind == "zero_data"
    assert found.ignored == ()


def test_nothing_said(tmp_path: Path) -> None:
    found = read(tmp_path, "")
    assert found == ServeConfig(source="config.pbtxt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: 1", 'no field named "x"'),
        ("max_batch_size: -1", "wanted 0 or more"),
        ("max_batch_size: 99999999999", "out of range"),
        ("sequence_batching { }", "sequence_batching is not supported"),
        (
            'sequence_batching { control_input [ { name: "s" control [ { '
            "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] }",
            "sequence_batching is not supported",
        ),
        ("ensemble_scheduling { step [ ] }", "ensemble_scheduling is not supported"),
        ("batch_input [ { kind: BATCH_ITEM_SHAPE } ]", "batch_input is not supported"),
        ("batch_output [ { } ]", "batch_output is not supported"),
        ('cc_model_filenames { key: "a" value: "b" }', "cc_model_filenames is not supported"),
        ("model_operations { }", "model_operations is not supported"),
        ('model_repository_agents { agents [ { name: "checksum" } ] }', "repository_agents is not"),
        ("model_transaction_policy { decoupled: true }", "decoupled is not supported"),
        ('platform: "ensemble"', "'ensemble' is not supported"),
        ("input [ { dims: 1 } ]", "has no name"),
        ('output [ { name: "y" }, { name: "y" } ]', "is there twice"),
        ('input [ { name: "x" dims: [ 0 ] } ]', "wanted 1 or more, or -1"),
        ('input [ { name: "x" dims: [ -2 ] } ]', "wanted 1 or more, or -1"),
        ('input [ { name: "x" data_type: TYPE_STRING } ]', "no engine takes strings"),
        ('input [ { name: "x" data_type: 99 } ]', "99"),
        ('input [ { name: "x" dims: 1 reshape { shape: [] } } ]', "reshape is not supported"),
        ('input [ { name: "x" optional: true } ]', "optional is not supported"),
        ('input [ { name: "x" allow_ragged_batch: true } ]', "ragged_batch is not supported"),
        ('output [ { name: "x" is_shape_tensor: true } ]', "is_shape_tensor is not supported"),
        ('output [ { name: "y" label_filename: "x.txt" } ]', "x.txt' is missing"),
        ('output [ { name: "y" label_filename: "../x.txt" } ]', "outside"),
        ('output [ { name: "y" label_filename: "/etc/passwd" } ]', "outside"),
        ("version_policy { specific { } }", "wanted numbers from 1 on"),
        ("version_policy { specific { versions: 0 } }", "wanted numbers from 1 on"),
        ("instance_group [ { passive: true } ]", "passive is not supported"),
        ("instance_group [ { count: -1 } ]", "negative"),
        ("instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU } ]", "several kinds"),
        ("instance_group [ { kind: KIND_CPU gpus: 0 } ]", "leave one out"),
        ("dynamic_batching { preferred_batch_size: 4 }", "max_batch_size, which is 0"),
        (
            "max_batch_size: 2 dynamic_batching { default_queue_policy { timeout_action: DELAY } }",
            "DELAY is not supported",
        ),
        ('model_warmup { name: "w" batch_size: 1 }', "more than max_batch_size"),
        ('model_warmup { name: "w" count: 2000 }', "at most 1000"),
        ('model_warmup { inputs { key: "x" value { dims: 1 } } }', "wants zero_data"),
        ('model_warmup { inputs { key: "x" value { zero_data: true } } }', "no data_type"),
        (
            'model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 dims: -1 '
            "zero_data: true } } }",
            "wanted 1 or more",
        ),
        (
            'model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 dims: 999999999 '
            "zero_data: true } } }",
            "more than 67108864 bytes",
        ),
        (
            'model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 dims: 3 '
            'input_data_file: "w" } } }',
            "takes 12",
        ),
        (
            'model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 dims: 1 '
            'input_data_file: "../config.pbtxt" } } }',
            "outside",
        ),
        (parameter("share", "0"), "wanted a number above 0"),
        (parameter("share", "nan"), "wanted a number above 0"),
        (parameter("evictable", "maybe"), "true or false"),
        (parameter("isolation", "vm"), "one of thread, process"),
        (parameter("cache_bytes", "-1"), "number of bytes"),
        (parameter("shares", "2"), "did you mean 'share'"),
        (parameter("batching.max_batch_row", "2"), "max_batch_rows"),
        (parameter("parallel.workers_num", "x"), "wanted a number"),
        (parameter("build.sandbox", "off"), "cannot be set in a model's folder"),
        (parameter("model_file.mindir_path", "/etc"), "cannot be set in a model's folder"),
        (parameter("common_context.profile", "/tmp/x"), "cannot be set in a model's folder"),
        (parameter("ascend_context.variable_weights_file", "/x"), "cannot be set in a model's"),
        (parameter("intra_op_thread_count", "two"), "wanted a number"),
        (parameter("execution_mode", "1"), "needs inter_op_thread_count"),
        (parameter("execution_mode", "2"), "wanted 0 or 1"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup/w").write_bytes(b"1234")
    with pytest.raises(LiteError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ('backend: "tensorrt"', "backend 'tensorrt'"),
        ("optimization { graph { level: 1 } }", "optimization.graph"),
        ("optimization { cuda { graphs: true } }", "optimization.cuda"),
        ('metric_tags { key: "a" value: "b" }', "metric_tags"),
        ("model_metrics { metric_control [ ] }", "model_metrics"),
        ('instance_group [ { host_policy: "h" } ]', "instance_group.host_policy"),
        ("instance_group [ { rate_limiter { priority: 1 } } ]", "instance_group.rate_limiter"),
        ("max_batch_size: 1 dynamic_batching { }", "nothing is joined"),
        ("max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 2, 4 ] }", "[2]"),
        (
            "max_batch_size: 4 dynamic_batching { preserve_ordering: true }",
            "dynamic_batching.preserve_ordering",
        ),
        (
            "max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 1 }",
            "dynamic_batching.priority_levels",
        ),
        (parameter("session.disable_prepacking", "1"), "parameters 'session.disable_prepacking'"),
        (parameter("enable_mem_arena", "0"), "parameters 'enable_mem_arena'"),
        (parameter("inter_op_thread_count", "2"), "execution_mode is not 1"),
        (parameter("ascend_context.rank_id", "1"), "[ascend_context] rank_id"),
    ],
)
def test_what_has_no_meaning_is_listed(tmp_path: Path, text: str, ignored: str) -> None:
    found = read(tmp_path, text).ignored
    assert any(ignored in one for one in found), found


def test_operators_side_by_side(tmp_path: Path) -> None:
    text = parameter("execution_mode", "1") + parameter("inter_op_thread_count", "2")
    assert read(tmp_path, text).context == {"cpu.inter_op_parallel_num": "2"}


def test_cards(tmp_path: Path) -> None:
    text = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 8 ] }"
    found = read(tmp_path, f"{text} instance_group [ {{ count: 2 gpus: [ 0, 1 ] }} ]")
    assert found.context == {"target": "gpu"}
    assert found.settings["parallel"] == {"workers_num": "4", "device_ids": "0,1"}
    assert found.settings["gpu_context"] == {"batch_buckets": "2,8"}


def test_the_data_of_a_warm_up(tmp_path: Path) -> None:
    (tmp_path / "warmup").mkdir()
    data = np.array([1, 2, 3], np.float32).tobytes()
    (tmp_path / "warmup/w").write_bytes(data)
    found = read(
        tmp_path,
        'model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 dims: 3 '
        'input_data_file: "w" } } }',
    )
    assert found.warm_ups[0].inputs["x"].data == data


def test_files_are_read_once_and_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warmup").mkdir()
    for name in ("a", "b"):
        (tmp_path / "warmup" / name).write_bytes(b"1234")
        (tmp_path / name).write_text("cat\n")
    both = "".join(
        f'output {{ name: "{name}" label_filename: "{name}" }} model_warmup {{ inputs {{ key: "x" '
        f'value {{ data_type: TYPE_FP32 dims: 1 input_data_file: "{name}" }} }} }}'
        for name in ("a", "b")
    )
    read(tmp_path, both)
    monkeypatch.setattr("mindspore_lite.server.repository.warm_ups.MAX_BYTES", 6)
    with pytest.raises(LiteError, match="'warmup/b' has 4 bytes, more than the 2 allowed"):
        read(tmp_path, both)
    monkeypatch.setattr("mindspore_lite.server.repository.labels._MAX_BYTES", 6)
    with pytest.raises(LiteError, match="'b' has 4 bytes, more than the 2 allowed"):
        read(tmp_path, both)
    one = both.replace('filename: "b"', 'filename: "a"').replace('file: "b"', 'file: "a"')
    assert read(tmp_path, one).labels == {"a": ("cat",), "b": ("cat",)}


def test_windows_wrote_it(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_bytes(b"\xef\xbb\xbfmax_batch_size: 4\r\n# x\r\n")
    assert read_pbtxt(Folder(tmp_path)).max_batch_size == 4


def test_a_size_of_the_cache(tmp_path: Path) -> None:
    text = parameter("cache_bytes", "2M")
    assert read(tmp_path, f"{text} response_cache {{ enable: true }}").cache_bytes == 2 << 20
    assert read(tmp_path, text).cache_bytes == 2 << 20


@pytest.mark.parametrize(
    "text",
    [
        "input {" * 100_000,
        "[" * 100_000,
        "optimization { cuda { graph_spec {" * 10_000,
        'name: "' + "\\" * 100_000,
        'name: "\\377"',
        "\x00",
        "dims: [" * 10_000,
        "\ud800",
    ],
)
def test_texts_that_are_no_configuration(tmp_path: Path, text: str) -> None:
    with pytest.raises(LiteError, match="cannot be read") as caught:
        parsed(text)
    assert len(str(caught.value)) < 500


def test_a_file_that_is_too_large_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(LiteError, match="more than the 1048576 allowed"):
        read_pbtxt(Folder(tmp_path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LiteError, match="not UTF-8"):
        read_pbtxt(Folder(tmp_path))
