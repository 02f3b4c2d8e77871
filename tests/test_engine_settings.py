"""engine_settings.py: engine, device, precision and tuning as a Context and a configuration say."""

from __future__ import annotations

import os

import pytest

from mindspore_lite.context import Context
from mindspore_lite.engine_settings import EngineSettings, engine_settings
from mindspore_lite.engines.base import Options
from mindspore_lite.errors import EngineError


def context(target: str, **more: object) -> Context:
    """A context for a target; keyword arguments are settings of it."""
    made = Context()
    made.target = [target]
    for name, value in more.items():
        setattr(getattr(made, target.lower()), name, value)
    return made


def test_nothing_said_is_the_usual_engine_on_the_cpu() -> None:
    assert engine_settings(Context(), {}) == EngineSettings("cpu", tuning="off")


def test_a_card_is_tuned_fast_unless_told_otherwise() -> None:
    found = engine_settings(context("GPU", device_id=3), {})
    assert found == EngineSettings("gpu", kind="cuda", number=3)
    assert found.on_card


def test_all_keys_of_a_section_are_read() -> None:
    section = {
        "precision_mode": "preferred_bf16",
        "allow_tf32": "False",
        "tuning": ' "Full" ',
        "batch_buckets": "8, 1,4,4",
        "opt_dims": "[1]",  # of the original
    }
    found = engine_settings(context("gpu"), {"gpu_context": section})
    assert (found.precision, found.tf32, found.tuning) == ("preferred_bf16", False, "full")
    assert found.batches == (1, 4, 8)


def test_only_the_section_of_the_target_counts() -> None:
    sections = {"gpu_context": {"tuning": "nonsense"}, "ascend_context": {"tuning": "nonsense"}}
    assert engine_settings(Context(), sections).tuning == "off"


@pytest.mark.parametrize(
    ("target", "said", "entry", "wanted"),
    [
        ("gpu", "preferred_fp16", None, "preferred_fp16"),
        ("gpu", "preferred_fp16", "enforce_fp32", "enforce_fp32"),
        ("cpu", "preferred_fp16", None, "preferred_fp16"),
        ("cpu", "enforce_fp32", "preferred_fp16", "preferred_fp16"),
        ("ascend", None, None, "preferred_fp16"),
        ("ascend", "enforce_fp32", None, "enforce_fp32"),
        ("ascend", "enforce_fp16", "preferred_fp32", "enforce_fp32"),
        ("ascend", "enforce_fp32", "preferred_optimal", "preferred_fp16"),
        ("ascend", "enforce_origin", None, "enforce_fp32"),
    ],
)
def test_a_configuration_counts_before_the_context(
    target: str, said: str | None, entry: str | None, wanted: str
) -> None:
    made = context(target, **({"precision_mode": said} if said else {}))
    sections = {f"{target}_context": {"precision_mode": entry}} if entry else {}
    assert engine_settings(made, sections).precision == wanted


@pytest.mark.parametrize(
    ("target", "section", "key", "text", "words"),
    [
        ("cpu", "common_context", "engine", "tvm", "wanted one of onnxruntime, openvino, torch, a"),
        ("cpu", "common_context", "engine", "best", r"\[common_context\] engine is 'best'"),
        ("gpu", "gpu_context", "precision_mode", "fp16", "wanted one of enforce_fp32, preferred_f"),
        ("gpu", "gpu_context", "precision_mode", "enforce_fp16", "'enforce_fp16', wanted"),
        ("ascend", "ascend_context", "precision_mode", "preferred_bf16", "preferred_optimal"),
        ("gpu", "gpu_context", "allow_tf32", "yes", "wanted one of true, false"),
        ("gpu", "gpu_context", "tuning", "max", "wanted one of fast, full, off"),
        ("gpu", "gpu_context", "batch_buckets", "1,x", "such as 1,2,4,8"),
        ("gpu", "gpu_context", "batch_buckets", "0,1", "numbers of 1 to 65536"),
        ("gpu", "gpu_context", "batch_buckets", "1,,2", "'1,,2'"),
        ("gpu", "gpu_context", "batch_buckets", "65537", "65537"),
        ("gpu", "gpu_context", "batch_buckets", ",".join(map(str, range(1, 66))), "up to 64 numb"),
        ("gpu", "gpu_context", "batch_buckets", "9" * 5000, "'9{80}', wanted"),
    ],
)
def test_an_unknown_value_is_an_error(
    target: str, section: str, key: str, text: str, words: str
) -> None:
    with pytest.raises(EngineError, match=words):
        engine_settings(context(target), {section: {key: text}})


def test_bfloat16_on_the_cpu_takes_the_engine_that_can() -> None:
    sections = {"cpu_context": {"precision_mode": "preferred_bf16"}}
    with pytest.raises(EngineError, match=r"takes \[common_context\] engine=openvino or torch"):
        engine_settings(Context(), sections)
    found = engine_settings(Context(), {**sections, "common_context": {"engine": "Torch"}})
    assert (found.engine, found.precision, found.kind) == ("torch", "preferred_bf16", "cpu")


def test_emulated_ascend_computes_as_the_cpu_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    made = context("ascend", device_id=2, precision_mode="enforce_fp16")
    found = engine_settings(made, {"ascend_context": {"provider": "ge"}})
    assert (found.kind, found.precision, found.on_card) == ("cpu", "enforce_fp32", False)
    with pytest.raises(EngineError, match="precision_mode is 'half'"):  # as with real devices
        engine_settings(made, {"ascend_context": {"precision_mode": "half"}})


def test_options_say_where_and_how() -> None:
    settings = EngineSettings(
        "gpu", kind="cuda", number=1, precision="preferred_fp16", tf32=False, batches=(1, 8)
    )
    wanted = Options(precision="preferred_fp16", device="cuda:1", tf32=False, batches=(1, 8))
    assert settings.applied(Options()) == wanted
    assert settings.applied(Options(), 4).device == "cuda:4"
    assert EngineSettings("cpu").applied(Options(threads=3)) == Options(threads=3)


def test_only_onnx_runtime_writes_a_profile() -> None:
    entries = {"profile": "trace.json"}
    found = engine_settings(Context(), {"common_context": entries})
    assert found.profile == os.path.abspath("trace.json")
    assert found.applied(Options()).profile == found.profile
    with pytest.raises(EngineError, match="only ONNX Runtime writes one"):
        engine_settings(Context(), {"common_context": {**entries, "engine": "torch"}})
    with pytest.raises(EngineError, match="only ONNX Runtime writes one"):
        engine_settings(context("gpu"), {"common_context": entries})
