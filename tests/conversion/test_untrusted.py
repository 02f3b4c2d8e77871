"""ONNX files that were made to do harm: each is converted or refused, soon and in little memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import mindspore_lite as mslite
from mindspore_lite.conversion.convert import Report, convert
from mindspore_lite.conversion.job import Job
from mindspore_lite.errors import LiteError, ModelFileError

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def _converted(
    folder: Path,
    *nodes: NodeProto,
    opset: int = 18,
    functions: Sequence[onnx.FunctionProto] = (),
    **weights: object,
) -> Report:
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    made = helper.make_model(
        helper.make_graph(list(nodes), "g", [X], [Y], held),
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("own", 1)],
        functions=list(functions),
        ir_version=8,
    )
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    return convert(Job(model=folder / "net.onnx", output=folder / "net.mindir"))


def _node(op_type: str, inputs: Sequence[str], output: str = "y", **more: object) -> NodeProto:
    return helper.make_node(op_type, inputs, [output], **more)


IMAGE = np.ones((1, 1, 2, 2), np.float32)
HUGE: dict[str, tuple[NodeProto, dict[str, object]]] = {
    "Expand": (_node("Expand", ["a", "s"]), {"a": np.float32([1]), "s": [10**6, 10**6]}),
    "ConstantOfShape": (_node("ConstantOfShape", ["s"]), {"s": [10**6, 10**6]}),
    "Tile": (_node("Tile", ["a", "s"]), {"a": np.float32([1]), "s": [10**12]}),
    "Range": (_node("Range", ["a", "b", "c"]), {"a": 0, "b": 10**12, "c": 1}),
    "Pad": (_node("Pad", ["a", "s"]), {"a": np.float32([1]), "s": [10**12, 0]}),
    "OneHot": (
        _node("OneHot", ["a", "d", "v"]), {"a": [1, 2], "d": 2**40, "v": np.float32([0, 1])}
    ),
    "Resize to": (_node("Resize", ["a", "", "", "s"]), {"a": IMAGE, "s": [1, 1, 2**40, 2**40]}),
    "Resize by": (
        _node("Resize", ["a", "", "s"]), {"a": IMAGE, "s": np.float32([1, 1, 1e30, 1e30])}
    ),
    "Unsqueeze": (
        _node("Unsqueeze", ["a", "s"]), {"a": np.float32([1]), "s": np.arange(10**4)}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_what_would_be_huge_is_not_computed(tmp_path: Path, name: str) -> None:
    node, weights = HUGE[name]
    assert _converted(tmp_path, node, **weights).written_bytes < 1 << 20


def test_a_state_of_zeros_may_be_of_any_size(tmp_path: Path) -> None:
    node = helper.make_node("LSTM", ["a", "w", "r"], ["y"], hidden_size=2**30)
    weights = {name: np.ones(shape, np.float32) for name, shape in
               {"a": (1, 1, 1), "w": (1, 4, 1), "r": (1, 4, 1)}.items()}  # fmt: skip
    assert _converted(tmp_path, node, **weights).written_bytes < 1 << 20


def test_constants_that_double_are_not_written_down(tmp_path: Path) -> None:
    names = ["a", *(f"k{i}" for i in range(59)), "y"]
    nodes = [_node("Concat", [a, a], b, axis=0) for a, b in pairwise(names)]
    report = _converted(tmp_path, *nodes, a=np.float32([1, 2]))
    assert report.written_bytes < 4 << 20


def _calling(name: str, *called: str) -> onnx.FunctionProto:
    steps = ["a", *(f"t{i}" for i in range(len(called) - 1)), "b"]
    nodes = [
        _node(op, [steps[i]], steps[i + 1], domain="own" if op != "Neg" else "")
        for i, op in enumerate(called)
    ]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, imports)


def test_functions_that_call_others_twice_are_counted_before(tmp_path: Path) -> None:
    functions = [_calling(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(40)]
    with pytest.raises(ModelFileError, match="more than 100000 nodes once inlined"):
        _converted(
            tmp_path,
            _node("f0", ["x"], domain="own"),
            functions=[*functions, _calling("f40", "Neg")],
        )


def test_functions_that_call_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"functions cannot be inlined: .*cycle"):
        _converted(
            tmp_path,
            _node("f", ["x"], domain="own"),
            functions=[_calling("f", "g"), _calling("g", "f")],
        )


MISUSED: dict[str, tuple[NodeProto, str]] = {
    "too few inputs": (_node("Add", ["x"]), "it has 1 inputs, wanted 2 to 2"),
    "too many inputs": (_node("Neg", ["x", "x"]), "it has 2 inputs, wanted 1 to 1"),
    "too many outputs": (
        helper.make_node("Neg", ["x"], ["y", "z"]), "it has 2 outputs, wanted 1 to 1"
    ),
    "no body": (_node("Loop", ["", "", "x"]), "it lacks the attribute 'body'"),
    "no branch": (_node("If", ["x"]), "it lacks the attribute"),
    "a text as a number": (
        _node("Cast", ["x"], to="float"), "its attribute 'to' is STRING, wanted INT"
    ),
    "a name without end": (_node("N" * 10**6, ["x"]), "no such operator"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSED)
def test_a_node_that_is_not_as_its_operator_wants_it_is_named(tmp_path: Path, name: str) -> None:
    node, words = MISUSED[name]
    with pytest.raises(ModelFileError) as caught:
        _converted(tmp_path, node)
    assert "is no valid ONNX model: node 'y'" in str(caught.value)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_node_whose_sizes_contradict_each_other_is_left_to_the_engine(tmp_path: Path) -> None:
    node = _node("Conv", ["a", "w"], name="odd", pads=[1, 1, 1])
    report = _converted(tmp_path, node, a=IMAGE, w=IMAGE)
    assert report.custom == {"Conv: unforeseen inputs or attributes (ValueError)": ["odd"]}
    with pytest.raises(LiteError, match="odd"):
        mslite.Model().build_from_file(str(report.files[0]), mslite.ModelType.MINDIR)


def _external(folder: Path, kind: int, dims: list[int], **place: object) -> None:
    weight = onnx.TensorProto(
        name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": "w.bin", **place}.items():
        weight.external_data.add(key=key, value=str(value))
    nodes = [_node("DequantizeLinear", ["w", "s"])]
    scale = numpy_helper.from_array(np.float32(1), "s")
    made = helper.make_model(
        helper.make_graph(nodes, "g", [X], [Y], [weight, scale]),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    (folder / "w.bin").write_bytes(bytes(64))
    (folder / "net.onnx").write_bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("kind", "place", "words"),
    [
        (TensorProto.INT8, {"offset": "-4"}, "external data of offset '-4', wanted a whole number"),
        (TensorProto.INT8, {"length": "4k"}, "external data of length '4k', wanted a whole number"),
        (TensorProto.INT8, {"offset": "9" * 30}, "wanted a whole number"),
        (TensorProto.INT8, {"offset": str(2**62)}, "of a data file of 64 bytes"),
        (TensorProto.STRING, {}, "holds texts, which no external data can"),
    ],
)
def test_a_place_that_makes_no_sense_is_told(
    tmp_path: Path, kind: int, place: dict[str, str], words: str
) -> None:
    _external(tmp_path, kind, [4], **place)
    with pytest.raises(ModelFileError, match=words):
        convert(Job(model=tmp_path / "net.onnx", output=tmp_path / "net.mindir"))


def test_a_weight_of_four_bits_may_lie_beside_the_model(tmp_path: Path) -> None:
    _external(tmp_path, TensorProto.INT4, [4])
    report = convert(Job(model=tmp_path / "net.onnx", output=tmp_path / "net.mindir"))
    assert report.after["Custom"] == 2  # the weight, and what makes numbers of it


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[: len(data) // 2], lambda data: data[::-1], lambda data: b"\xff" * 100],
    ids=["cut off", "backwards", "noise"],
)
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, damage: Damage) -> None:
    _external(tmp_path, TensorProto.INT8, [4])
    path = tmp_path / "net.onnx"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelFileError, match=r"net\.onnx"):
        convert(Job(model=path, output=tmp_path / "net.mindir"))
