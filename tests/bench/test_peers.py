from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.models import DIGITS, ONNX

from mindspore_lite.bench import peers
from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.compare import check_alike
from mindspore_lite.bench.peers import Graph, import_library, missing, onnx_of
from mindspore_lite.bench.sides import Ours, Wish
from mindspore_lite.errors import EngineError, EngineUnavailableError

FEED = {"x": np.random.default_rng(0).random((2, 1, 8, 8), np.float32)}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return Graph(DIGITS, onnx_of(DIGITS, "MINDIR", tmp_path_factory.mktemp("onnx")), Wish())


@pytest.mark.parametrize("load", [Load(clients=1), Load(rate=5.0)], ids=str)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_peer_gives_our_answers(graph: Graph, name: str, load: Load) -> None:
    if name in missing((name,)):
        pytest.skip(f"{name} is not installed")
    ours, peer = Ours(DIGITS, Wish(workers=1)), graph.side(name)
    with ours.desk(load, FEED) as desk, peer.desk(load, FEED) as other:
        check_alike({"mslite": desk, name: other}, {})
        answers: list[BaseException | None] = []
        other.submit(answers.append)
    for side in (ours, peer):
        side.close()
    assert answers == [None]
    assert peer.name == name


def test_torch_is_our_own_engine_and_says_so(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(peers, "Ours", lambda *given: made.append(given))
    replace(graph, wish=Wish(workers=2, batch=8)).side("torch")
    assert made == [(DIGITS, Wish(engine="torch", workers=2), "torch")]
    assert "mslite's own engine 'torch'" in peers.NOTES["torch"]


def test_an_onnx_model_is_taken_as_it_is(tmp_path: Path) -> None:
    assert onnx_of(tmp_path / "model.onnx", ONNX.name, tmp_path / "nowhere") == (
        tmp_path / "model.onnx"
    )


def test_peers_that_are_missing_come_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert missing(("openvino",)) == {"openvino": "pip install openvino"}
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(EngineUnavailableError, match=r"openvino cannot be imported .*pip install"):
        import_library("openvino")


def test_a_graph_that_a_peer_cannot_load_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    side = Graph(DIGITS, tmp_path / "bad.onnx", Wish()).side("onnxruntime")
    with (
        pytest.raises(EngineError, match="onnxruntime cannot load this model; leave it") as caught,
        side.desk(Load(clients=1), FEED),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_request_that_a_peer_cannot_run_is_an_error_of_it(graph: Graph) -> None:
    side = graph.side("onnxruntime")
    errors: list[BaseException | None] = []
    with side.desk(Load(rate=1.0), {"x": np.zeros((1, 2), np.float32)}) as desk:
        desk.submit(errors.append)
    side.close()
    assert isinstance(errors[0], EngineError)
