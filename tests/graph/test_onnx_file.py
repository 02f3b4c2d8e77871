"""graph/onnx_file.py: ONNX files are not trusted; their external data stays in their folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import run_graph

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph import onnx_file
from mindspore_lite.graph.source import ModelInput, source_of

W = np.arange(12, dtype=np.float32).reshape(3, 4)
X = np.ones((2, 3), np.float32)


def external(tensor: onnx.TensorProto, location: str, **more: object) -> None:
    """Make a tensor say that its data lies elsewhere."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))


def dense(change: Callable[[onnx.TensorProto], object] | None = None) -> onnx.ModelProto:
    weight = numpy_helper.from_array(W, "w")
    if change is not None:
        change(weight)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def written(folder: Path, made: onnx.ModelProto, name: str = "m.onnx") -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def external_files(path: Path) -> tuple[Path, ...]:
    own, *others = source_of(ModelInput("ONNX", path)).files
    assert own == path
    return tuple(others)


def load_onnx(path: Path, shapes: Any = None) -> ir.Model:
    """As a build does: first the names of the files, then the model."""
    return source_of(ModelInput("ONNX", path), shapes).translate()


# --- good -----------------------------------------------------------------------------------------


def test_a_model_in_one_file_loads(tmp_path: Path) -> None:
    path = written(tmp_path, dense())
    assert external_files(path) == ()
    (got,) = run_graph(load_onnx(path), X)
    np.testing.assert_array_equal(got, X @ W)


@pytest.mark.parametrize("name", ["data.bin", "weights/data.bin", "with space.bin"])
def test_external_data_beside_the_model_loads(tmp_path: Path, name: str) -> None:
    data = tmp_path / name
    data.parent.mkdir(exist_ok=True)
    data.write_bytes(b"\xff" * 64 + W.tobytes())
    path = written(tmp_path, dense(lambda t: external(t, name, offset=64, length=48)))
    assert external_files(path) == (data,)
    (got,) = run_graph(load_onnx(path), X)
    np.testing.assert_array_equal(got, X @ W)


def test_offset_and_length_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())
    path = written(tmp_path, dense(lambda t: external(t, "data")))
    (got,) = run_graph(load_onnx(path), X)
    np.testing.assert_array_equal(got, X @ W)


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(W.tobytes())
    (tmp_path / "link").symlink_to("real")
    load_onnx(written(tmp_path, dense(lambda t: external(t, "link", length=48))))


def test_a_folder_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "data").write_bytes(W.tobytes())
    written(real, dense(lambda t: external(t, "data", length=48)))
    (tmp_path / "link").symlink_to(real)
    load_onnx(tmp_path / "link" / "m.onnx")


def test_a_file_named_twice_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())
    made = dense(lambda t: external(t, "data", length=48))
    made.graph.initializer.add().CopyFrom(made.graph.initializer[0])
    made.graph.initializer[1].name = "w2"
    assert external_files(written(tmp_path, made)) == (tmp_path / "data",)


# --- containment ----------------------------------------------------------------------------------


OUTSIDE = {
    "/etc/passwd": "lies outside the model's folder",
    "../secret": "lies outside the model's folder",
    "inner/../../secret": "lies outside the model's folder",
    "": "lies outside the model's folder",
    "link": "is a link out of the model's folder",
    "folder/secret": "is a link out of the model's folder",
    "gone": "is missing; put it beside the model",
    "inner": "it is a directory, wanted a plain file",
    "loop": "external data",
    "a\0b": "external data",
    "n" * 5000: "external data",
}


@pytest.mark.parametrize("location", OUTSIDE, ids=lambda s: repr(s[:30]))
def test_external_data_that_is_not_a_file_of_the_folder_is_refused(
    tmp_path: Path, location: str
) -> None:
    (tmp_path / "secret").write_bytes(W.tobytes())
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "loop").symlink_to("loop")
    path = written(folder, dense(lambda t: external(t, location, length=48)))
    with pytest.raises(ModelFileError) as caught:
        external_files(path)
    assert OUTSIDE[location] in str(caught.value)
    with pytest.raises(ModelFileError, match="which is not open"):  # the parser opens nothing
        onnx_file.load_onnx(memoryview(path.read_bytes()), {})


BAD_SPANS = {
    "a negative offset": {"offset": -8, "length": 48},
    "an offset beyond the end": {"offset": 8, "length": 48},
    "an offset that overflows": {"offset": 2**63 - 1, "length": 48},
    "a length that is too short": {"offset": 0, "length": 40},
    "a length that is too long": {"offset": 0, "length": 56},
    "a negative length": {"offset": 0, "length": -48},
    "an offset that is no number": {"offset": "x", "length": 48},
}


