"""Reads a MindIR file into records; anything wrong with the bytes raises ModelFileError."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import attributes, legacy
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.decrypt import Key, encrypted_by
from mindspore_lite.mindir.opened import open_mindir
from mindspore_lite.mindir.realign import realigned
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    GraphRef,
    Input,
    Model,
    Node,
    OtherType,
    Primitive,
    SequenceType,
    Tensor,
    ValueRef,
    local_name,
)
from mindspore_lite.mindir.scan import Span, first_field, split_graph_weights, split_weights
from mindspore_lite.mindir.side_files import SideFiles
from mindspore_lite.mindir.tensors import tensor_type, utf8

MAX_MIND_IR_VERSION = 3  # what MindSpore 2.10 writes


def read_file(path: Path, key: Key | None = None) -> Model:
    """Read a MindIR file and the weights next to it; big weights are views of what was read."""
    try:
        return read(*open_mindir(path, key=key).load())
    except ModelFileError as exc:
        raise exc.prefixed(f"{str(path)!r} cannot be loaded as MindIR: ") from exc.__cause__


def read(data: memoryview, side: SideFiles | None = None, *, is_own: bool = False) -> Model:
    """Read the bytes of a MindIR file; the records keep views into `data` and the side files.

    `is_own` says that nobody else uses `data`: weights are moved in it, to where kernels want them.
    """
    if not len(data):
        raise ModelFileError("the file is empty")
    if encrypted_by(data):
        raise ModelFileError("the file is encrypted; decrypt it first")
    if first_field(data) == (1, 0):
        raise ModelFileError("this looks like an ONNX file; pass ModelType.ONNX")
    skeleton, spans = split_weights(data)
    if is_own and not data.readonly:
        spans = realigned(data, spans)
    try:
        proto = pb.Model.FromString(skeleton)
        return _model(proto, _Weights(data, spans, side or SideFiles()))
    except DecodeError as exc:
        raise ModelFileError("the bytes are no protobuf message; is it a MindIR file?") from exc
    except UnicodeDecodeError as exc:  # maps check their texts, other fields do not: see utf8
        text = bytes(exc.object)
        raise ModelFileError(f"the text {text!r} in the file is not valid UTF-8") from exc


def _model(proto: pb.Model, weights: _Weights) -> Model:
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelFileError("there is no graph inside; is it a MindIR file?")
    if proto.mind_ir_version > MAX_MIND_IR_VERSION:
        raise ModelFileError(
            f"the file has MindIR version {proto.mind_ir_version}, this release reads up to "
            f"{MAX_MIND_IR_VERSION}; export it with an older MindSpore or update mslite"
        )
    if proto.HasField("little_endian") and not proto.little_endian:
        raise ModelFileError(
            "the weights are big-endian; export the model on a little-endian machine"
        )
    primitives = {
        utf8(p.name): Primitive(utf8(p.op_type), attributes.values(p.attribute))
        for p in proto.primitives
    }
    graphs = [proto.graph, *proto.functions]
    names = _Names(primitives, {utf8(g.name) for g in graphs})
    parameters = tuple(weights.read(proto.graph, names))
    main, *functions = [_graph(g, names, parameters if g is proto.graph else ()) for g in graphs]
    names.check_inputs([main, *functions])
    return Model(
        graph=main,
        functions={g.name: g for g in functions},
        producer=utf8(proto.producer_name),
        producer_version=utf8(proto.model_version),
        ir_version=utf8(proto.ir_version),
        mind_ir_version=proto.mind_ir_version,
        # sorted: protobuf has maps in an order of chance
        user_info=dict(sorted((utf8(k), utf8(v)) for k, v in proto.user_info.items())),
    )


class _Names:
    """The one namespace of a file: every primitive, graph, parameter, input and node."""

    def __init__(self, primitives: dict[str, Primitive], graphs: set[str]) -> None:
        self.primitives = primitives
        self.graphs = graphs
        self.values: set[str] = set()

    def define(self, name: str, what: str) -> str:
        if not utf8(name):
            raise ModelFileError(f"a {what} has no name")
        if name in self.values:
            raise ModelFileError(f"the name {name!r} is given twice")
        self.values.add(name)
        return name

    def target(self, op_type: str) -> Primitive | GraphRef | ValueRef:
        """What a node calls: `REF::` names something of this file, else it is a plain operator."""
        if not op_type.startswith("REF::"):
            return Primitive(op_type)
        name = op_type.removeprefix("REF::")
        if name in self.primitives:
            return self.primitives[name]
        if name in self.graphs:
            return GraphRef(name)
        return ValueRef(name)

    def check_inputs(self, graphs: Iterable[Graph]) -> None:
        known = self.values | self.graphs
        for graph in graphs:
            used = [(name, "the graph's output") for name in graph.outputs]
            for node in graph.nodes:
                if isinstance(node, Call):
                    used += [(name, f"node {node.name!r}") for name in node.inputs]
                    if isinstance(node.target, ValueRef):
                        used.append((node.target.name, f"node {node.name!r}"))
            for name, user in used:
                if name not in known:
                    raise ModelFileError(f"{user} uses {name!r}, which the file does not define")


@dataclass(frozen=True)
class _Weights:
    """Where the weights of the main graph lie."""

    data: memoryview
    spans: dict[int, Span]  # big weights inside the file
    side: SideFiles

    def read(self, graph: pb.Graph, names: _Names) -> Iterator[Tensor]:
        for index, proto in enumerate(graph.parameter):
            yield self._one(proto, names, self.data, self.spans.get(index))
        if not graph.parameter:
            for data in self.side.graphs():
                yield from self._older(data, names)

    def _older(self, data: memoryview, names: _Names) -> Iterator[Tensor]:
        """The weights in a side file of the oldest layout."""
        skeleton, spans = split_graph_weights(data)
        for index, proto in enumerate(pb.Graph.FromString(skeleton).parameter):
            yield self._one(proto, names, data, spans.get(index))

    def _one(self, proto: pb.Tensor, names: _Names, data: memoryview, span: Span | None) -> Tensor:
        names.define(proto.name, "weight")
        if span is not None:
            return attributes.quantised(proto, data[span[0] : span[1]])
        if proto.HasField("raw_data") or 0 in proto.dims:
            return attributes.quantised(proto)
        if not proto.HasField("external_data"):
            raise ModelFileError(f"weight {local_name(proto.name)!r} has no data")
        at = proto.external_data
        try:
            found = self.side.weight(utf8(at.location), at.offset, at.length)
        except ModelFileError as exc:
            raise exc.prefixed(f"weight {local_name(proto.name)!r}: ") from exc.__cause__
        return attributes.quantised(proto, found)


def _graph(proto: pb.Graph, names: _Names, parameters: tuple[Tensor, ...]) -> Graph:
    if proto.map_parameter:
        raise ModelFileError("hash-table parameters (MapTensor) cannot be used for inference here")
    if not proto.output:
        raise ModelFileError(f"graph {proto.name!r} has no output")
    return Graph(
        name=proto.name,
        inputs=tuple(_input(i, names) for i in proto.input),
        nodes=tuple(_node(n, names) for n in proto.node),
        outputs=tuple(o.name for o in proto.output),
        parameters=parameters,
        attributes=attributes.values(proto.attribute),
        given_outputs=_given_outputs(proto),
    )


def _given_outputs(proto: pb.Graph) -> tuple[str, ...]:
    names = tuple(utf8(o.tensor[0].name) if o.tensor else "" for o in proto.output)
    return names if all(names) and len(set(names)) == len(names) else ()


def _input(proto: pb.ValueInfo, names: _Names) -> Input:
    names.define(proto.name, "graph input")
    if proto.tensor:
        first = proto.tensor[0]
        return Input(proto.name, tensor_type(first), utf8(first.name))
    if proto.HasField("attr_info"):
        return Input(proto.name, attributes.type_of(proto.attr_info) or OtherType(""))
    if utf8(proto.denotation).startswith(("Tuple", "List")):  # MindSpore 1.6 and older
        return Input(proto.name, SequenceType(()))
    return Input(proto.name, OtherType(proto.denotation))


def _node(proto: pb.Node, names: _Names) -> Node:
    if len(proto.output) != 1:
        raise ModelFileError(f"node {proto.name!r} has {len(proto.output)} outputs, wanted one")
    name = names.define(proto.output[0], "node")
    if utf8(proto.op_type) == "Constant":
        if len(proto.attribute) != 1:
            raise ModelFileError(f"constant {name!r} has {len(proto.attribute)} values, wanted one")
        try:
            return Constant(name, attributes.value(proto.attribute[0]))
        except ModelFileError as exc:
            raise exc.prefixed(f"constant {name!r}: ") from None
    target = names.target(proto.op_type)
    described = next((a for a in proto.attribute if _is_type(a)), None)
    own = [a for a in proto.attribute if not _is_type(a)]
    if own and isinstance(target, Primitive):  # hand-written files put attributes on the node
        target = Primitive(target.op, {**target.attributes, **attributes.values(own)})
    return Call(
        name=name,
        target=target,
        inputs=tuple(proto.input),
        type=attributes.type_of(described) if described is not None else None,
        scope=utf8(proto.domain),
    )


def _is_type(attr: pb.Attribute) -> bool:
    return legacy.is_type(attr) if attr.ref_attr_name else attr.name == "shape"
