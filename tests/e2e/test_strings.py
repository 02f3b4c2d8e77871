"""A network whose inputs or outputs are strings is refused: DataType has no name for them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from support.models import ONNX

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.inspection.examine import examine

GRAPHS = {  # the first is Triton's example simple_string, with one output
    "input 'INPUT0'": """graph (string[N,4] INPUT0, string[N,4] INPUT1) => (string[N,4] OUTPUT0) {
        a = Cast<to=6>(INPUT0)  b = Cast<to=6>(INPUT1)
        c = Add(a, b)  OUTPUT0 = Cast<to=8>(c) }""",
    "output 'y'": "graph (float[N,4] x) => (string[N,4] y) { y = Cast<to=8>(x) }",
}


def saved(path: Path, graph: str) -> Path:
    head = '<ir_version: 8, opset_import: ["" : 17]>\n'
    onnx.save_model(onnx.parser.parse_model(head + graph), path)
    return path


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "torch"])
@pytest.mark.parametrize("end", GRAPHS)
def test_a_build_is_refused(tmp_path: Path, end: str, engine: str) -> None:
    pytest.importorskip(engine)
    path = saved(tmp_path / "net.onnx", GRAPHS[end])
    settings = {"common_context": {"engine": engine}}
    with pytest.raises(EngineError, match=f"{end} holds strings, and tensors hold numbers only"):
        mslite.Model().build_from_file(str(path), ONNX, config_dict=settings)


@pytest.mark.parametrize("end", GRAPHS)
def test_a_conversion_is_refused(tmp_path: Path, end: str) -> None:
    path = saved(tmp_path / "net.onnx", GRAPHS[end])
    with pytest.raises(LiteError, match=f"{end} holds strings"):
        mslite.Converter().convert(mslite.FmkType.ONNX, str(path), str(tmp_path / "out"))
    assert not (tmp_path / "out.mindir").exists()


@pytest.mark.parametrize("end", GRAPHS)
def test_inspect_says_that_it_cannot_run(tmp_path: Path, end: str) -> None:
    facts = examine(saved(tmp_path / "net.onnx", GRAPHS[end])).facts
    assert f"{end} holds strings" in facts.problems[0].reason


def test_strings_inside_a_graph_do_not_matter(tmp_path: Path) -> None:
    graph = "graph (int32[2] x) => (int32[2] y) { s = Cast<to=8>(x)  y = Cast<to=6>(s) }"
    with mslite.Model() as model:
        model.build_from_file(str(saved(tmp_path / "net.onnx", graph)), ONNX)
        assert list(model.predict([[1, 2]])[0]) == [1, 2]
