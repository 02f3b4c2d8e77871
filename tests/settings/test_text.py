"""settings/text.py: a Context and a Spec as texts, and back."""

from __future__ import annotations

import pytest
from support.settings import spec_of

from mindspore_lite.context import Context
from mindspore_lite.settings.text import from_map, request_of, spec_text, to_map

TEXTS = {
    "target": "gpu,cpu",
    "cpu.thread_num": "4",
    "cpu.thread_affinity_core_list": "0,1",
    "parallel.timeout_s": "2.5",
    "parallel.warm_up": "false",
    "parallel.device_ids": "1",
}


def test_a_context_comes_back_as_it_went() -> None:
    found = from_map(TEXTS)
    assert (found.target, found.cpu.thread_affinity_core_list) == (["gpu", "cpu"], [0, 1])
    assert (found.parallel.timeout_s, found.parallel.warm_up) == (2.5, False)
    assert to_map(found) == TEXTS
    assert to_map(Context()) == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("cpu.threads", "1", "there is no setting 'cpu.threads', wanted one of target, group_inf"),
        ("cpu.thread_num", "many", "setting 'cpu.thread_num' is 'many', wanted a number"),
        ("parallel.warm_up", "1", "'parallel.warm_up' is '1', wanted true or false"),
        ("parallel.device_ids", "a", "is 'a', wanted numbers joined by commas"),
        ("parallel.queue_size", "0", "queue_size must be a positive int"),
    ],
)
def test_a_text_that_means_nothing_is_refused(name: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_map({name: text})


def test_the_spec_of_another_process_is_the_same() -> None:
    made = from_map(TEXTS)
    sections = {"gpu_context": {"tuning": "full"}, "parallel": {"queue_size": "3"}}
    spec = spec_of(made, sections)
    settings, config = request_of(spec)
    assert (settings, config) == (TEXTS, sections)
    assert spec_of(from_map(settings), config) == spec
    settings, _ = request_of(spec, without=("parallel.timeout_s", "cpu.thread_num"))
    assert settings.keys() == TEXTS.keys() - {"parallel.timeout_s", "cpu.thread_num"}


def test_a_line_of_the_text_is_one_setting() -> None:
    sections = {"ascend_context": {"variable_weights_lines": "a\nb,/node"}}
    assert spec_text(spec_of(None, sections)) == (
        "ascend_context.variable_weights_lines=a\\nb,/node\n"
    )
