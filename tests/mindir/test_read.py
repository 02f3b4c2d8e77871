"""mindir/read.py: whole files, good and bad; whatever is wrong ends in ModelFileError."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.mindir_builder import Net, encode, tensor_type, to_proto
from support.running import DATA

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.encode import value as fill_value
from mindspore_lite.mindir.read import read, read_file
from mindspore_lite.mindir.scan import MAPPED_BYTES

Change = Callable[[pb.Model], object]


def small() -> r.Model:
    """(x + w) with one constant, and a function that is called."""
    inner = Net("inner")
    doubled = inner.call("Muls", inner.input("v", (2,)), inner.constant(2), type=tensor_type((2,)))
    net = Net("main")
    x = net.input("x", (2,), given_name="image")
    y = net.call("Add", x, net.weight("layer.w", np.ones(2, np.float32)), scope="Default/add")
    z = net.call(r.GraphRef("inner"), y, type=tensor_type((2,)))
    return net.model(z, functions=[inner.graph(doubled)], user_info={"author": "me"})


def changed(change: Change) -> memoryview:
    proto = to_proto(small())
    change(proto)
    return memoryview(proto.SerializeToString())


# --- good files ---------------------------------------------------------------------------------


def test_a_file_reads_back_as_the_records_it_was_made_of() -> None:
    found, wanted = read(memoryview(encode(small()))), small()
    assert found.graph.inputs == wanted.graph.inputs
    assert found.graph.nodes == wanted.graph.nodes
    assert found.graph.outputs == wanted.graph.outputs
    assert found.functions == wanted.functions
    assert found.user_info == {"author": "me"}
    assert (found.producer, found.producer_version) == ("MindSpore", "2.10.0")
    assert (found.ir_version, found.mind_ir_version) == ("1.1", 3)
    (weight,) = found.graph.parameters
    assert weight.name == "main:layer.w"
    np.testing.assert_array_equal(weight.numpy(), np.ones(2, np.float32))


def test_an_input_keeps_the_name_a_converter_gave_it() -> None:
    assert read(memoryview(encode(small()))).graph.inputs[0].given_name == "image"


@pytest.mark.parametrize(
    "kind",
    [
        tensor_type((2, -1)),
        tensor_type(None),
        tensor_type((), np.int64, is_scalar=True),
        r.SequenceType((tensor_type((2,)), tensor_type((), np.int64, is_scalar=True))),
        r.OtherType("UMonadType"),
    ],
    ids=str,
)
def test_every_kind_of_input_is_read(kind: r.Type) -> None:
    net = Net()
    net.input("v", type=kind)
    model = net.model(net.constant(1))
    assert read(memoryview(encode(model))).graph.inputs == model.graph.inputs


@pytest.mark.parametrize(
    "value",
    [True, 3, -2.5, "same", None, r.Monad.MEMORY, r.Monad.IO, (1, 2), [1.5], (), {"k": (1, "a")}],
    ids=repr,
)
def test_every_constant_survives(value: object) -> None:
    net = Net()
    model = net.model(net.constant(value))
    (node,) = read(memoryview(encode(model))).graph.nodes
    assert isinstance(node, r.Constant)
    assert node.value == value
    assert type(node.value) is type(value)


def test_ref_finds_primitives_then_graphs_then_values() -> None:
    """A name can only be looked up; what it is decides."""
    net = Net("main")
    x = net.input("x", (2,))
    relu = net.call("ReLU", x)
    inner = Net("inner")
    inner.input("v", (2,))
    called = net.call(r.GraphRef("inner"), relu)
    closure = net.call(r.ValueRef(called), x)
    model = net.model(closure, functions=[inner.graph("inner:v")])
    targets = [n.target for n in read(memoryview(encode(model))).graph.nodes]  # type: ignore[union-attr]
    assert targets == [r.Primitive("ReLU"), r.GraphRef("inner"), r.ValueRef(called)]


def test_the_main_graph_may_be_called_by_name() -> None:
    inner = Net("inner")
    inner.input("v", (2,))
    again = inner.call(r.GraphRef("main"), "inner:v")
    net = Net("main")
    called = net.call(r.GraphRef("inner"), net.input("x", (2,)))
    found = read(memoryview(encode(net.model(called, functions=[inner.graph(again)]))))
    assert found.functions["inner"].nodes[0].target == r.GraphRef("main")  # type: ignore[union-attr]


def test_a_plain_op_type_is_a_primitive_whose_attributes_stand_on_the_node() -> None:
    def change(proto: pb.Model) -> None:
        node = proto.graph.node[0]
        node.op_type = "Softmax"
        fill_value(node.attribute.add(name="axis"), (1,))

    first = read(changed(change)).graph.nodes[0]
    assert isinstance(first, r.Call)
    assert first.target == r.Primitive("Softmax", {"axis": (1,)})


def test_attributes_on_a_node_count_before_those_of_its_primitive() -> None:
    def change(proto: pb.Model) -> None:
        fill_value(proto.primitives[0].attribute.add(name="axis"), 0)
        fill_value(proto.primitives[0].attribute.add(name="kept"), "yes")
        fill_value(proto.graph.node[0].attribute.add(name="axis"), 1)

    first = read(changed(change)).graph.nodes[0]
    assert isinstance(first, r.Call)
    assert first.target == r.Primitive("Add", {"axis": 1, "kept": "yes"})


def test_a_constant_of_one_graph_may_be_used_in_another() -> None:
    inner = Net("inner")
    shared = inner.constant(2)
    net = Net("main")
    y = net.call("Muls", net.input("x", (2,)), shared)
    inner.input("v", (2,))
    model = net.model(y, functions=[inner.graph("inner:v")])
    assert read(memoryview(encode(model))).graph.nodes[0].inputs == ("main:x", shared)  # type: ignore[union-attr]


def test_graph_attributes_are_read() -> None:
    found = read(changed(lambda p: fill_value(p.graph.attribute.add(name="is_while_header"), True)))
    assert found.graph.attributes == {"is_while_header": True}


def test_an_empty_weight_may_lack_data() -> None:
    def change(proto: pb.Model) -> None:
        proto.graph.parameter[0].dims[:] = [0, 3]
        proto.graph.parameter[0].ClearField("raw_data")

    assert read(changed(change)).graph.parameters[0].shape == (0, 3)


def test_packed_numbers_are_read_like_single_ones() -> None:
    """proto2 writes one tag per dim; other writers pack them into one field of bytes."""
    weight = b"\x0a\x02\x01\x02" + b"\x10\x01" + b"\x3a\x03m:w" + b"\x4a\x08" + b"\0" * 8
    graph = b"\x1a" + bytes([len(weight)]) + weight + b"\x32\x05\x0a\x03m:w"
    found = read(memoryview(b"\x3a" + bytes([len(graph)]) + graph))
    assert found.graph.parameters[0].shape == (1, 2)
    assert found.graph.outputs == ("m:w",)


# --- memory mapping -------------------------------------------------------------------------------


def mapped_file(tmp_path: Path, count: int) -> Path:
    net = Net()
    weight = net.weight("w", np.arange(count, dtype=np.float32))
    path = tmp_path / "big.mindir"
    path.write_bytes(encode(net.model(net.call("Add", net.input("x", (count,)), weight))))
    return path


def base_of(array: np.ndarray) -> object:
    found: object = array
    while isinstance(found, np.ndarray):
        found = found.base
    return found.obj if isinstance(found, memoryview) else found


def test_a_weight_of_a_page_stays_in_the_mapped_file(tmp_path: Path) -> None:
    count = MAPPED_BYTES // 4
    (weight,) = read_file(mapped_file(tmp_path, count)).graph.parameters
    assert isinstance(base_of(weight.numpy()), mmap.mmap)
    np.testing.assert_array_equal(weight.numpy(), np.arange(count))


def test_a_smaller_weight_is_copied(tmp_path: Path) -> None:
    (weight,) = read_file(mapped_file(tmp_path, MAPPED_BYTES // 4 - 1)).graph.parameters
    assert not isinstance(base_of(weight.numpy()), mmap.mmap)


def test_the_weights_outlive_the_file_name(tmp_path: Path) -> None:
    path = mapped_file(tmp_path, 5000)
    (weight,) = read_file(path).graph.parameters
    path.unlink()
    assert weight.numpy().sum() == sum(range(5000))


# --- bad files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"\0", "byte 0 holds no protobuf field"),
        (b"\0" * 64, "byte 0 holds no protobuf field"),
        (b"\xd8\x5e\x3a\x7f" + b"\0" * 40, "encrypted"),
        (b"\xd9\x5e\x3a\x7f", "encrypted"),
        (b"\xda\x5e\x3a\x7f", "encrypted"),
        (b"\x08\x0a\x12\x04onnx", "looks like an ONNX file; pass ModelType.ONNX"),
        (b"\x0a\x051.1.0", "there is no graph inside; is it a MindIR file?"),
        (b"\x3a\x00", "there is no graph inside"),
        (b"This is a text file, not a model.\n", "holds no protobuf field"),
        (b'{"model": "json"}', ""),
        (b"PK\x03\x04" + b"\0" * 30, ""),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"\xff" * 100, "does not end"),
    ],
)
def test_bytes_that_are_no_model_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read(memoryview(data))
    assert words in str(caught.value)


def _twice(proto: pb.Model) -> None:
    proto.graph.node.add().CopyFrom(proto.graph.node[0])


def _two_outputs(proto: pb.Model) -> None:
    proto.graph.node[0].output.append("more")


def _no_values(proto: pb.Model) -> None:
    proto.functions[0].node[0].ClearField("attribute")


def _odd_constant(proto: pb.Model) -> None:
    proto.functions[0].node[0].attribute[0].type = pb.Attribute.SYMBOL


def _no_data(proto: pb.Model) -> None:
    proto.graph.parameter[0].ClearField("raw_data")


def _external(proto: pb.Model) -> None:
    _no_data(proto)
    proto.graph.parameter[0].external_data.location = "data_0"


def _set(path: str, value: object) -> Change:
    def change(proto: pb.Model) -> None:
        *names, last = path.split(".")
        for name in names:
            proto = proto[int(name)] if name.isdigit() else getattr(proto, name)  # type: ignore[index]
        setattr(proto, last, value)

    return change


WRONG: list[tuple[Change, str]] = [
    (_set("mind_ir_version", 4), "MindIR version 4, this release reads up to 3"),
    (_set("little_endian", False), "big-endian; export the model on a little-endian machine"),
    (lambda p: p.graph.map_parameter.add(name="m"), "hash-table parameters (MapTensor)"),
    (lambda p: p.graph.ClearField("output"), "graph 'main' has no output"),
    (lambda p: p.functions[0].ClearField("output"), "graph 'inner' has no output"),
    (_twice, "the name 'main:node:1' is given twice"),
    (_set("graph.input.0.name", "main:layer.w"), "the name 'main:layer.w' is given twice"),
    (_set("graph.input.0.name", ""), "a graph input has no name"),
    (_set("graph.parameter.0.name", ""), "a weight has no name"),
    (lambda p: p.graph.node[0].output.__setitem__(0, ""), "a node has no name"),
    (_two_outputs, "node 'main:node:1' has 2 outputs, wanted one"),
    (lambda p: p.graph.node[0].ClearField("output"), "node 'main:node:1' has 0 outputs"),
    (lambda p: p.graph.node[0].input.append("gone"),
     "node 'main:node:1' uses 'gone', which the file does not define"),
    (lambda p: p.graph.output[0].__setattr__("name", "gone"),
     "the graph's output uses 'gone', which the file does not define"),
    (_set("graph.node.0.op_type", "REF::Nothing:9"), "uses 'Nothing:9', which the file does not"),
    (_set("graph.node.0.op_type", "REF::MetaFuncGraph::grad"), "'MetaFuncGraph::grad'"),
    (_no_values, "constant 'const_inner_1' has 0 values, wanted one"),
    (_odd_constant, "constant 'const_inner_1': attribute 'value' has a value of type SYMBOL"),
    (_no_data, "weight 'layer.w' has no data"),
    (_external, "weight 'layer.w': data file 'data_0': it was not opened with the model"),
    (_set("graph.parameter.0.raw_data", b"\0" * 7), "needs 8 bytes, the file holds 7"),
    (_set("graph.parameter.0.compression_type", 1), "stored compressed"),
    (_set("graph.input.0.tensor.0.data_type", 99), "element type 99"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), WRONG, ids=[w for _, w in WRONG])
def test_a_file_with_one_thing_wrong_is_refused_in_words(change: Change, words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read(changed(change))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"main:layer.w", b"REF::Add:0", b"Muls", b"inner", b"Default/add", b"image", b"author",
             b"2.10.0", b"main:x"]
)  # fmt: skip
def test_a_text_that_is_no_utf8_is_refused(text: bytes) -> None:
    data = encode(small())
    spoilt = data.replace(text, text[:-1] + b"\xff")
    assert spoilt != data
    with pytest.raises(ModelFileError, match=r"the text b'.*' in the file is not valid UTF-8"):
        read(memoryview(spoilt))


def test_messages_nested_without_end_are_refused() -> None:
    """A graph's node's attribute's value's value ...: protobuf itself stops at its own limit."""
    inner = b""
    for _ in range(2000):
        inner = b"\x8a\x01" + _varint(len(inner)) + inner
    node = b"\x2a" + _varint(len(inner)) + inner
    graph = b"\x0a" + _varint(len(node)) + node
    data = b"\x3a" + _varint(len(graph)) + graph
    with pytest.raises(ModelFileError, match="protobuf"):
        read(memoryview(data))


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


# --- paths ----------------------------------------------------------------------------------------


def test_an_empty_file_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "empty.mindir"
    path.touch()
    with pytest.raises(
        ModelFileError, match=r"empty\.mindir' cannot be loaded as MindIR: the file"
    ):
        read_file(path)


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"cannot read .*gone\.mindir': No such file"
    ) as caught:
        read_file(tmp_path / "gone.mindir")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"cannot read .*: it is a directory, wanted a plain file"
    ):
        read_file(tmp_path)


@pytest.mark.parametrize("path", sorted(DATA.glob("nets/i*.mindir")), ids=lambda p: p.stem)
def test_real_files_read(path: Path) -> None:
    found = read_file(path)
    assert found.producer == "MindSpore"
    assert found.graph.nodes or found.graph.inputs
