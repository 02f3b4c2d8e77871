"""Writes records as a MindIR file, streaming the weights from wherever they are.

Above a limit the weights go to a side file, laid out as MindSpore does. Files appear under their
names only once they are complete.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mindspore_lite.core.snapshot import Unread
from mindspore_lite.mindir import encode
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.records import Model, Tensor
from mindspore_lite.mindir.scan import encoded
from mindspore_lite.mindir.side_files import FOLDER_SUFFIX, GRAPH_SUFFIX, HEADER_BYTES

ONE_FILE_BYTES = 2**30  # where MindSpore begins to use side files
_PROTOBUF_BYTES = 2**31 - 2**20  # no message can be larger than 2 GiB
_GRAPH, _PARAMETER, _RAW_DATA = 7, 3, 9  # Model.graph, Graph.parameter, Tensor.raw_data
_BYTES = 2  # wire type
_ALIGN = 64

Piece = bytes | memoryview
Cipher = Callable[[Iterable[Piece]], Iterable[Piece]]


def write_file(
    model: Model,
    path: Path,
    *,
    cipher: Cipher | None = None,
    external_above: int = ONE_FILE_BYTES,
    data_name: str = "data_0",
) -> tuple[Path, ...]:
    """Write a model as `path`, or as NAME_graph.mindir and a side file; returns what was written.

    `cipher` turns the content of each file into what is stored; it is done with a piece when it
    asks for the next one. `data_name` is what the side file is called.
    """
    weights = model.graph.parameters
    total = sum(weight.data.nbytes for weight in weights)
    hide: Cipher = cipher or (lambda pieces: pieces)
    if total <= min(external_above, _PROTOBUF_BYTES):
        with _appearing(path) as file:
            _store(file, hide(pieces(model)))
        return (path,)
    stem = path.name.removesuffix(".mindir")
    graph_path = path.with_name(stem + GRAPH_SUFFIX)
    folder = path.with_name(stem + FOLDER_SUFFIX)
    data_path = folder / data_name
    order = sorted(weights, key=lambda w: w.name)
    places = _places(order, f"{folder.name}/{data_path.name}")
    # put in place when both are complete, the graph last: it is what names the data
    with (
        _appearing(graph_path) as graph_file,
        _made(folder),
        _appearing(data_path) as data_file,
    ):
        _store(data_file, hide(_side_pieces(order)))
        _store(graph_file, hide(pieces(model, places)))
    return graph_path, data_path


def pieces(model: Model, places: dict[str, pb.ExternalData] | None = None) -> Iterator[Piece]:
    """The bytes of a model file; weights with a place are named only, not included.

    Each piece is good until the next one is asked for.
    """
    proto = encode.skeleton(model)
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    heads = [_weight_head(weight, places) for weight in model.graph.parameters]
    bodies = [weight.data if places is None else None for weight in model.graph.parameters]
    tags = [_tags(head, body) for head, body in zip(heads, bodies, strict=True)]
    size = len(graph) + sum(
        len(outer) + len(head) + len(inner) + (body.nbytes if body is not None else 0)
        for (outer, inner), head, body in zip(tags, heads, bodies, strict=True)
    )
    # the model's own fields first, ir_version leading: readers tell MindIR from ONNX by it
    yield proto.SerializeToString(deterministic=True)
    yield _tag(_GRAPH, size)
    yield graph
    for (outer, inner), head, body in zip(tags, heads, bodies, strict=True):
        yield outer
        yield head
        if body is not None:
            yield inner
            yield from _read(body)


def _weight_head(weight: Tensor, places: dict[str, pb.ExternalData] | None) -> bytes:
    proto = encode.tensor(pb.Tensor(), weight, with_data=False)
    if places is not None:
        proto.external_data.CopyFrom(places[weight.name])
    return proto.SerializeToString()


def _tags(head: bytes, body: memoryview | Unread | None) -> tuple[bytes, bytes]:
    """What announces a weight in the graph, and its data in the weight."""
    inner = b"" if body is None else _tag(_RAW_DATA, body.nbytes)
    held = len(head) + len(inner) + (body.nbytes if body is not None else 0)
    return _tag(_PARAMETER, held), inner


def _tag(field: int, size: int) -> bytes:
    return encoded(field << 3 | _BYTES) + encoded(size)


def _side_pieces(weights: Sequence[Tensor]) -> Iterator[Piece]:
    """A header whose first byte says little-endian, then each weight padded to 64 bytes."""
    yield b"\x01".ljust(HEADER_BYTES, b"\x00")
    for weight in weights:
        yield from _read(weight.data)
        yield bytes(-weight.data.nbytes % _ALIGN)


def _places(weights: Sequence[Tensor], location: str) -> dict[str, pb.ExternalData]:
    places = {}
    offset = HEADER_BYTES
    for weight in weights:
        length = weight.data.nbytes
        places[weight.name] = pb.ExternalData(location=location, offset=offset, length=length)
        offset += length + -length % _ALIGN
    return places


def _read(data: memoryview | Unread) -> Iterator[memoryview]:
    """The bytes of a weight; what is still in another file is read here, and kept nowhere."""
    return data.pieces() if isinstance(data, Unread) else iter((data,))


def _store(descriptor: int, content: Iterable[Piece]) -> None:
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        for piece in content:
            file.write(piece)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder that is there; a new one goes again when the block fails."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            folder.rmdir()
        raise


@contextmanager
def _appearing(path: Path) -> Iterator[int]:
    """A file that comes into being under its name when the block ends well, and never by halves."""
    # not made of the name, which may be as long as a name can be
    temporary = path.with_name(f".mslite-{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            yield descriptor
            if path.exists():  # not even a power cut may leave neither the old one nor the new one
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
