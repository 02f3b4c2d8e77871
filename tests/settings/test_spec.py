"""settings/spec.py: what a Context and configurations settle together, and what counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.settings import spec_of

from mindspore_lite.context import Context
from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.engines.base import Options
from mindspore_lite.errors import EngineError
from mindspore_lite.serving.build import applied
from mindspore_lite.settings.read import layers_of, read_layers
from mindspore_lite.settings.spec import settle


def context(target: str, **more: object) -> Context:
    """A context for a target; keyword arguments are settings of it."""
    made = Context()
    made.target = [target]
    for name, value in more.items():
        setattr(getattr(made, target.lower()), name, value)
    return made


def test_nothing_said_is_the_usual_engine_on_the_cpu() -> None:
    found = spec_of()
    assert (found.target, found.engine, found.device_kind) == ("cpu", "", "cpu")
    assert (found.precision, found.tuning, found.allow_tf32) == ("enforce_fp32", "off", True)
    assert {one.source for one in found.settled.values()} == {"default"}


def test_a_card_is_tuned_fast_unless_told_otherwise() -> None:
    found = spec_of(context("GPU", device_id=3), {})
    assert (found.target, found.device_kind, found.device_id) == ("gpu", "cuda", 3)
    assert found.tuning == "fast"
    assert found.on_card


def test_all_keys_of_a_section_are_read() -> None:
    section = {
        "precision_mode": "preferred_bf16",
        "allow_tf32": "False",
        "tuning": ' "Full" ',
        "batch_buckets": "8, 1,4,4",
        "opt_dims": "[1]",  # of the original
    }
    found = spec_of(context("gpu"), {"gpu_context": section})
    assert (found.precision, found.allow_tf32, found.tuning) == ("preferred_bf16", False, "full")
    assert found.batch_buckets == (1, 4, 8)


def test_only_the_section_of_the_target_counts() -> None:
    sections = {"gpu_context": {"tuning": "nonsense"}, "ascend_context": {"tuning": "nonsense"}}
    assert spec_of(Context(), sections).tuning == "off"


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
    if said and entry:
        with pytest.warns(UserWarning, match=f"is '{entry}' and context.*is '{said}'; the first"):
            found = spec_of(made, sections)
    else:
        found = spec_of(made, sections)
    assert found.precision == wanted


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
        spec_of(context(target), {section: {key: text}})


def test_bfloat16_on_the_cpu_takes_the_engine_that_can() -> None:
    sections = {"cpu_context": {"precision_mode": "preferred_bf16"}}
    with pytest.raises(EngineError, match=r"takes \[common_context\] engine=openvino or torch"):
        spec_of(Context(), {**sections, "common_context": {"engine": "onnxruntime"}})
    assert spec_of(Context(), sections).engine == ""  # to be picked
    found = spec_of(Context(), {**sections, "common_context": {"engine": "Torch"}})
    assert (found.engine, found.precision, found.device_kind) == ("torch", "preferred_bf16", "cpu")


def test_emulated_ascend_computes_as_the_cpu_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    made = context("ascend", device_id=2, precision_mode="enforce_fp16")
    found = spec_of(made, {"ascend_context": {"provider": "ge"}})
    assert (found.device_kind, found.precision, found.on_card) == ("cpu", "enforce_fp32", False)
    with pytest.raises(EngineError, match="precision_mode is 'half'"):  # as with real devices
        spec_of(made, {"ascend_context": {"precision_mode": "half"}})


def test_options_say_where_and_how() -> None:
    section = {"precision_mode": "preferred_fp16", "allow_tf32": "false", "batch_buckets": "1,8"}
    spec = spec_of(context("gpu", device_id=1), {"gpu_context": section})
    wanted = Options(precision="preferred_fp16", device="cuda:1", tf32=False, batches=(1, 8))
    assert applied(spec, Options()) == wanted
    assert applied(spec, Options(), 4).device == "cuda:4"
    assert applied(spec_of(), Options(threads=3)) == Options(threads=3, tuning="off")


def test_only_onnx_runtime_writes_a_profile() -> None:
    entries = {"profile": "trace.json"}
    found = spec_of(Context(), {"common_context": entries})
    assert found.profile == os.path.abspath("trace.json")
    assert applied(found, Options()).profile == found.profile
    with pytest.raises(EngineError, match="only ONNX Runtime writes one"):
        spec_of(Context(), {"common_context": {**entries, "engine": "torch"}})
    with pytest.raises(EngineError, match="only ONNX Runtime writes one"):
        spec_of(context("gpu"), {"common_context": entries})


# --- the budget of a build ------------------------------------------------------------------------


def test_the_budget_of_a_build_has_defaults() -> None:
    assert spec_of().budget == spec_of(None, {"build": {}}).budget == DEFAULT


def test_every_key_of_the_budget_is_read() -> None:
    said = {
        "max_nodes": "7", "max_fold_bytes": "2m", "max_seconds": " 9 ", "max_run_seconds": "8",
        "sandbox": "ON",
    }  # fmt: skip
    assert spec_of(None, {"build": said}).budget == Budget(7, 2 << 20, 9, True, 8)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("max_node", "7", "no key 'max_node', wanted one of max_nodes"),
        ("max_nodes", "0", "max_nodes is '0', wanted a number of 1 or more"),
        ("max_seconds", "-1", "max_seconds is '-1'"),
        ("max_fold_bytes", "1T", "may end in K, M or G"),
        ("sandbox", "maybe", "sandbox is 'maybe', wanted on or off"),
    ],
)
def test_what_means_nothing_to_the_budget_is_an_error(key: str, text: str, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        spec_of(None, {"build": {key: text}})


# --- what counts, and where it came from ----------------------------------------------------------


def test_a_setting_says_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "some.ini"
    file.write_text("[parallel]\nqueue_size=5\nwarm_up=off\n[common_context]\nengine=torch\n")
    made = context("cpu", thread_num=2)
    layers = read_layers("build", str(file), {"parallel": {"queue_size": "6"}})
    found = settle(made, layers)
    sources = {name: (one.value, one.source) for name, one in found.settled.items()}
    assert sources["parallel.queue_size"] == (6, "config_dict")
    assert sources["parallel.warm_up"] == (False, f"config file {file}")
    assert sources["common_context.engine"] == ("torch", f"config file {file}")
    assert sources["cpu.thread_num"] == (2, "context")
    assert sources["build.max_nodes"] == (100_000, "default")


def test_the_environment_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    found = spec_of(context("ascend", precision_mode="enforce_fp16"))
    assert found.settled["ascend.precision_mode"].source == "environment"
    assert found.tuning == "off"


def test_the_same_value_in_both_places_is_no_conflict() -> None:
    made = Context()
    made.parallel.queue_size = 7
    assert spec_of(made, {"parallel": {"queue_size": "7"}}).queue_size == 7


def test_a_conflict_names_the_key_both_values_and_which_counts() -> None:
    made = Context()
    made.parallel.queue_size, made.cpu.thread_num = 7, 2
    with pytest.warns(UserWarning) as seen:
        found = settle(made, layers_of({"parallel": {"queue_size": "8", "thread_num": "3"}}))
    assert (found.queue_size, found.thread_num) == (8, 2)
    assert [str(one.message) for one in seen] == [
        "context.cpu.thread_num is 2 and [parallel] thread_num (config_dict) is 3; the first "
        "counts, leave one of them out",
        "[parallel] queue_size (config_dict) is 8 and context.parallel.queue_size is 7; the first "
        "counts, leave one of them out",
    ]
    assert seen[0].filename == __file__


def test_a_dict_that_says_0_counts_before_a_file() -> None:
    layers = [*layers_of({"batching": {"max_batch_rows": "0"}})]
    layers += layers_of({"batching": {"max_batch_rows": "8"}})
    assert settle(None, layers).max_batch_rows == 0


@pytest.mark.parametrize("text", ["1_000", "0x10", "1 s", "-1", "nan", ""])
def test_times_are_numbers_that_other_languages_read_as_well(text: str) -> None:
    with pytest.raises(EngineError, match=r"\[parallel\] timeout_s is .*a number of seconds"):
        spec_of(None, {"parallel": {"timeout_s": text}})
