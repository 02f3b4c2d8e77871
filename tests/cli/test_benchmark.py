"""benchmark: the lines and exit codes that programs rely on, for times and for accuracy."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli.conftest import Done
from support.encryption import encrypt
from support.models import DIGITS, MIXED_TYPES, TWO_IN_TWO_OUT, built, written

from mindspore_lite.cli import benchmark as script_module
from mindspore_lite.cli.benchmark_flags import FLAGS

Run = Callable[..., Done]
ROOT = Path(__file__).parents[2]
DIGIT = ROOT / "examples/quick_start/input.bin"
KEY = "00112233445566778899AABBCCDDEEFF"
SMALL = ("--inputShape=x:1,1,8,8", "--numThreads=1", "--cpuBindMode=0")

ECHO = f"""ModelPath = {DIGITS}
ModelType = MindIR
InDataPath = {{files}}
GroupInfoFile = 
ConfigFilePath = 
InDataType = bin
LoopCount = {{loops}}
DeviceType = CPU
AccuracyThreshold = 0.5
CosineDistanceThreshold = {{cosine}}
WarmUpLoopCount = 3
NumThreads = 1
InterOpParallelNum = 1
Fp16Priority = 0
EnableParallel = 0
calibDataPath = {{reference}}
EnableGLTexture = 0
cpuBindMode = NO_BIND
CalibDataType = FLOAT
Resize Dims: 1,1,8,8
start unified benchmark run
PrepareTime = T ms
"""  # noqa: W291 - as the original prints it
SPEED = """Running warm up loops...
Running benchmark loops...
Model = digits.mindir, NumThreads = 1, MinRunTime = T ms, MaxRuntime = T ms, AvgRunTime = T ms
P50RunTime = T ms, P90RunTime = T ms, P99RunTime = T ms, StdRunTime = T ms
Run Benchmark digits.mindir Success.
"""


def timeless(text: str) -> str:
    """The text without what a clock said."""
    return re.sub(r"\d+\.\d+ ms", "T ms", text)


def expected_file(path: Path, *, factor: float = 1.0, shape: str = "2 1 10") -> Path:
    """What the embedded model gives for the example's digit, times a factor."""
    with built(DIGITS) as model:
        (output,) = model.predict([np.fromfile(DIGIT, np.float32).reshape(1, 1, 8, 8)])
    values = output.get_data_to_numpy().reshape(-1).astype(np.float64) * factor
    path.write_text(f"{output.name} {shape}\n{' '.join(map(str, values))}\n")
    return path


@pytest.fixture
def digits(benchmark: Run) -> Run:
    """Call `digits(*flags)`: the embedded model, on one thread."""
    return lambda *flags: benchmark(f"--modelFile={DIGITS}", *SMALL, *flags)


def test_the_command_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["benchmark"] == f"{script_module.__name__}:main"


def test_the_report_of_times(digits: Run) -> None:
    done = digits("--loopCount=4")
    assert (done.code, done.err) == (0, "")
    echo = ECHO.format(files="", loops=4, cosine="-1.1", reference="")
    assert timeless(done.out) == echo + SPEED


def test_times_are_those_of_the_clock(digits: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0, 1_000_000, 1_000_000, 3_000_000, 3_000_000, 9_000_400])
    clock = SimpleNamespace(perf_counter=lambda: 0.0, perf_counter_ns=lambda: next(moments))
    monkeypatch.setattr(script_module, "time", clock)
    out = digits("--loopCount=3").out
    assert "MinRunTime = 1.000000 ms, MaxRuntime = 6.000400 ms, AvgRunTime = 3.000133 ms" in out
    assert "P50RunTime = 2.000000 ms, P90RunTime = 5.200320 ms" in out


