"""engines/short_floats.py: the engine that computes in 16 bits; what is said without one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from support.models import DIGITS, MINDIR
from support.quant_nets import mlp

import mindspore_lite as mslite
from mindspore_lite.context import Context
from mindspore_lite.conversion.dynamic_quant import quantise_dynamically
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.engines import choice, short_floats
from mindspore_lite.engines.short_floats import fitted
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.settings.read import Layer
from mindspore_lite.settings.spec import Spec, settle

BFLOAT16 = "avx2 avx512f avx512_bf16"
ROWS = np.random.default_rng(1).random((4, 1, 8, 8), np.float32)
Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Say what CPU there is, and whether OpenVINO is installed."""

    def say(features: str, kind: str = "x86_64", has_openvino: bool = True) -> None:
        monkeypatch.setattr("platform.machine", lambda: kind)
        monkeypatch.setattr(short_floats.digest, "cpu_features", lambda: f"{kind} {features}")
        monkeypatch.setattr(short_floats, "installed", lambda engine: has_openvino)

    return say


def spec(precision: str, engine: str = "", **more: str) -> Spec:
    sections = {
        "cpu_context": {"precision_mode": precision},
        "common_context": {**({"engine": engine} if engine else {}), **more},
    }
    return settle(Context(), [Layer("config", sections)])


def quiet(one: Spec) -> Spec:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fitted(one)


@pytest.mark.parametrize("feature", ["avx512_bf16", "amx_bf16", "avx512_fp16", "amx_fp16"])
@pytest.mark.parametrize("precision", ["preferred_fp16", "preferred_bf16"])
def test_openvino_is_picked_where_it_can(precision: str, feature: str, machine: Machine) -> None:
    machine(feature)
    found = quiet(spec(precision))
    assert (found.engine, found.precision) == ("openvino", precision)
    assert quiet(found) == found


def test_float32_stays_where_it_is(machine: Machine) -> None:
    machine(BFLOAT16)
    assert quiet(spec("enforce_fp32")).engine == ""


@pytest.mark.parametrize(
    ("features", "has_openvino", "more", "words"),
    [
        ("avx2", True, {}, "no instructions for 16 bits, wanted avx512_bf16 or amx_bf16; leave"),
        (BFLOAT16, False, {}, r"not installed; pip install .*openvino.*, or leave precision_mode"),
        (BFLOAT16, True, {"engine": "onnxruntime"}, r"\[common_context\] engine=openvino could"),
        (BFLOAT16, True, {"profile": "p.json"}, r"profile takes ONNX Runtime; leave that out"),
    ],
)
def test_what_cannot_be_met_is_said_once(
    features: str, has_openvino: bool, more: dict[str, str], words: str, machine: Machine
) -> None:
    machine(features, has_openvino=has_openvino)
    with pytest.warns(UserWarning, match=words) as said:
        found = fitted(spec("preferred_fp16", **more))
    assert len(said) == 1
    assert "is 'preferred_fp16', but ONNX Runtime computes in float32" in str(said[0].message)
    assert (found.engine, found.precision) == (more.get("engine", ""), "enforce_fp32")
    assert quiet(found) == found


def test_bfloat16_without_an_engine_stays_an_error(machine: Machine) -> None:
    machine("avx2")
    with pytest.raises(EngineError, match=r"engine=openvino or torch, and none was picked: the C"):
        fitted(spec("preferred_bf16"))


def test_an_engine_by_name_is_kept(machine: Machine) -> None:
    machine("avx2 avx512f")  # which computes in bfloat16 all the same
    assert quiet(spec("preferred_fp16", "openvino")).precision == "preferred_fp16"
    assert quiet(spec("preferred_bf16", "torch")).engine == "torch"
    machine("avx2")
    with pytest.warns(UserWarning, match="OpenVINO computes in float32 here"):
        assert fitted(spec("preferred_fp16", "openvino")).engine == "openvino"


def test_an_engine_that_was_measured_gives_way(machine: Machine) -> None:
    machine(BFLOAT16)
    measured = spec("preferred_fp16", "auto").with_measured(
        {"common_context.engine": "onnxruntime"}
    )
    assert quiet(measured).engine == "openvino"
    machine("avx2")
    with pytest.warns(UserWarning, match="no instructions"):
        assert fitted(measured).engine == "onnxruntime"


def test_arm_has_kernels_in_onnx_runtime(machine: Machine) -> None:
    machine("asimd bf16", "aarch64")
    assert quiet(spec("preferred_fp16")).engine == ""
    machine("asimd", "aarch64")
    with pytest.warns(UserWarning, match="no instructions for 16 bits, wanted bf16"):
        fitted(spec("preferred_fp16"))


