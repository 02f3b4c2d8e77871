"""context.py: defaults, checks, texts, and that what was read cannot change what is set."""

from __future__ import annotations

import copy
import doctest
import pickle
import warnings
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindspore_lite.context import Context
from mindspore_lite.core import attributes as module

PARTS = ("cpu", "gpu", "ascend", "parallel")


def at(context: Context, path: str) -> Any:
    return reduce(getattr, path.split("."), context)


def assign(context: Context, path: str, value: object) -> None:
    owner, _, name = path.rpartition(".")
    setattr(at(context, owner) if owner else context, name, value)


def test_the_example_in_the_docstring_runs() -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(Context, "Context", False, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


DEFAULTS = [
    ("target", ["cpu"]),
    ("group_info_file", ""),
    ("cpu.precision_mode", "enforce_fp32"),
    ("cpu.thread_num", 0),
    ("cpu.inter_op_parallel_num", 0),
    ("cpu.thread_affinity_mode", 0),
    ("cpu.thread_affinity_core_list", []),
    ("gpu.precision_mode", "enforce_fp32"),
    ("gpu.device_id", 0),
    ("gpu.rank_id", 0),
    ("gpu.group_size", 1),
    ("ascend.precision_mode", ""),
    ("ascend.device_id", 0),
    ("ascend.rank_id", 0),
    ("ascend.provider", ""),
    ("parallel.workers_num", 0),
    ("parallel.config_info", {}),
    ("parallel.config_path", ""),
    ("parallel.device_ids", []),
]


@pytest.mark.parametrize(("path", "want"), DEFAULTS)
def test_a_new_context_has_the_documented_defaults(path: str, want: object) -> None:
    found = at(Context(), path)
    assert found == want
    assert type(found) is type(want)


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        ("target", ["cpu"], ["cpu"]),
        ("target", ["gpu"], ["gpu"]),
        ("target", ["ascend"], ["ascend"]),
        ("target", ["Ascend", "CPU"], ["Ascend", "CPU"]),
        ("target", ("gpu", "cpu"), ["gpu", "cpu"]),
        ("target", [], ["cpu"]),
        ("target", (), ["cpu"]),
        ("target", None, ["cpu"]),
        ("group_info_file", "missing.pb", "missing.pb"),
        ("cpu.precision_mode", "preferred_fp16", "preferred_fp16"),
        ("cpu.thread_num", 4, 4),
        ("cpu.thread_num", np.int64(4), 4),
        ("cpu.inter_op_parallel_num", 1, 1),
        ("cpu.thread_affinity_mode", 2, 2),
        ("cpu.thread_affinity_mode", np.uint8(1), 1),
        ("cpu.thread_affinity_core_list", [1, 0], [1, 0]),
        ("cpu.thread_affinity_core_list", (1, np.int32(0)), [1, 0]),
        ("cpu.thread_affinity_core_list", range(2), [0, 1]),
        ("gpu.precision_mode", "preferred_fp16", "preferred_fp16"),
        ("gpu.device_id", 1, 1),
        ("gpu.rank_id", np.int16(3), 3),
        ("ascend.precision_mode", "enforce_fp32", "enforce_fp32"),
        ("ascend.precision_mode", "preferred_fp32", "preferred_fp32"),
        ("ascend.precision_mode", "enforce_fp16", "enforce_fp16"),
        ("ascend.precision_mode", "enforce_origin", "enforce_origin"),
        ("ascend.precision_mode", "preferred_optimal", "preferred_optimal"),
        ("ascend.device_id", 1, 1),
        ("ascend.rank_id", 1, 1),
        ("ascend.provider", "ge", "ge"),
        ("parallel.workers_num", 4, 4),
        (
            "parallel.config_info",
            {"weight": {"weight_path": "x"}},
            {"weight": {"weight_path": "x"}},
        ),
        ("parallel.device_ids", [0, 1], [0, 1]),
        ("parallel.device_ids", np.array([2, 3]), [2, 3]),
    ],
)
def test_a_legal_value_reads_back(path: str, value: object, want: object) -> None:
    context = Context()
    assign(context, path, value)
    found = at(context, path)
    assert found == want
    assert type(found) is type(want)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("target", 1, "target must be list, but got <class 'int'>."),
        ("target", 0, "target must be list"),
        ("target", "", "target must be list"),
        ("target", "cpu", "target must be list"),
        ("target", {}, "target must be list"),
        ("target", [1], "target element must be str, but got <class 'int'> at index 0."),
        ("group_info_file", 1, "group_info_file must be str, but got <class 'int'>."),
        ("cpu.precision_mode", 1, "cpu_precision_mode must be str"),
        ("cpu.thread_num", "1", "cpu_thread_num must be int, but got <class 'str'>."),
        ("cpu.thread_num", True, "cpu_thread_num must be int, but got <class 'bool'>."),
        ("cpu.inter_op_parallel_num", "1", "cpu_inter_op_parallel_num must be int"),
        ("cpu.thread_affinity_mode", "1", "cpu_thread_affinity_mode must be int"),
        ("cpu.thread_affinity_core_list", 2, "cpu_thread_affinity_core_list must be list"),
        (
            "cpu.thread_affinity_core_list",
            ["1", "0"],
            "cpu_thread_affinity_core_list element must be int",
        ),
        ("gpu.precision_mode", 1, "gpu_precision_mode must be str"),
        ("gpu.device_id", "1", "gpu_device_id must be int"),
        ("gpu.rank_id", "1", "gpu_rank_id must be int"),
        ("ascend.precision_mode", 1, "ascend_precision_mode must be str"),
        ("ascend.device_id", "1", "ascend_device_id must be int"),
        ("ascend.rank_id", "1", "ascend_rank_id must be int"),
        ("ascend.provider", 1, "ascend_provider must be str"),
        ("parallel.workers_num", "4", "workers_num must be int"),
        ("parallel.config_info", 1, "config_info must be dict"),
        ("parallel.config_info", {1: {}}, "config_info_key must be str"),
        ("parallel.config_info", {"t": "t"}, "config_info_value must be dict"),
        ("parallel.config_info", {"t": {1: "t"}}, "config_info_value_key must be str"),
        ("parallel.config_info", {"t": {"t": 1}}, "config_info_value_value must be str"),
        ("parallel.config_path", 1, "config_path must be str"),
        ("parallel.device_ids", 1, "device_ids must be list"),
        ("parallel.device_ids", ["1"], "device_ids element must be int"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(path: str, value: object, words: str) -> None:
    assert_refused(TypeError, path, value, words)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("target", ["1"], "target elements must be in ['cpu', 'gpu', 'ascend'], but got '1'"),
        ("target", ["cpu", "npu"], "target elements must be in"),
        (
            "cpu.precision_mode",
            "1",
            "cpu_precision_mode must be in [enforce_fp32, preferred_fp16], but got 1.",
        ),
        ("cpu.thread_num", -1, "cpu_thread_num must be a non-negative int"),
        ("cpu.inter_op_parallel_num", -1, "cpu_inter_op_parallel_num must be a non-negative int"),
        (
            "cpu.thread_affinity_mode",
            3,
            "cpu_thread_affinity_mode must be one of 0 (no binding), 1 (big cores first), 2 (mid",
        ),
        ("cpu.thread_affinity_mode", -1, "but got -1."),
        ("gpu.precision_mode", "1", "gpu_precision_mode must be in"),
        ("gpu.device_id", -1, "gpu_device_id must be a non-negative int"),
        ("gpu.rank_id", -1, "gpu_rank_id must be a non-negative int"),
        ("ascend.precision_mode", "1", "ascend_precision_mode must be in"),
        ("ascend.precision_mode", "", "ascend_precision_mode must be in"),
        ("ascend.device_id", -1, "ascend_device_id must be a non-negative int"),
        ("ascend.rank_id", -1, "ascend_rank_id must be a non-negative int"),
        ("parallel.workers_num", -4, "workers_num must be a non-negative int"),
        ("parallel.config_path", "no/such.cfg", "config_path does not exist: 'no/such.cfg'"),
        ("parallel.device_ids", [0, -1], "device_ids contain a negative number"),
    ],
)
def test_a_value_out_of_range_is_refused(path: str, value: object, words: str) -> None:
    assert_refused(ValueError, path, value, words)