def test_the_report_of_accuracy(digits: Run, tmp_path: Path) -> None:
    reference = expected_file(tmp_path / "want.txt", shape="3 1 10 1")  # a 1 more at the end
    done = digits(
        f"--inDataFile={DIGIT}",
        f"--benchmarkDataFile={reference}",
        "--cosineDistanceThreshold=0.99",
    )
    assert (done.code, done.err) == (0, "")
    echo = ECHO.format(files=DIGIT, loops=10, cosine="0.99", reference=reference)
    assert timeless(done.out).startswith(f"{echo}MarkAccuracy\nInData 0: 0 0.1875 0.8125 1 ")
    name = "Default/Softmax-op0"
    lines = done.out.splitlines()[len(echo.splitlines()) + 1 :]
    assert len(lines[0].removeprefix("InData 0: ").split()) == 20
    assert lines[1] == "================ Comparing Output data ================"
    assert lines[2].startswith(f"Data of node {name} : 0.00545338 0.00258225 ")
    assert lines[3:] == [
        f"Mean bias of node/tensor {name} : 0%",
        f"Mean cosine distance of node/tensor {name} : 100%",
        "Mean bias of all nodes/tensors: 0%",
        "Cosine distance of all nodes/tensors: 1",
        "=" * 55,
        "",
        "Run Benchmark digits.mindir Success.",
    ]


def test_outputs_that_are_too_far_off_fail(digits: Run, tmp_path: Path) -> None:
    reference = expected_file(tmp_path / "want.txt", factor=1.25)
    flags = (f"--inDataFile={DIGIT}", f"--benchmarkDataFile={reference}")
    done = digits(*flags)
    assert done.code == 255
    assert "Mean bias of all nodes/tensors: 20%\n" in done.out
    assert done.err == (
        "Mean bias of all nodes/tensors is too big: 20%; accuracyThreshold allows 0.5%\n"
        "Run Benchmark digits.mindir Failed : -1\n"
    )
    assert digits(*flags, "--accuracyThreshold=20.1").code == 0


