from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mindspore_lite.cli import doctor as doctor_module
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.core.cores import Core, Cores
from mindspore_lite.engines import select
from mindspore_lite.engines.torch import cards
from mindspore_lite.engines.torch.cards import CardFacts
from mindspore_lite.errors import EngineUnavailableError
from mindspore_lite.serving.layout import Wanted, layout

Run = Callable[..., Any]


def test_doctor_tells_versions_cores_cache_and_that_a_model_runs(
    mslite: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "here"))
    done = mslite("doctor")
    assert done.code == 0
    for words in (
        "onnxruntime: ",
        "usable: ",
        "limit: ",
        f"place: {tmp_path / 'here'}",
        "0 models",
    ):
        assert words in done.out
    assert "self-test: the embedded model runs, 10 of 10 digits right" in done.out
    assert "1 models" in mslite("doctor").out


def test_doctor_exits_with_1_when_no_engine_is_there(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise EngineUnavailableError("target 'cpu' needs ONNX Runtime: pip install onnxruntime")

    monkeypatch.setattr("mindspore_lite.serving.build.engine_for", missing)
    monkeypatch.setattr(select, "available", lambda: [("onnxruntime", None, "not installed")])
    done = mslite("doctor")
    assert done.code == 1
    assert "onnxruntime: not available (not installed)" in done.out
    assert "no model can run" in done.err
    assert "pip install onnxruntime" in done.err


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a machine with two cards, whatever this one has."""
    for name in ("proc/cpuinfo", "dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/null"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("processor : 0\nmodel name : Fast CPU\nflags : avx\n")
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        "GCC version:  gcc version 12.3.0\n"
    )
    monkeypatch.setattr(select, "has_driver", lambda: False)
    return tmp_path


def test_cards_are_named_with_their_memory_and_driver(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(kind: str) -> list[CardFacts]:
        return [CardFacts(f"{kind}:{n}", "Fast GPU", 141 << 30) for n in range(2)]

    monkeypatch.setattr(cards, "listed", listed)
    doctor_module._show_devices(machine)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  cpu: Fast CPU",
        "  gpu: 2 found",
        "    gpu:0: Fast GPU, 141.0 GiB, driver 580.65.06",
        "    gpu:1: Fast GPU, 141.0 GiB, driver 580.65.06",
        "  ascend: none found",
    ]
    assert doctor_module._driver(machine / "nowhere") == ""


def test_cards_that_cannot_be_used_come_with_the_reason(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(kind: str) -> None:
        raise EngineUnavailableError("target 'gpu' needs a newer driver")

    monkeypatch.setattr(cards, "listed", refused)
    doctor_module._show_devices(machine)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == ["  gpu: 2 found", "    not usable: target 'gpu' needs a newer driver"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("emulate:4", "  ascend: none found; 4 emulated on the CPU"),
        ("yes", "  ascend: none found; MSLITE_ASCEND is 'yes', wanted 'emulate' for 8 devices"),
    ],
)
def test_doctor_tells_whether_ascend_is_emulated(
    setting: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", setting)
    doctor_module._show_devices(tmp_path)
    assert capsys.readouterr().out.splitlines()[-1].startswith(words)


def test_doctor_says_why_the_cache_is_not_used(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    assert "not used: switched off by MSLITE_CACHE" in mslite("doctor").out


@pytest.mark.parametrize(
    ("abi", "has_filter", "words"),
    [
        (7, True, ["files: Landlock, ABI 7", "network and processes: seccomp filter"]),
        (0, False, ["not confined, the kernel has no Landlock", "not confined, no seccomp filter"]),
    ],
)
def test_doctor_says_what_a_sandbox_confines(
    abi: int,
    has_filter: bool,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("mindspore_lite.core.landlock.abi", lambda: abi)
    monkeypatch.setattr("mindspore_lite.core.seccomp.available", lambda: has_filter)
    doctor_module._show_sandbox()
    said = capsys.readouterr().out
    assert all(one in said for one in words)


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    assert doctor_module._version("no-such-package") == "missing: pip install no-such-package"


@pytest.mark.parametrize(
    ("ids", "text"), [((0,), "0"), ((0, 1, 2, 5), "0-2,5"), ((1, 3, 4), "1,3-4")]
)
def test_core_ids_are_shown_as_ranges(ids: tuple[int, ...], text: str) -> None:
    assert doctor_module._ranges(ids) == text


EIGHT = Cores(
    ids=tuple(range(8)),
    limit=8,
    limit_from="affinity mask",
    physical=8,
    nodes=((0, 1, 2, 3), (4, 5, 6, 7)),
    topology=tuple(Core(number, (number,), 0) for number in range(8)),
)


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (
            Wanted(),
            [
                "  workers: 8, as many requests run at the same time",
                "  threads of a request: 8, 4, 2 while there are few, 1 in a crowd",
                "  limit: 8 usable cores (affinity mask)",
                "  cores: any, nothing is bound",
            ],
        ),
        (
            Wanted(workers=2, threads=3, affinity_mode=1),
            [
                "  workers: 2, as many requests run at the same time",
                "  threads of a request: 3",
                "  limit: 8 usable cores (affinity mask)",
                "  worker 0: cores 0-2, NUMA node 0",
                "  worker 1: cores 4-6, NUMA node 1",
            ],
        ),
    ],
)
def test_a_layout_is_shown(
    capsys: pytest.CaptureFixture[str], wanted: Wanted, lines: list[str]
) -> None:
    doctor_module.show_layout(layout(EIGHT, wanted))
    assert capsys.readouterr().out.splitlines()[1:] == lines


def test_doctor_runs_the_model_it_is_given(mslite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module.cores, "usable", lambda: EIGHT)
    done = mslite("doctor", DIGITS_MODEL, "--workers", 4)
    assert (done.code, done.err) == (0, "")
    for line in (
        "  workers: 4, as many requests run at the same time",
        "  threads of a request: 8, 4 while there are few, 2 in a crowd",
        f"model: {DIGITS_MODEL}",
        "  on disk, weights included: 937.4 KiB",
        "  input x: float32 [1, 1, 8, 8]",
        "  output Default/Softmax-op0: float32 [1, 10]",
    ):
        assert line in done.out.splitlines()
    assert "one request with synthetic inputs took" in done.out
    assert "warning" not in done.out
    assert "self-test" not in done.out


def test_doctor_warns_of_more_threads_than_cores(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_module.cores, "usable", lambda: EIGHT)
    done = mslite("doctor", DIGITS_MODEL, "--workers", 9, "--threads", 1)
    assert (done.code, done.err) == (0, "")
    assert "  warning: 9 workers of 1 threads make 9 threads, but 8 cores" in done.out


def test_doctor_counts_weights_in_files_beside_the_model(mslite: Run, tmp_path: Path) -> None:
    weights = np.ones(3 * 2**18, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, list(weights.shape))],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "sum.onnx", save_as_external_data=True, location="sum.data")
    done = mslite("doctor", tmp_path / "sum.onnx")
    assert done.code == 0
    assert "on disk, weights included: 3.0 MiB in 2 files" in done.out


def test_doctor_says_why_a_model_cannot_run(mslite: Run, tmp_path: Path) -> None:
    (tmp_path / "text.mindir").write_text("no model")
    done = mslite("doctor", tmp_path / "text.mindir")
    assert done.code == 1
    assert (
        "the model cannot run: ModelParallelRunner's build from file failed! Error is" in done.err
    )
    assert "does not exist" in mslite("doctor", tmp_path / "missing.onnx").err


def test_doctor_refuses_a_layout_that_cannot_be(mslite: Run) -> None:
    done = mslite("doctor", DIGITS_MODEL, "--workers", 2000)
    assert done.code == 1
    assert "2000 workers were asked for, wanted 1 to 1024" in done.err


def test_help_of_doctor_has_an_example_with_a_model(mslite: Run) -> None:
    assert "Example: mslite doctor resnet50.mindir --workers 4" in mslite("doctor", "--help").out


def test_doctor_shows_where_each_setting_came_from(mslite: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.ini"
    file.write_text("[parallel]\nqueue_size=7\n[ge_graph_options]\nge.externalWeight=1\n")
    done = mslite("doctor", "--config", str(file), "--threads", "2")
    assert done.code == 0
    words = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"parallel.queue_size 7 from config file {file}, read by runner" in words
    assert "cpu.thread_num 2 from context, read by placement" in words
    assert "build.max_nodes 100000 from default, read by build" in words
    assert words[-2:] == ["entries without effect:", "[ge_graph_options] ge.externalWeight"]


def test_doctor_shows_settings_as_json(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", "1000000000")
    file = tmp_path / "some.ini"
    file.write_text("[gpu_context]\ntuning=full\nopt_dims=[1]\n")
    done = mslite("doctor", "--config", str(file), "--target", "gpu", "--json")
    found = json.loads(done.out)
    rows = {row["name"]: row for row in found["settings"]}
    source = f"config file {file}"
    wanted = {"name": "gpu_context.tuning", "value": "full", "source": source, "reader": "engine"}
    assert rows["gpu_context.tuning"] == wanted
    assert found["without_effect"] == ["[gpu_context] opt_dims"]
    assert found["environment"]["MSLITE_CACHE_MAX_BYTES"] == "1000000000"


def test_doctor_ends_with_1_on_a_slip_of_the_pen(mslite: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.ini"
    file.write_text("[paralel]\nqueue_size=7\n")
    done = mslite("doctor", "--config", str(file))
    assert done.code == 1
    assert "did you mean [parallel]?" in done.err
    assert mslite("doctor", "--json").code == 2


@pytest.mark.parametrize(
    ("missing", "words"),
    [("", "on uvloop"), ("uvloop", "asyncio's event loop"), ("msgspec", "mslite[serve]")],
)
def test_doctor_tells_how_models_are_served(
    monkeypatch: pytest.MonkeyPatch, missing: str, words: str
) -> None:
    def found(name: str) -> object:
        return None if name == missing else name

    said: list[str] = []
    monkeypatch.setattr("importlib.util.find_spec", found)
    monkeypatch.setattr(doctor_module, "say", said.append)
    doctor_module._show_server()
    assert words in said[-1]
