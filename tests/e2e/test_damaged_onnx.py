"""ONNX files that keep to the rules of operators and make no sense otherwise: always our error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid
from onnx.helper import make_tensor_value_info as info

import mindspore_lite as mslite
from mindspore_lite.engines.prepare.variable import KEY as VARIABLE
from mindspore_lite.engines.sessions.io_types import KEY as BORDER
from mindspore_lite.errors import EngineError, ModelFileError

ENGINES = ["onnxruntime", "openvino", "torch"]
FLOAT, INT16, BFLOAT16 = (getattr(onnx.TensorProto, n) for n in ("FLOAT", "INT16", "BFLOAT16"))


def content(nodes: Sequence[onnx.NodeProto], kind: int = FLOAT, **metadata: str) -> bytes:
    """A file that makes y of x by these nodes."""
    graph = make_graph(nodes, "g", [info("x", kind, [2])], [info("y", kind, None)])
    made = make_model(graph, ir_version=10, opset_imports=[make_opsetid("", 21)])
    onnx.helper.set_model_props(made, metadata)
    return made.SerializeToString()


def built(data: bytes, engine: str) -> mslite.Model:
    pytest.importorskip(engine)
    model = mslite.Model()
    config = {"common_context": {"engine": engine}}
    model.build_from_buffer(data, model_type=mslite.ModelType.ONNX, config_dict=config)
    return model


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [99, -1, 2**40])
def test_a_number_that_is_no_type_is_an_error_of_ours(number: int, engine: str) -> None:
    nodes = [make_node("Cast", ["x"], ["c"], to=number), make_node("Abs", ["c"], ["y"])]
    with pytest.raises(ModelFileError, match=f"'to' is {number}, which is the number of no type"):
        built(content(nodes, INT16), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text", ["", "null", "{", "7", '[["w", [], "float32", [2], 0]]', "[" * 9999]
)
def test_notes_about_weights_that_a_file_brings_are_not_believed(text: str, engine: str) -> None:
    with built(content([make_node("Relu", ["x"], ["y"])], **{VARIABLE: text}), engine) as model:
        (found,) = model.predict([np.array([-1, 2], np.float32)])
        np.testing.assert_array_equal(found.get_data_to_numpy(), [0, 2])
        with pytest.raises(EngineError, match="no weight of this model may change"):
            model.update_weights([[mslite.Tensor(np.zeros(2, np.float32))]])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [FLOAT, BFLOAT16], ids=["float", "bfloat16"])
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"inputs": {"x": "complex64"}, "outputs": {}}', "[" * 9999]
)
def test_notes_about_types_that_a_file_brings_are_not_believed(
    text: str, kind: int, engine: str
) -> None:
    data = content([make_node("Relu", ["x"], ["y"])], kind, **{BORDER: text})
    with built(data, engine) as model:
        (x,) = model.get_inputs()
        x.set_data_from_numpy(
            np.array([-1, 2], np.float32 if kind == FLOAT else ml_dtypes.bfloat16)
        )
        (found,) = model.predict([x])
        np.testing.assert_array_equal(found.get_data_to_numpy().astype(np.float32), [0, 2])


@pytest.mark.parametrize("text", ["hello", "[1]", "[" * 9999, ""])
def test_user_info_that_is_no_object_is_none(text: str) -> None:
    data = content([make_node("Relu", ["x"], ["y"])], user_info=text)
    with built(data, "onnxruntime") as model:
        assert model.get_model_info("user_info") == ""


def test_an_output_that_the_engine_leaves_empty_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with built(content([make_node("Relu", ["x"], ["y"])]), "onnxruntime") as model:
        assert model._service is not None
        session: Any = model._service.built.session
        monkeypatch.setattr(session, "_native", session._native._replace(run=lambda *_: [None]))
        with pytest.raises(EngineError, match=r"the outputs \['y'\] were not computed"):
            model.predict([np.zeros(2, np.float32)])


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_in_another_order_are_sorted_before_types_are_followed(engine: str) -> None:
    nodes = [make_node("Max", ["b", "x"], ["y"]), make_node("Abs", ["x"], ["b"])]
    with built(content(nodes, INT16), engine) as model:
        (found,) = model.predict([np.array([-3, 2], np.int16)])
        np.testing.assert_array_equal(found.get_data_to_numpy(), [3, 2])
