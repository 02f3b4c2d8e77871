"""What engine=auto takes: remembered, recalled, and forgotten where it makes no sense."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.snapshots import snapshot

from mindspore_lite.engines import choice
from mindspore_lite.engines.base import ModelSource
from mindspore_lite.engines.choice import Choice, Evidence, recall, remember

CHOICE = Choice("openvino", workers=2, threads=1, max_batch_rows=8, max_batch_wait_us=100)
ENOUGH = Evidence(requests=1000, rounds=7, gain=1.2)
NOTE = {"choice": asdict(CHOICE), "evidence": asdict(ENOUGH)}


def note(place: Path) -> Path:
    (found,) = (place / "choices").iterdir()
    return found


def test_what_is_remembered_is_recalled(dense: Any) -> None:
    assert recall(dense.source()) is None
    assert remember(dense.source(), CHOICE, ENOUGH)
    assert recall(dense.source()) == CHOICE
    assert remember(dense.source(), Choice("onnxruntime"), ENOUGH)
    assert recall(dense.source("with other input shapes")) == Choice("onnxruntime")


def test_another_model_has_none(make_dense: Any) -> None:
    assert remember(make_dense(1).source(), CHOICE, ENOUGH)
    assert recall(make_dense(2).source()) is None


def test_another_machine_has_none(dense: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert remember(dense.source(), CHOICE, ENOUGH)
    monkeypatch.setattr(choice, "_machine", lambda: "a machine of 3 cores")
    assert recall(dense.source()) is None


def test_a_machine_is_known_by_its_cpu_and_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("processor: 0\nmodel name\t: Some CPU @ 2 GHz\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 5})
    assert choice._machine(tmp_path) == "Some CPU @ 2 GHz, 2 cores"
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert choice._machine(tmp_path / "none") == "riscv64, 2 cores"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"engine": "openvino"}',
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "engine": "tvm"}}),
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "engine": ["torch"]}}),
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "workers": -1}}),
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "workers": True}}),
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "threads": 10**6}}),
        json.dumps({**NOTE, "choice": {**asdict(CHOICE), "more": 1}}),
        json.dumps(asdict(CHOICE)),  # as earlier editions kept it, whatever it rested on
        json.dumps({**NOTE, "evidence": {**asdict(ENOUGH), "requests": 6}}),
        json.dumps({**NOTE, "evidence": {**asdict(ENOUGH), "rounds": 1}}),
        json.dumps({**NOTE, "evidence": {**asdict(ENOUGH), "gain": 1.0}}),
        json.dumps({**NOTE, "evidence": {**asdict(ENOUGH), "gain": "much"}}),
        json.dumps({**NOTE, "evidence": {**asdict(ENOUGH), "requests": True}}),
        json.dumps({**NOTE, "evidence": {"requests": 1000}}),
        json.dumps({**NOTE, "evidence": 7}),
        "\\xff",
    ],
)
def test_a_damaged_note_counts_as_none(text: str, dense: Any, cache_place: Path) -> None:
    assert remember(dense.source(), CHOICE, ENOUGH)
    note(cache_place).write_bytes(text.encode("latin-1"))
    assert recall(dense.source()) is None


def test_without_a_cache_nothing_is_kept(dense: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    assert not remember(dense.source(), CHOICE, ENOUGH)
    assert recall(dense.source()) is None


def test_a_model_that_nothing_tells_from_others_has_none() -> None:
    nameless = ModelSource(snapshot(), "", lambda: pytest.fail("it was translated"), storable=False)
    assert not remember(nameless, CHOICE, ENOUGH)
    assert recall(nameless) is None


@pytest.mark.parametrize("wrong", [Choice("tvm"), Choice("torch", workers=-1)])
def test_what_is_no_choice_is_refused(wrong: Choice, dense: Any) -> None:
    with pytest.raises(ValueError, match="is no choice, wanted an engine of"):
        remember(dense.source(), wrong, ENOUGH)


def test_the_oldest_notes_go(
    make_dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_MOST_NOTES", 2)
    for seed in range(4):
        assert remember(make_dense(seed).source(), CHOICE, ENOUGH)
    assert len(list((cache_place / "choices").iterdir())) == 2
    assert recall(make_dense(3).source()) == CHOICE


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence(6, 7, 2.0), "6 requests in 7 rounds say too little, wanted 100 in 5 or more"),
        (Evidence(1000, 1, 2.0), "1000 requests in 1 rounds"),
        (Evidence(1000, 7, 0.98), r"no better than the automatic settings \(gain 0.98\)"),
        (Evidence(1000, 7, float("nan")), "no better than the automatic settings"),
    ],
)
def test_too_little_evidence_is_refused(evidence: Evidence, words: str, dense: Any) -> None:
    with pytest.raises(ValueError, match=words):
        remember(dense.source(), CHOICE, evidence)
    assert recall(dense.source()) is None


def test_the_automatic_settings_themselves_need_no_gain(dense: Any) -> None:
    assert remember(dense.source(), Choice("onnxruntime"), Evidence(100, 5, None))
    assert recall(dense.source()) == Choice("onnxruntime")