def assert_refused(kind: type[Exception], path: str, value: object, words: str) -> None:
    context = Context()
    before = at(context, path)
    with pytest.raises(kind) as caught:
        assign(context, path, value)
    assert words in str(caught.value)
    assert at(context, path) == before


@pytest.mark.parametrize("path", ["gpu.group_size", "cpu", "gpu", "ascend", "parallel"])
def test_what_is_read_only_raises_attribute_error(path: str) -> None:
    context = Context()
    with pytest.raises(AttributeError):
        assign(context, path, 1)


def test_an_inter_op_number_above_the_thread_number_is_not_the_setters_business() -> None:
    context = Context()
    context.cpu.inter_op_parallel_num = 8
    assert (context.cpu.thread_num, context.cpu.inter_op_parallel_num) == (0, 8)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("target", ["cpu"]),
        ("cpu.thread_affinity_core_list", [1]),
        ("parallel.device_ids", [1]),
    ],
)
def test_lists_are_copied_on_the_way_in_and_out(path: str, value: list[Any]) -> None:
    context = Context()
    want = list(value)
    assign(context, path, value)
    value.append("changed")
    at(context, path).append("changed")
    assert at(context, path) == want


def test_changing_a_default_that_was_read_changes_no_context() -> None:
    Context().target.append("gpu")
    Context().parallel.config_info["a"] = {}
    assert Context().target == ["cpu"]
    assert Context().parallel.config_info == {}


def test_config_info_replaces_and_is_copied_at_every_level() -> None:
    context = Context()
    context.parallel.config_info = {"old": {"k": "v"}}
    given = {"new": {"k": "v"}}
    context.parallel.config_info = given
    given["new"]["k"] = "changed"
    context.parallel.config_info["new"]["k"] = "changed"
    assert context.parallel.config_info == {"new": {"k": "v"}}
    context.parallel.config_info = {}
    assert context.parallel.config_info == {}