def test_every_type_of_output_is_compared(benchmark: Run, tmp_path: Path) -> None:
    with built(MIXED_TYPES) as model:
        inputs = [np.zeros(t.shape, t.get_data_to_numpy().dtype) for t in model.get_inputs()]
        outputs = model.predict(inputs)
    files = [written(tmp_path / f"{at}.bin", a.tobytes()) for at, a in enumerate(inputs)]
    lines = []
    for output in outputs:
        values = output.get_data_to_numpy().reshape(-1)
        lines += [
            " ".join(map(str, [output.name, len(output.shape), *output.shape])),
            " ".join(str(float(v)) for v in values),
        ]
    reference = tmp_path / "want.txt"
    reference.write_text("\n".join(lines))
    done = benchmark(
        f"--modelFile={MIXED_TYPES}",
        f"--inDataFile={','.join(map(str, files))}",
        f"--benchmarkDataFile={reference}",
        *("--numThreads=1", "--cpuBindMode=0"),
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.count(" : 0%") == len(outputs)


def test_inputs_are_filled_by_place(benchmark: Run) -> None:
    with built(TWO_IN_TWO_OUT) as model:
        shapes = [",".join(map(str, tensor.shape)) for tensor in model.get_inputs()]
    flags = (f"--modelFile={TWO_IN_TWO_OUT}", "--numThreads=1", "--cpuBindMode=0", "--loopCount=1")
    done = benchmark(*flags, f"--inputShapes={':'.join(shapes)}")
    assert (done.code, done.err) == (0, "")
    assert f"Resize Dims: {' '.join(shapes)}\n" in done.out
    done = benchmark(*flags, f"--inDataFile={DIGIT}")
    assert done.code == 255
    assert "inDataFile names 1 files, wanted 2: one for each of" in done.err


def test_an_encrypted_model_needs_its_key(benchmark: Run, tmp_path: Path) -> None:
    secret = written(tmp_path / "a.mindir", encrypt(DIGITS.read_bytes(), bytes.fromhex(KEY)))
    (tmp_path / "key").write_text(KEY)
    flags = (f"--modelFile={secret}", *SMALL, "--loopCount=1")
    assert benchmark(*flags).code == 255
    done = benchmark(*flags, f"--decryptKey=@{tmp_path / 'key'}", "--cryptoLibPath=libcrypto.so")
    assert (done.code, done.err) == (0, "WARNING: cryptoLibPath has no effect: the key is enough\n")
    assert KEY not in benchmark(*flags, f"--decryptKey={KEY}0").err


def test_the_profile_adds_up(digits: Run, tmp_path: Path) -> None:
    trace = tmp_path / "net.json"
    done = digits("--timeProfiling=true", "--loopCount=2", f"--profilingTrace={trace}")
    assert (done.code, done.err) == (0, "")
    assert f"Trace is saved to : {trace}\n" in done.out
    tables = done.out.split("-" * 41 + "\n")[1:]
    heads = [table.splitlines()[0].split("\t") for table in tables]
    columns = ["avg(ms)", "percent", "calledTimes", "opTotalTime"]
    assert heads == [["opName", *columns], ["opType", *columns]]
    totals = []
    for table in tables:
        rows = [line.split("\t") for line in table.splitlines()[1:] if "\t" in line]
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        assert sum(float(row[2]) for row in rows) == pytest.approx(1, abs=1e-4)
        for row in rows:
            assert float(row[4]) == pytest.approx(2 * float(row[1]), abs=2e-6)
        totals.append((sum(int(row[3]) for row in rows), sum(float(row[4]) for row in rows)))
    assert totals[0] == pytest.approx(totals[1])
    assert "\nDefault/Softmax-op0\t" in tables[0]
    assert "\nSoftmax\t" in tables[1]
    runs = [event for event in json.loads(trace.read_text()) if event["name"] == "model_run"]
    assert len(runs) == 2 + 3  # with those that warm up
    assert list(tmp_path.iterdir()) == [trace]  # nothing of the profiler's own is left


def test_help_names_every_flag_and_ends_in_an_example(benchmark: Run) -> None:
    done = benchmark("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f"--{name} " in done.out for name in FLAGS)
    assert done.out.splitlines()[-1].startswith("Example: benchmark --modelFile=")


@pytest.mark.parametrize(
    ("flags", "words", "code"),
    [
        (["--inDataFile=nowhere.bin"], "cannot read the input 'nowhere.bin': No such file", -101),
        ([f"--inDataFile={DIGITS}"], "Input binary file size error, required: 256, in fact", -101),
        (["--configFile=nowhere.cfg"], "config_path does not exist: 'nowhere.cfg'", -200),
        (["--benchmarkDataFile=nowhere"], "benchmarkDataFile 'nowhere' is no file", -101),
        (["--device=Ascend"], "target 'ascend' needs Ascend hardware", -7),
        (["--modelType=MindIR_Lite"], "MINDIR_LITE (.ms files of the edge runtime)", -200),
        (["--cpuCoreList=100000"], "which this process may not use", -1),
        (["--interOpParallelNum=2"], "wanted at most thread_num, which is 1", -1),
        (["--timeProfiling", "--profilingTrace=/proc/no"], "cannot write the profile", -1),
    ],
)
def test_what_fails_says_why(digits: Run, flags: list[str], words: str, code: int) -> None:
    done = digits(*flags)
    assert done.code == 255
    reason, last = done.err.splitlines()
    assert words in reason
    assert last == f"Run Benchmark digits.mindir Failed : {code}"
    assert "Success" not in done.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "input 'x' is [-1, 1, 8, 8], and nobody says which sizes it shall have; give "),
        (["--inputShape=y:1"], "inputShape names ['y'], but the model's inputs are ['x']"),
        (["--inputShapes=1,1,8,8:2"], "inputShapes has 2 shapes, wanted 1: one for each of ['x']"),
        (["--inputShape=x:1,8"], "input 'x' has 4 dims [-1, 1, 8, 8], got [1, 8]"),
    ],
)
def test_shapes_that_do_not_fit(benchmark: Run, flags: list[str], words: str) -> None:
    done = benchmark(f"--modelFile={DIGITS}", "--cpuBindMode=0", *flags)
    assert done.code == 255
    assert words in done.err
    assert done.err.splitlines()[-1] == "Run Benchmark digits.mindir Failed : -501"


def test_a_model_that_is_not_there(benchmark: Run, tmp_path: Path) -> None:
    done = benchmark(f"--modelFile={tmp_path / 'no.mindir'}")
    assert done.code == 255
    assert done.err.splitlines()[-1] == "Run Benchmark no.mindir Failed : -200"


def test_arguments_that_are_no_flags(benchmark: Run) -> None:
    done = benchmark("--modelfile=a.mindir")
    assert (done.code, done.out) == (255, "")
    assert done.err == "modelfile is not a valid flag\nbenchmark --help tells all flags\n"
    done = benchmark("--loopCount=1")
    assert (done.code, done.err.splitlines()[0]) == (255, "modelPath is required: give --modelFile")
