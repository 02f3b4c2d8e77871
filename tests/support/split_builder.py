"""Splits a model as MindSpore does above 1 GiB: a graph file, and its weights beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.records import local_name

HEADER = b"\1" + bytes(63)
Change = Callable[[pb.Model], object]


def split(
    model: bytes,
    folder: Path,
    name: str = "net",
    *,
    change: Change = lambda _: None,
    seal: Callable[[list[bytes]], bytes] = b"".join,
) -> Path:
    """Write `<name>_graph.mindir` and `<name>_variables/data_0`; `seal` may encrypt the pieces."""
    proto = pb.Model.FromString(model)
    pieces, at = [HEADER], len(HEADER)
    for weight in sorted(proto.graph.parameter, key=lambda p: local_name(p.name)):
        piece = weight.raw_data + bytes(-len(weight.raw_data) % 64)
        weight.external_data.location = f"{name}_variables/data_0"
        weight.external_data.offset = at
        weight.external_data.length = len(weight.raw_data)
        weight.ClearField("raw_data")
        pieces.append(piece)
        at += len(piece)
    change(proto)
    (folder / f"{name}_variables").mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_variables/data_0").write_bytes(seal(pieces))
    path = folder / f"{name}_graph.mindir"
    path.write_bytes(seal([proto.SerializeToString()]))
    return path


def split_oldest(model: bytes, folder: Path, name: str = "net", files: int = 2) -> Path:
    """Write a graph without weights, and its weights as Graph messages into `<name>_variables`."""
    proto = pb.Model.FromString(model)
    weights = list(proto.graph.parameter)
    proto.graph.ClearField("parameter")
    (folder / f"{name}_variables").mkdir(parents=True)
    for index in range(files):
        graph = pb.Graph(parameter=weights[index::files])
        (folder / f"{name}_variables/data_{index}").write_bytes(graph.SerializeToString())
    path = folder / f"{name}_graph.mindir"
    path.write_bytes(proto.SerializeToString())
    return path