# --- models ---


def model_of(*, precision: str = "preferred_fp16") -> mslite.Model:
    model = mslite.Model()
    config = {"cpu_context": {"precision_mode": precision}}
    model.build_from_file(str(DIGITS), MINDIR, config_dict=config)
    return model


def test_a_model_and_a_runner_get_the_engine(machine: Machine) -> None:
    pytest.importorskip("openvino")
    machine(BFLOAT16)
    (want,) = model_of(precision="enforce_fp32").predict([ROWS])
    context = mslite.Context()
    context.cpu.precision_mode = "preferred_fp16"
    with warnings.catch_warnings(), mslite.ModelParallelRunner() as runner:
        warnings.simplefilter("error")
        model = model_of()
        runner.build_from_file(str(DIGITS), context)
        assert runner._usable("")._placed.built.engine.name == "openvino"
        assert model._usable("").built.engine.name == "openvino"
        for one in (model, runner):
            (got,) = one.predict([ROWS])
            np.testing.assert_allclose(got.get_data_to_numpy(), want.get_data_to_numpy(), atol=0.05)


def test_a_group_keeps_the_engine_that_shares(machine: Machine) -> None:
    machine(BFLOAT16)
    model, context = mslite.Model(), mslite.Context()
    context.cpu.precision_mode = "preferred_fp16"
    mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WEIGHT).add_model([model])
    with pytest.warns(
        UserWarning, match=r"ONNX Runtime computes in float32.*engine=openvino could"
    ):
        model.build_from_file(str(DIGITS), MINDIR, context)
    assert model._usable("").built.engine.name == "onnxruntime"


def test_a_model_says_it_once_and_where_it_was_built(machine: Machine) -> None:
    machine("avx2")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model_of()
        context = mslite.Context()
        context.cpu.precision_mode = "preferred_fp16"
        with mslite.ModelParallelRunner() as runner:
            runner.build_from_file(str(DIGITS), context)
    assert [one.filename for one in said] == [__file__] * 2


def test_a_model_that_the_picked_engine_cannot_run_is_computed_in_float32(
    machine: Machine, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    machine(BFLOAT16)
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(proto, tmp_path / "det.onnx")
    context = mslite.Context()
    context.cpu.precision_mode = "preferred_fp16"
    model, runner = mslite.Model(), mslite.ModelParallelRunner()
    x = np.eye(3, dtype=np.float32)[None].repeat(2, 0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.build_from_file(str(tmp_path / "det.onnx"), mslite.ModelType.ONNX, context)
        runner.build_from_file(str(tmp_path / "det.onnx"), context)
    assert [one.filename for one in said] == [__file__] * 2
    assert "onnxruntime computes it in float32" in str(said[0].message)
    for one in (model, runner):
        np.testing.assert_array_equal(one.predict([x])[0].get_data_to_numpy(), [1, 1])
    runner.close()


def test_products_that_are_quantised_at_run_time_stay_where_they_are_fast(
    machine: Machine, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    machine(BFLOAT16)
    net = mlp()
    quantise_dynamically(net, QuantSettings("DYNAMIC_QUANT"))
    ir.save(net, tmp_path / "net.onnx")
    context = mslite.Context()
    context.cpu.precision_mode = "preferred_fp16"
    model = mslite.Model()
    with pytest.warns(UserWarning, match=r"is not for the model; .*DYNAMIC_QUANT.*no fast kernels"):
        model.build_from_file(str(tmp_path / "net.onnx"), mslite.ModelType.ONNX, context)
    assert model._usable("").built.engine.name == "onnxruntime"


def test_a_fallback_is_said_and_other_faults_are_raised(machine: Machine) -> None:
    machine(BFLOAT16)
    given = ModelInput("MINDIR", DIGITS)

    def picky(one: Spec) -> str:
        if one.engine == "openvino":
            raise EngineError("no operator Strange")
        return one.precision

    with pytest.warns(UserWarning, match="openvino, which computes in 16 bits, is not for .*Stran"):
        found, precision = choice.made_by(spec("preferred_fp16"), given, picky)
    assert (found.engine, precision) == ("", "enforce_fp32")
    with pytest.raises(EngineError, match="Strange"):  # by name: no other is tried
        choice.made_by(spec("preferred_fp16", "openvino"), given, picky)

    def broken(one: Spec) -> str:
        raise LiteError(f"broken for {one.engine or 'the usual one'}")

    with pytest.raises(LiteError, match="broken for the usual one"):
        choice.made_by(spec("preferred_fp16"), given, broken)
