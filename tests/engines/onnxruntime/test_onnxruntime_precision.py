"""The CPU engine and precision: what is asked of ONNX Runtime on which CPU, and int8."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.quant_nets import cnn, normal

from mindspore_lite.conversion.full_quant import quantise_fully
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.onnxruntime import engine as engine_module
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine

ENGINE = OnnxRuntimeEngine()
MakeSource = Callable[[onnx.ModelProto], ModelSource]
OLD_CORE = "x86_64 avx avx2 avx512f fma"


@pytest.mark.parametrize(("machine", "wanted"), [("x86_64", ""), ("aarch64", "1")])
def test_preferred_fp16_is_fast_math_on_arm_only(
    machine: str, wanted: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    session = ENGINE.load(dense.source(), Options(precision="preferred_fp16"))
    settings = session._native.session.get_session_options()  # type: ignore[attr-defined]
    name = "mlas.enable_gemm_fastmath_arm64_bfloat16"
    if wanted:
        assert settings.get_session_config_entry(name) == wanted
    else:
        with pytest.raises(RuntimeError):
            settings.get_session_config_entry(name)
        dense.check(session)


@pytest.mark.parametrize(
    ("features", "wanted"),
    [
        (OLD_CORE, True),
        ("x86_64", True),  # nothing is known: right before fast
        (f"{OLD_CORE} avx512_vnni", False),
        (f"{OLD_CORE} avx_vnni", False),
        (f"{OLD_CORE} amx_int8 amx_tile", False),
    ],
)
@pytest.mark.parametrize("precision", ["enforce_fp32", "preferred_fp16"])
def test_weights_become_uint8_only_where_sums_of_int8_overflow(
    precision: str, features: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(engine_module.digest, "cpu_features", lambda: features)
    entries = engine_module._precision_entries(precision)
    assert ("session.x64quantprecision" in entries) == wanted


def test_weights_stay_int8_on_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert engine_module._precision_entries("enforce_fp32") == {}


@pytest.mark.parametrize("vnni", [" avx512_vnni", ""])
def test_int8_is_kept_in_the_cache_and_computes_the_same_without(
    vnni: str, source_of: MakeSource, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [[normal(1, 3, 16, 16, seed=at)] for at in range(3)]
    # ONNX Runtime 1.31 stores a depthwise weight that became uint8, of 1 KiB or more, wrongly
    net = cnn(channels=128)
    quantised = quantise_fully(net, QuantSettings("FULL_QUANT"), samples, lambda _: None).model
    source = source_of(ir.to_proto(quantised))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(engine_module.digest, "cpu_features", lambda: f"{OLD_CORE}{vnni}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sessions = [ENGINE.load(source, Options()) for _ in range(2)]
    if vnni:
        assert not caught
        assert len(list(cache_place.glob("*/model.onnx"))) == 1
    monkeypatch.setenv("MSLITE_CACHE", "off")
    (want,) = ENGINE.load(source, Options()).run(samples[0])
    for session in sessions:
        (got,) = session.run(samples[0])
        np.testing.assert_array_equal(got, want)


def test_unknown_precision_is_refused(dense: Any) -> None:
    with pytest.raises(ValueError, match="'int8', wanted 'enforce_fp32' or 'preferred_fp16'"):
        ENGINE.load(dense.source(), Options(precision="int8"))
