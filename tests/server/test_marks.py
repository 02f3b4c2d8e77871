"""marks.py: what happened to models, within bounds."""

from __future__ import annotations

from mindspore_lite.server.marks import Marks


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_marks_come_back_the_oldest_first() -> None:
    clock = Clock()
    marks = Marks(clock, clock)
    marks.add("a", "1", "load")
    clock.now_s += 1
    marks.add("a", "1", "rejected", "queue_full")
    clock.now_s += 1
    marks.add("a", "1", "unload", "by hand")
    assert [mark["what"] for mark in marks.recent()] == ["load", "rejected", "unload"]
    assert marks.recent()[0] == {
        "time": 100.0, "model": "a", "version": "1", "what": "load", "text": "", "count": 1,
    }  # fmt: skip


def test_a_flood_of_rejections_is_one_mark_a_second_and_hides_no_load() -> None:
    clock = Clock()
    marks = Marks(clock, clock)
    marks.add("a", "1", "load")
    for _ in range(3):
        for _ in range(1000):
            marks.add("a", "1", "rejected")
        clock.now_s += 1
    counts = [(mark["what"], mark["count"]) for mark in marks.recent()]
    assert counts == [("load", 1)] + [("rejected", 1000)] * 3


def test_memory_is_bounded() -> None:
    marks = Marks()
    for number in range(5000):
        marks.add(f"m{number}", "1", "load", "x" * 10_000)
        marks.add(f"m{number}", "1", "deadline")
        marks.add(f"m{number}", "1", "weights")
    assert len(marks.recent()) == 512
    assert max(len(mark["text"]) for mark in marks.recent()) == 300


def test_the_last_update_of_weights_is_known() -> None:
    clock = Clock()
    marks = Marks(clock, clock)
    assert marks.weights_updated("a", "1") == 0.0
    marks.add("a", "1", "weights")
    clock.now_s = 200.0
    marks.add("a", "1", "weights")
    assert marks.weights_updated("a", "1") == 200.0
    assert marks.weights_updated("a", "2") == 0.0


def test_other_words_are_counted_too() -> None:
    marks = Marks()
    marks.add("a", "1", "evicted")
    assert marks.counts()["evicted"] == 1 and marks.counts()["load"] == 0


def test_a_load_brings_the_weights_of_the_file() -> None:
    marks = Marks()
    for version in ("1", "2"):
        marks.add("m", version, "weights")
    marks.add("m", "1", "load")
    assert marks.weights_updated("m", "1") == 0.0 < marks.weights_updated("m", "2")
