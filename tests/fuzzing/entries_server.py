"""Entries of the server's files: the configurations of a model's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fuzzing.damage import Damage
from fuzzing.mutate_proto import mutated
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from mindspore_lite.errors import ModelFileError
from mindspore_lite.server.grpc.model_config_pb2 import ModelConfig
from mindspore_lite.server.grpc.pool import POOL
from mindspore_lite.server.repository.read import read_repository

Act = Callable[[], object]

_PBTXT = """\
name: "m"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: 3 label_filename: "data" }
version_policy { specific { versions: [ 1, 3 ] } }
instance_group { count: 2 kind: KIND_CPU }
dynamic_batching {
  preferred_batch_size: [ 2, 4 ]
  max_queue_delay_microseconds: 100
  default_queue_policy { max_queue_size: 16 default_timeout_microseconds: 1500000 }
}
model_warmup {
  name: "w" batch_size: 2 count: 3
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 3, 2 ] zero_data: true } }
  inputs { key: "z" value { data_type: TYPE_INT8 dims: 4 input_data_file: "data" } }
}
parameters { key: "share" value { string_value: "2" } }
parameters { key: "parallel.thread_num" value { string_value: "2" } }
parameters { key: "execution_mode" value { string_value: "0" } }
response_cache { enable: true }
"""
_INI = """\
[serve]
max_batch_size=8
versions=latest:2
labels=y:data
share=0.5
isolation=process
cache_bytes=4M
evictable=true
file=model.onnx
[parallel]
workers_num=2
[batching]
max_batch_rows=8
"""
_WORDS = (
    *("serve", "parallel", "batching", "build", "model_file", "versions", "all", "latest:9", "1,2"),
    *("labels", "y:link", "y:out/secret", "y:pipe", "y:../x", "file", "link", "pipe", "../model"),
    *("mindir_path", "sandbox", "share", "cache_bytes", "target", "gpu", "isolation", "thread"),
)


def repository(damage: Damage, folder: Path) -> Act:
    """Read a model's folder with a damaged configuration; its fault is our error."""
    (folder / "1").mkdir()
    (folder / "warmup").mkdir()
    (folder / "1/model.onnx").touch()
    (folder / "data").write_text("cat\ndog\n")
    (folder / "warmup/data").write_bytes(damage.bytes(b"1234") if damage.chance(0.1) else b"1234")
    for name in ("link", "pipe", "out"):
        (folder / "warmup" / name).symlink_to(f"../{name}")
    if damage.chance(0.3):
        (folder / "model.ini").write_bytes(damage.lines(_INI, _WORDS))
    else:
        (folder / "config.pbtxt").write_bytes(_damaged_pbtxt(damage))

    def act() -> None:
        for entry in read_repository(folder).values():
            if entry.fault:
                raise ModelFileError(entry.fault)

    return act


def _damaged_pbtxt(damage: Damage) -> bytes:
    """The text with damaged bytes, or that of a message with damaged fields."""
    if damage.harmless or damage.chance(0.3):
        return damage.bytes(_PBTXT.encode())
    message = text_format.Parse(_PBTXT, ModelConfig(), descriptor_pool=POOL)
    data = mutated(message.SerializeToString(), damage.rng, ModelConfig, ())
    try:
        return text_format.MessageToString(ModelConfig.FromString(data)).encode()
    except (DecodeError, UnicodeError):
        return data
