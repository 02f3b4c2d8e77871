"""benchmark_reading.py: what flags and the environment come to, and everything wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.cli import benchmark_reading
from mindspore_lite.cli.benchmark_asked import Asked, Clients, Limits, context_of
from mindspore_lite.cli.benchmark_reading import asked_of
from mindspore_lite.errors import SettingsError


def asked(environment: dict[str, str] | None = None, **flags: str) -> Asked:
    return asked_of({"modelFile": "net.mindir", **flags}, environment or {})


def problems(environment: dict[str, str] | None = None, **flags: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        asked(environment, **flags)
    return list(caught.value.problems)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = benchmark_reading.cores.usable
    monkeypatch.setattr(benchmark_reading.cores, "usable", lambda: usable(mask=range(4)))


def test_nothing_said_is_what_the_original_does() -> None:
    found = asked()
    assert (found.loops, found.warm_ups, found.trace, found.clients) == (10, 3, "", None)
    assert found.limits == Limits(0.5, -1.1)
    context = context_of(found)
    assert context.target == ["cpu"]
    assert context.cpu.thread_num == 2
    assert context.cpu.thread_affinity_mode == 1
    assert context.cpu.precision_mode == "enforce_fp32"
    assert found.notes == ()


def test_flags_of_the_cpu_reach_the_context() -> None:
    flags = {"numThreads": "3", "interOpParallelNum": "2", "cpuCoreList": "0,2,3"}
    context = context_of(asked(**flags, cpuBindMode="2", enableFp16="true"))
    assert context.cpu.thread_num == 3
    assert context.cpu.inter_op_parallel_num == 2
    assert context.cpu.thread_affinity_mode == 2
    assert context.cpu.thread_affinity_core_list == [0, 2, 3]
    assert context.cpu.precision_mode == "preferred_fp16"


@pytest.mark.parametrize(
    ("flags", "environment", "number"),
    [
        ({"device": "GPU"}, {}, 0),
        ({"device": "GPU"}, {"GPU_DEVICE_ID": "2", "ASCEND_DEVICE_ID": "3"}, 2),
        ({"device": "Ascend"}, {"GPU_DEVICE_ID": "2", "ASCEND_DEVICE_ID": "3"}, 3),
        ({"device": "GPU", "deviceId": "1"}, {"GPU_DEVICE_ID": "2"}, 1),
    ],
)
def test_a_card_is_named_by_flag_or_environment(
    flags: dict[str, str], environment: dict[str, str], number: int
) -> None:
    context = context_of(asked(environment, **flags))
    assert context.target == [flags["device"].lower()]
    assert context.gpu.device_id == context.ascend.device_id == number
    assert context.cpu.thread_num == 0  # which a card does not have


def test_auto_takes_the_best_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, wanted in ((["cpu"], "CPU"), (["cpu", "gpu"], "GPU"), (["cpu", "ascend"], "Ascend")):
        monkeypatch.setattr(benchmark_reading, "usable_targets", lambda there=there: there)
        assert asked(device="Auto").place.device == wanted


def test_the_provider_of_ascend() -> None:
    assert context_of(asked({"ASCEND_BACK_POLICY": "ge"}, device="Ascend")).ascend.provider == "ge"
    assert context_of(asked(device="Ascend", provider="ge")).ascend.provider == "ge"
    assert asked(provider="tensorrt").notes == ("provider has no effect on device CPU",)


def test_threads_that_nobody_asked_to_bind_need_no_cores() -> None:
    found = asked(numThreads="5")
    assert found.place.binding == 0
    assert found.notes == ("not bound to cores: 5 threads, but 4 cores",)
    assert asked(numThreads="5", cpuBindMode="1").place.binding == 1  # the build refuses it
    clients = {"enableParallelPredict": "true", "workersNum": "3"}
    assert asked(**clients).place.binding == 0
    assert asked(**clients, numThreads="1").place.binding == 1


def test_clients_have_settings_of_their_own(tmp_path: Path) -> None:
    config = tmp_path / "my.cfg"
    config.write_text("")
    found = asked(
        enableParallelPredict="true",
        parallelNum="5",
        parallelTaskNum="-1",
        workersNum="1",
        configFile=str(config),
    )
    assert found.clients == Clients(5, -1, 1)
    context = context_of(found)
    assert context.parallel.workers_num == 1
    assert context.parallel.config_path == str(config)


def test_shapes_come_by_name_or_by_place() -> None:
    found = asked(inputShape="x:1,3;y:2")
    assert (found.shapes, found.by_place) == ({"x": (1, 3), "y": (2,)}, False)
    found = asked(inputShapes="1,3:2")
    assert (found.shapes, found.by_place) == ({"0": (1, 3), "1": (2,)}, True)


def test_files_are_apart_by_commas_or_blanks(tmp_path: Path) -> None:
    assert asked(inDataFile="a.bin, b.bin c.bin").files == ("a.bin", "b.bin", "c.bin")
    odd = tmp_path / "one, two.bin"
    odd.write_bytes(b"")
    assert asked(inDataFile=str(odd)).files == (str(odd),)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.mindir", "MindIR"), ("a.onnx", "ONNX"), ("a.ms", "MindIR_Lite")]
)
def test_the_name_of_a_file_tells_its_type(name: str, kind: str) -> None:
    assert asked(modelFile=name).model_type == kind
    assert asked(modelFile=name, modelType="MindIR").model_type == "MindIR"


def test_flags_that_do_nothing_say_so() -> None:
    found = asked(enableGLTexture="true", delegateMode="CoreML", perfProfiling="false", rankId="0")
    assert [note.split()[0] for note in found.notes] == [
        "rankId", "enableGLTexture", "delegateMode",
    ]  # fmt: skip


def test_a_profile_lies_in_the_directory_of_the_caller() -> None:
    assert asked(modelFile="/models/net.mindir", timeProfiling="true").trace == "net.trace.json"
    assert asked(timeProfiling="true", profilingTrace="/a/b").trace == "/a/b"
    assert asked(profilingTrace="/a/b").trace == ""


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"loopCount": "0"}, "LoopCount:0 must be greater than 0"),
        ({"numThreads": "-1"}, "numThreads:-1 must be greater than 0"),
        ({"warmUpLoopCount": "-1"}, "warmUpLoopCount:-1 must be at least 0"),
        ({"loopCount": "1e3"}, "loopCount must be a whole number, but got '1e3'"),
        ({"loopCount": "9999999999"}, "LoopCount:9999999999 must be at most 2147483647"),
        ({"parallelNum": "0", "enableParallelPredict": "true"}, "must be greater than 0"),
        ({"parallelNum": "9999", "enableParallelPredict": "true"}, "must be at most 1024"),
        ({"parallelTaskNum": "-2", "enableParallelPredict": "true"}, "must be at least -1"),
        ({"device": "NPU"}, "device must be CPU|GPU|Ascend|Auto, but got 'NPU'"),
        ({"modelType": "OM"}, "modelType must be MindIR|MindIR_Lite|ONNX, but got 'OM'"),
        ({"provider": "x"}, "provider must be"),
        ({"benchmarkDataType": "INT64"}, "benchmarkDataType must be FLOAT|INT32|INT8|UINT8"),
        ({"perfEvent": "x"}, "perfEvent must be CYCLE|CACHE|STALL"),
        ({"cpuBindMode": "3"}, "cpuBindMode must be 0|1|2, but got 3"),
        ({"cpuCoreList": "0,-1"}, "cpuCoreList must be like 0,1,2, but got '0,-1'"),
        ({"accuracyThreshold": "nan"}, "accuracyThreshold must be a number, but got 'nan'"),
        ({"inputShape": "x:0"}, "inputShape of 'x' has the size 0, wanted 1 to 2147483647"),
        ({"inputShapes": "1:a"}, "inputShapes of '1' has the size 'a', wanted a whole number"),
        ({"inputShape": "x:1", "inputShapes": "1"}, "exclude each other"),
        ({"decryptKey": "xyz"}, "decryptKey must be hexadecimal digits"),
        ({"decryptKey": "11", "enableParallelPredict": "true"}, "cannot decrypt"),
        ({"timeProfiling": "true", "device": "GPU"}, "leave it or device out"),
        ({"timeProfiling": "true", "enableParallelPredict": "true"}, "enableParallelPredict out"),
        ({"timeProfiling": "true", "benchmarkDataFile": "a"}, "leave it or benchmarkDataFile out"),
    ],
)
def test_what_makes_no_sense(flags: dict[str, str], problem: str) -> None:
    (found,) = problems(**flags)
    assert problem in found


def test_the_environment_is_checked_too() -> None:
    (found,) = problems({"GPU_DEVICE_ID": "x"}, device="GPU")
    assert found == "GPU_DEVICE_ID is 'x', wanted the number of a card"


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        asked_of({"loopCount": "0", "device": "NPU"}, {})
    assert len(caught.value.problems) == 3
