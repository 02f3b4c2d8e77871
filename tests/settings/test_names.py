"""settings/names.py: slips of the pen are errors, what has no effect is listed."""

from __future__ import annotations

import logging

import pytest
from support.settings import spec_of

from mindspore_lite.errors import EngineError
from mindspore_lite.settings.table import ORIGINAL_KEYS, ORIGINAL_SECTIONS


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"comon_context": {"engine": "torch"}}, r"no section \[comon_context\]; .*\[common_con"),
        ({"Parallel": {"workers_num": "1"}}, r"no section \[Parallel\]; did you mean \[parallel\]"),
        ({"common_context": {"enigne": "torch"}}, "has no key 'enigne', .*did you mean 'engine'"),
        ({"common_context": {"Engine": "torch"}}, "did you mean 'engine'"),
        ({"parallel": {"worker_num": "1"}}, "did you mean 'workers_num'"),
        ({"common_context": {"worker_num": "1"}}, r"'workers_num' belongs into \[parallel\]"),
        ({"parallel": {"zzz": "1"}}, "has no key 'zzz', wanted one of device_ids, workers_num, t"),
        ({"batching": {"queue_size": "1"}}, r"'queue_size', .*; it belongs into \[parallel\]"),
        ({"gpu_context": {"engine": "torch"}}, r"'engine', .*; it belongs into \[common_context\]"),
        ({"ascend_context": {"variable_weights": "a"}}, "did you mean 'variable_weights_"),
        ({"model_File": {"mindir": "a"}}, r"\[model_file\] has no key 'mindir', .*'mindir_path'"),
    ],
)
def test_a_slip_of_the_pen_names_what_was_meant(sections: object, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        spec_of(None, sections)


def test_what_the_original_reads_is_accepted_listed_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sections = {name: {key: "1" for key in keys} for name, keys in ORIGINAL_KEYS.items()}
    sections |= {name: {"any": "1"} for name in ORIGINAL_SECTIONS}
    sections |= {"of_a_program": {"a": "b"}, "a": {}}
    with caplog.at_level(logging.DEBUG, "mindspore_lite"):
        found = spec_of(None, sections)
    assert len(found.without_effect) == sum(map(len, sections.values()))
    assert "[ascend_context] plugin_custom_ops" in found.without_effect
    (record,) = caplog.records
    assert "[ge_graph_options] any" in record.getMessage()
    assert found == spec_of()


def test_a_key_of_a_compiler_that_resembles_none_of_ours_passes() -> None:
    found = spec_of(None, {"ascend_context": {"ge.exec.dynamicInput": "1"}})
    assert found.without_effect == ("[ascend_context] ge.exec.dynamicInput",)


def test_many_unknown_names_do_not_take_long_to_compare() -> None:
    sections = {f"zz{number}": {"k": "v"} for number in range(20_000)}
    assert len(spec_of(None, sections).without_effect) == 20_000