@pytest.mark.parametrize("why", BAD_SPANS)
def test_a_place_that_is_not_in_the_file_is_refused(tmp_path: Path, why: str) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())
    path = written(tmp_path, dense(lambda t: external(t, "data", **BAD_SPANS[why])))
    with pytest.raises(ModelFileError):
        load_onnx(path)


def test_a_shape_that_needs_more_than_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())

    def change(tensor: onnx.TensorProto) -> None:
        external(tensor, "data")
        tensor.dims[:] = [2**40, 2**10]

    with pytest.raises(ModelFileError, match="of a data file of 48 bytes"):
        load_onnx(written(tmp_path, dense(change)))


def test_external_data_in_an_attribute_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())
    weight = numpy_helper.from_array(W, "w")
    external(weight, "data", length=48)
    made = dense()
    del made.graph.initializer[:]
    made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weight, name="held"))
    with pytest.raises(ModelFileError, match="'w' lies in a data file, but is no weight"):
        load_onnx(written(tmp_path, made))


def test_external_data_in_a_sub_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(W.tobytes())
    weight = numpy_helper.from_array(W, "inner")
    external(weight, "data", length=48)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3, 4])
    branch = helper.make_graph([helper.make_node("Identity", ["inner"], ["o"])], "b", [], [out],
                               [weight])  # fmt: skip
    other = helper.make_graph([helper.make_node("Identity", ["w"], ["o"])], "c", [], [out])
    made = dense()
    made.graph.initializer.append(numpy_helper.from_array(np.array(True), "cond"))
    made.graph.node.append(
        helper.make_node("If", ["cond"], ["z"], then_branch=branch, else_branch=other)
    )
    with pytest.raises(ModelFileError, match="'inner' lies in a data file, but is no weight"):
        load_onnx(written(tmp_path, made))


# --- bad files ------------------------------------------------------------------------------------

GOOD = dense().SerializeToString()


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"plain text, no model\n", b"\x08", GOOD[:-1], GOOD[: len(GOOD) // 2],
     b"\xff" * 50, b"\x08\x0a", b"\x3a\x00", b"\x08\x0a\x3a\x02\x0a\x00"],
    ids=lambda d: repr(d[:12]),
)  # fmt: skip
def test_a_file_that_is_no_model_is_refused_with_its_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"bad\.onnx"):
        load_onnx(path)


@pytest.mark.parametrize("load", [external_files, load_onnx])
def test_a_missing_file_and_a_directory_are_refused(
    tmp_path: Path, load: Callable[[Path], object]
) -> None:
    for path in (tmp_path / "gone.onnx", tmp_path):
        with pytest.raises(ModelFileError):
            load(path)


def test_a_file_beyond_the_limit_of_protobuf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    with open(path, "wb") as file:
        file.truncate(2**31)  # a hole: it takes no room on the disk
    with pytest.raises(ModelFileError, match=r"big\.onnx.* has 2147483648 bytes.*external data"):
        load_onnx(path)


# --- other input shapes ---------------------------------------------------------------------------


def test_input_shapes_replace_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, onnx.shape_inference.infer_shapes(dense()))
    (value,) = load_onnx(path, {"x": (5, 3)}).graph.inputs
    assert list(value.shape) == [5, 3]  # type: ignore[arg-type]
    (free,) = load_onnx(path, {"x": (None, 3)}).graph.inputs
    assert str(free.shape) == "[x_0,3]"


def test_shapes_of_values_are_forgotten_when_inputs_change(tmp_path: Path) -> None:
    path = written(tmp_path, onnx.shape_inference.infer_shapes(dense()))
    assert all(v.shape is None for n in load_onnx(path, {"x": (5, 3)}).graph for v in n.outputs)


def test_an_input_or_weight_that_is_an_output_without_a_shape_keeps_its_own(
    tmp_path: Path,
) -> None:
    made = dense()
    names = [made.graph.input[0].name, made.graph.initializer[0].name]
    for name in names:
        made.graph.output.add().CopyFrom(
            onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        )
    model = load_onnx(written(tmp_path, made))
    found = [value.shape for value in model.graph.outputs if value.name in names]
    assert len(found) == 2
    assert None not in found


def sized(dim: int) -> onnx.ModelProto:
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, dim]) for name in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]))


def test_a_dim_of_minus_one_is_an_open_one(tmp_path: Path) -> None:
    (value,) = load_onnx(written(tmp_path, sized(-1))).graph.inputs
    assert value.shape is not None
    assert value.shape[0] == 2
    assert not isinstance(value.shape[1], int)


def test_another_negative_dim_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"value 'x' has shape .*-2147483647"):
        load_onnx(written(tmp_path, sized(-2147483647)))