def test_an_empty_config_path_clears_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.touch()
    context = Context()
    context.parallel.config_path = str(path)
    assert context.parallel.config_path == str(path)
    context.parallel.config_path = ""
    assert context.parallel.config_path == ""


def test_contexts_and_their_copies_are_independent() -> None:
    first, second = Context(), Context()
    first.cpu.thread_num = 2
    first.target = ["gpu"]
    twin = copy.deepcopy(first)
    first.cpu.thread_num = 3
    first.target = ["ascend"]
    assert (second.cpu.thread_num, second.target) == (0, ["cpu"])
    assert (twin.cpu.thread_num, twin.target) == (2, ["gpu"])


def test_a_context_survives_pickling() -> None:
    context = Context()
    context.gpu.device_id = 3
    context.parallel.config_info = {"a": {"k": "v"}}
    again = pickle.loads(pickle.dumps(context))
    assert (again.gpu.device_id, again.parallel.config_info) == (3, {"a": {"k": "v"}})


@pytest.mark.parametrize("part", PARTS)
def test_an_unknown_attribute_is_kept_and_warned_of_once(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_warned", set())
    context = Context()
    owner = at(context, part)
    with pytest.warns(
        UserWarning, match=rf"context\.{part} has no setting 'extra'.*no effect"
    ) as w:
        owner.extra = "tensorrt"
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        setattr(at(Context(), part), "extra", 1)  # noqa: B010 - another object, the same name
    assert owner.extra == "tensorrt"
    assert at(context, part) is owner


def test_each_class_and_each_name_gets_its_own_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_warned", set())
    context: Any = Context()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        context.provider = 1
        context.gpu.provider = "tensorrt"
        context.cpu.provider = "x"
        context.cpu.enable_fp16 = True
    assert [str(item.message).split(":")[0] for item in caught] == [
        "context has no setting 'provider'",
        "context.gpu has no setting 'provider'",
        "context.cpu has no setting 'provider'",
        "context.cpu has no setting 'enable_fp16'",
    ]
    assert (context.provider, context.cpu.enable_fp16) == (1, True)


def test_setting_what_exists_never_warns(recwarn: pytest.WarningsRecorder) -> None:
    context = Context()
    for path, value in DEFAULTS:
        if path not in ("gpu.group_size", "ascend.precision_mode"):
            assign(context, path, value)
    assert [str(item.message) for item in recwarn] == []


def test_an_attribute_that_was_never_set_is_missing() -> None:
    with pytest.raises(AttributeError):
        _ = Context().cpu.nothing  # type: ignore[attr-defined]


def test_the_texts_of_a_new_context() -> None:
    context = Context()
    assert str(context) == "target: ['cpu']."
    assert str(context.cpu) == (
        "device_type: DeviceType.kCPU,\nprecision_mode: enforce_fp32,\nthread_num: 0,\n"
        "inter_op_parallel_num: 0,\nthread_affinity_mode: 0,\nthread_affinity_core_list: []."
    )
    assert str(context.gpu) == (
        "device_type: DeviceType.kGPU,\nprecision_mode: enforce_fp32,\ndevice_id: 0,\n"
        "rank_id: 0,\ngroup_size: 1."
    )
    assert str(context.ascend) == (
        "device_type: DeviceType.kAscend,\nprecision_mode: ,\ndevice_id: 0.provider: .rank_id: 0."
    )
    assert str(context.parallel) == "workers num: 0,\nconfig info: ,\nconfig file: ."


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("cpu.precision_mode", "preferred_fp16", "precision_mode: preferred_fp16"),
        ("cpu.thread_num", 4, "thread_num: 4"),
        ("cpu.inter_op_parallel_num", 1, "inter_op_parallel_num: 1"),
        ("cpu.thread_affinity_mode", 2, "thread_affinity_mode: 2"),
        ("cpu.thread_affinity_core_list", [2], "thread_affinity_core_list: [2]."),
        ("cpu.thread_affinity_core_list", [1, 0], "thread_affinity_core_list: [1, 0]."),
        ("gpu.precision_mode", "preferred_fp16", "precision_mode: preferred_fp16"),
        ("gpu.device_id", 1, "device_id: 1"),
        ("gpu.rank_id", 1, "rank_id: 1"),
        ("ascend.precision_mode", "enforce_fp32", "precision_mode: enforce_fp32"),
        ("ascend.device_id", 1, "device_id: 1"),
        ("ascend.rank_id", 1, "rank_id: 1"),
        ("ascend.provider", "ge", "provider: ge"),
        ("parallel.workers_num", 4, "workers num: 4,"),
        (
            "parallel.config_info",
            {"a": {"k": "v", "l": "w"}, "b": {"m": "x"}},
            "config info: a: k v\na: l w\nb: m x,",
        ),
        ("parallel.config_path", __file__, f"config file: {__file__}."),
    ],
)
def test_a_new_value_is_shown(path: str, value: object, words: str) -> None:
    context = Context()
    assign(context, path, value)
    assert words in str(at(context, path.split(".")[0]))
