"""variable.py: a model whose weights may change computes what one with fixed weights does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, model, node
from support.onnx_updates import USES, Use, X, dense, some
from support.running import assert_close

from mindspore_lite.engines.base import Options, Reopening, Session
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.alignment import ALIGNMENT
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.source import ModelInput, source_of

Load = Callable[..., Session]


@pytest.fixture(params=["stored", "in memory", "removed"])
def load(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, cache_place: Path
) -> Load:
    """Opens ONNX bytes, from the cache, without one, and after what was compiled was removed."""
    if request.param == "in memory":
        monkeypatch.setenv("MSLITE_CACHE", "off")

    def session(data: bytes, *names: str, **replaced: np.ndarray) -> Session:
        entries = tuple((name, "") for name in names)
        given = ModelInput("ONNX", data=data, variable=entries)
        found = OnnxRuntimeEngine().load(source_of(given), Options())
        if names and (replaced or request.param == "removed"):
            assert isinstance(found, Reopening)
            if request.param == "removed":
                shutil.rmtree(cache_place)
            found = found.opener()(replaced)
        assert found.info.mapped is (request.param == "stored" and not replaced) or not names
        return found

    return session


def feeds(use: Use) -> list[np.ndarray]:
    """Values for x, the one input: numbers below the size of any embedding where they are whole."""
    kind = use.made.graph.input[0].type.tensor_type
    shape = [dim.dim_value for dim in kind.shape.dim]
    values = np.random.default_rng(1).uniform(-1, 1, shape)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return [np.abs(values * 9).astype(dtype) if dtype.kind == "i" else values.astype(dtype)]


@pytest.fixture(params=USES, ids=lambda use: use.what)
def use(request: pytest.FixtureRequest) -> Use:
    found: Use = request.param
    return found


def agree(use: Use, found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for got, want in zip(found, wanted, strict=True):
        if use.exact:
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            assert got.tobytes() == want.tobytes()
        else:
            assert_close(got, want)


def test_with_its_first_weights_it_gives_what_the_fixed_model_gives(use: Use, load: Load) -> None:
    data, x = use.made.SerializeToString(), feeds(use)
    agree(use, load(data, *use.names).run(x), load(data).run(x))


def test_with_other_weights_it_gives_what_a_file_with_those_gives(use: Use, load: Load) -> None:
    data, x, weights = use.made.SerializeToString(), feeds(use), use.changed()
    found = load(data, *use.names, **weights).run(x)
    agree(use, found, load(use.with_weights(weights)).run(x))
    first = load(data).run(x)
    assert any(a.tobytes() != b.tobytes() for a, b in zip(found, first, strict=True))


def test_the_weights_are_told_with_their_first_values_whatever_they_are_now(
    use: Use, load: Load
) -> None:
    for replaced in ({}, use.changed()):
        session = load(use.made.SerializeToString(), *use.names, **replaced)
        assert [v.name for v in session.info.variables] == list(use.names)
        for found, first in zip(session.info.variables, use.weights().values(), strict=True):
            assert (found.dtype, found.shape) == (first.dtype, first.shape)
            assert found.first.tobytes() == first.tobytes()
            assert not found.first.flags.writeable


def test_the_inputs_are_those_of_the_fixed_model(load: Load) -> None:
    data = dense().SerializeToString()
    assert load(data, "w", "b").info.inputs == load(data).info.inputs


def test_a_weight_that_decides_a_size_cannot_change(load: Load) -> None:
    reshape = [node("Reshape", ["x", "s"], ["y"])]
    made = model(reshape, [X], ["y"], s=np.array([4, 4], np.int64))
    with pytest.raises(EngineError, match=r"for tensor: s; if a weight that may change decides a "):
        load(made.SerializeToString(), "s")


def test_an_error_of_a_fixed_model_does_not_speak_of_weights_that_change(load: Load) -> None:
    made = model([node("NoSuchOp", ["x", "w"], ["y"])], [X], ["y"], w=some(8, 4))
    for names in ((), ("w",)):
        with pytest.raises(EngineError, match="NoSuchOp") as caught:
            load(made.SerializeToString(), *names)
        assert ("may change" in str(caught.value)) is bool(names)


def test_a_weight_without_numbers_cannot_change(load: Load) -> None:
    join = [node("Concat", ["x", "w"], ["y"], axis=0)]
    made = model(join, [X], ["y"], w=np.zeros((0, 8), np.float32))
    with pytest.raises(EngineError, match="'w': this weight holds no numbers"):
        load(made.SerializeToString(), "w")


# --- how it is stored -----------------------------------------------------------------------------


def test_first_values_lie_aligned_at_the_end_of_the_data_file(cache_place: Path) -> None:
    small, large = some(3, 1), some(64, 64)
    steps = [
        node("MatMul", ["x", "fixed"], ["h"]),
        node("MatMul", ["h", "large"], ["g"]),
        node("Mul", ["g", "small"], ["y"]),
    ]
    ports = [("x", F32, [3, 64])]
    made = model(steps, ports, ["y"], fixed=some(64, 64), small=small, large=large)
    names = (("small", ""), ("large", ""))
    given = ModelInput("ONNX", data=made.SerializeToString(), variable=names)
    session = OnnxRuntimeEngine().load(source_of(given), Options())
    (folder,) = [path for path in cache_place.iterdir() if len(path.name) == 64]
    rows = json.loads(session.info.metadata[variable.KEY])
    data = (folder / artefact.WEIGHTS).read_bytes()
    for (name, _, kind, shape, offset), array in zip(rows, (small, large), strict=True):
        assert name in ("small", "large")
        assert (kind, tuple(shape)) == ("float32", array.shape)
        assert offset % ALIGNMENT == 0
        assert data[offset : offset + array.nbytes] == array.tobytes()
    kept = onnx.load(folder / artefact.MODEL, load_external_data=False)
    assert [i.name for i in kept.graph.input] == ["x"]


def test_which_weights_change_is_part_of_the_key_but_not_their_values(cache_place: Path) -> None:
    data = dense().SerializeToString()

    def folders(*names: str, **replaced: np.ndarray) -> int:
        entries = tuple((name, "") for name in names)
        source = source_of(ModelInput("ONNX", data=data, variable=entries))
        OnnxRuntimeEngine().load(replace(source, replaced=replaced), Options())
        return sum(len(path.name) == 64 for path in cache_place.iterdir())

    assert folders() == 1
    assert folders("w") == 2
    assert folders("w", w=some(8, 4)) == 2
    assert folders("w", "b") == 3


def test_a_stored_model_is_not_translated_again_for_other_weights() -> None:
    translated = []
    source = source_of(ModelInput("ONNX", data=dense().SerializeToString(), variable=(("w", ""),)))

    def translate() -> ir.Model:
        translated.append(1)
        return source.translate()

    for replaced in ({}, {"w": some(8, 4)}, {"w": some(8, 4)}, {}):
        once = replace(source, translate=translate, replaced=replaced)
        OnnxRuntimeEngine().load(once, Options())
    assert len(translated) == 1
