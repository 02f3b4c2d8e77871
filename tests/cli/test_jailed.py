"""--sandbox of commands: the same text, files and exit codes, by way of a jailed child."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Done
from support.conversion import dense_onnx
from support.mindir_builder import Net, encode
from support.models import DIGITS, MINDIR, arrays, built, dense_net, written

from mindspore_lite.cli import converter_lite, jailed
from mindspore_lite.core import jail

Run = Callable[..., Done]
TASKS = Path(__file__).parents[1] / "support"
KEY = "00112233445566778899AABBCCDDEEFF"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []
    assert [p for p in tmp_path.rglob("*") if p.name.startswith(".mslite-")] == []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The tasks that children were started for; no other test has filled the cache."""
    found: list[str] = []
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    real = jail.run

    def run(task: str, *arguments: object, **named: object) -> object:
        found.append(task.partition(":")[2])
        return real(task, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(jail, "run", run)
    return found


@pytest.fixture
def tool(script: Callable[[Callable[[], None]], Run]) -> Run:
    """Call `tool(*arguments)`, which is converter_lite."""
    return script(converter_lite.main)


def refused_net() -> bytes:
    net = Net()
    return encode(net.model(net.call("NoSuchThing", net.input("x\x1b[31m", (2, 3)))))


# --- inspect --------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [dense_net(), refused_net(), b"nonsense"])
def test_inspect_says_the_same(
    data: bytes, mslite: Run, tmp_path: Path, started: list[str]
) -> None:
    path = written(tmp_path / "net.mindir", data)
    for flags in ([], ["--json"]):
        plain = mslite("inspect", path, *flags)
        assert mslite("inspect", path, "--sandbox", *flags) == plain
    assert started == ["inspect_task"] * 2


def test_inspect_draws_the_same_page(mslite: Run, tmp_path: Path) -> None:
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    done = [
        mslite("inspect", DIGITS, "--html", page, *flags)
        for page, flags in zip(pages, ([], ["--sandbox"]), strict=True)
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert done[1].out == done[0].out.replace("one.html", "two.html")


def test_a_model_that_crashes_the_reader_is_an_error(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = jail.run

    def crash(task: str, arguments: object, **named: object) -> object:
        return real("jail_tasks:crash", {}, path=[TASKS], **named)  # type: ignore[arg-type]

    monkeypatch.setattr(jail, "run", crash)
    done = mslite("inspect", DIGITS, "--sandbox")
    assert done.code == 1
    assert done.err == (
        "mslite: inspecting digits.mindir in the sandbox was ended by signal 11 (SIGSEGV)\n"
    )


# --- convert --------------------------------------------------------------------------------------


def test_convert_writes_the_same(mslite: Run, tmp_path: Path, started: list[str]) -> None:
    source = dense_onnx(tmp_path / "net.onnx")
    plain = mslite("convert", source, tmp_path / "one")
    done = mslite("convert", source, tmp_path / "new" / "two", "--sandbox", "--check")
    assert done.code == 0
    written_text = plain.out.replace("one.mindir", "new/two.mindir")
    assert done.out.startswith(written_text)
    assert "largest difference between source and result" in done.out
    one, two = tmp_path / "one.mindir", tmp_path / "new/two.mindir"
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_mode == two.stat().st_mode
    assert started == ["convert_task"]


def test_convert_writes_side_files(mslite: Run, tmp_path: Path) -> None:
    done = mslite("convert", DIGITS, tmp_path / "net", "--external-above", 1000, "--sandbox")
    assert done.code == 0
    assert f"  and {tmp_path / 'net_variables/data_0'}" in done.out
    images = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    with built(tmp_path / "net_graph.mindir") as made, built(DIGITS) as source:
        found, wanted = (arrays(model.predict([images]))[0] for model in (made, source))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_convert_takes_keys_from_here(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    source = dense_onnx(tmp_path / "net.onnx")
    done = mslite("convert", source, "--sandbox", "--encrypt-key", "env:THE_KEY")
    assert done.code == 0
    assert KEY not in done.out
    again = mslite(
        "convert", tmp_path / "net.mindir", tmp_path / "open", "--sandbox", "--decrypt-key", KEY
    )
    assert again.code == 0, again.err
    with built(tmp_path / "open.mindir", MINDIR) as model:
        assert model.get_inputs()


def test_convert_reads_calibration_data(mslite: Run, tmp_path: Path) -> None:
    data, models = tmp_path / "data", tmp_path / "models"
    for folder in (data, models):
        folder.mkdir()
    np.random.default_rng(1).random((1, 1, 8, 8), np.float32).tofile(data / "one.bin")
    settings = tmp_path / "settings.ini"
    settings.write_text(
        "[common_quant_param]\nquant_type=FULL_QUANT\n"
        f"[data_preprocess_param]\ncalibrate_path=x:{data}\ninput_type=BIN\n"
    )
    source = models / "digits.mindir"
    source.write_bytes(DIGITS.read_bytes())
    shape = ["--shape", "x=1,1,8,8", "--input-format", "NCHW"]
    done = mslite("convert", source, models / "small", "--sandbox", "--config", settings, *shape)
    assert done.code == 0, done.err
    assert "quantised (FULL_QUANT)" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.onnx"], "MODEL does not exist: 'missing.onnx'"),
        (["net.pb"], "a sandbox does not go with models of TF"),
        (["net.onnx", "net"], ""),
        (["bad.onnx"], "'bad.onnx' cannot be loaded as ONNX"),
        (["bad.mindir", "bad.mindir"], "'bad.mindir' cannot be loaded as MindIR"),
        (["bad.mindir"], "'bad.mindir' would overwrite the model"),
    ],
)
def test_what_cannot_be_converted_is_said_as_without(
    arguments: list[str], words: str, mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dense_onnx(tmp_path / "net.onnx")
    for name in ("net.pb", "bad.onnx", "bad.mindir"):
        written(tmp_path / name, b"nonsense")
    done = mslite("convert", *arguments, "--sandbox")
    assert (done.code == 0) == (not words), done.err
    assert words in done.err
    if words and "sandbox" not in words:
        assert mslite("convert", *arguments).err == done.err


def strangers(folder: Path) -> None:
    (folder / "stranger").write_bytes(b"")


def a_link(folder: Path) -> None:
    (folder / "net.mindir").symlink_to("/etc/passwd")


def a_folder(folder: Path) -> None:
    (folder / "net.mindir").mkdir()


def a_linked_folder(folder: Path) -> None:
    (folder / "net_variables").symlink_to(folder)


def two_names(folder: Path) -> None:
    (folder / "net.mindir").write_bytes(b"")
    os.link(folder / "net.mindir", folder / "net_graph.mindir")


@pytest.mark.parametrize("write", [strangers, a_link, a_folder, a_linked_folder, two_names])
def test_files_that_a_conversion_does_not_write_are_refused(
    write: Callable[[Path], None], mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over(task: str, arguments: dict[str, str], **named: object) -> dict[str, object]:
        write(Path(arguments["output"]).parent)
        return {"out": "", "err": "", "code": 0}

    monkeypatch.setattr(jail, "run", taken_over)
    source = dense_onnx(tmp_path / "in.onnx")
    done = mslite("convert", source, tmp_path / "net", "--sandbox")
    assert done.code == 1
    assert "what the sandbox wrote is refused" in done.err
    assert not (tmp_path / "net.mindir").exists()


@pytest.mark.parametrize("told", [None, [], {"code": "0", "out": "", "err": ""}, {"code": 0}])
def test_an_answer_without_sense_is_an_error(
    told: object, mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jail, "run", lambda *arguments, **named: told)
    done = mslite("inspect", DIGITS, "--sandbox")
    assert (done.code, "gave no answer that makes sense" in done.err) == (1, True)


# --- converter_lite -------------------------------------------------------------------------------


def test_converter_lite_writes_the_same(tool: Run, tmp_path: Path, started: list[str]) -> None:
    model = dense_onnx(tmp_path / "net.onnx")
    flags = ["--fmk=ONNX", f"--modelFile={model}"]
    plain = tool(*flags, f"--outputFile={tmp_path / 'one'}")
    assert tool(*flags, f"--outputFile={tmp_path / 'two'}", "--sandbox") == plain
    assert (tmp_path / "one.mindir").read_bytes() == (tmp_path / "two.mindir").read_bytes()
    assert started == ["converter_lite_task"]


def test_converter_lite_fails_alike(tool: Run, tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.onnx", b"nonsense")
    flags = ["--fmk=ONNX", f"--modelFile={bad}", f"--outputFile={tmp_path / 'o'}"]
    assert tool(*flags, "--sandbox") == tool(*flags)
    done = tool("--fmk=TF", f"--modelFile={bad}", f"--outputFile={tmp_path / 'o'}", "--sandbox")
    assert (done.code, "does not go with models of TF" in done.err) == (168, True)


# --- run, bench -----------------------------------------------------------------------------------


def test_run_compiles_in_a_sandbox(mslite: Run, tmp_path: Path, started: list[str]) -> None:
    path = written(tmp_path / "net.mindir", dense_net())
    assert mslite("run", path, "--sandbox").code == 0
    assert started == ["compile_task"]


def test_bench_compiles_in_a_sandbox(mslite: Run, tmp_path: Path, started: list[str]) -> None:
    path = written(tmp_path / "net.mindir", dense_net(2, 3.0))
    done = mslite("bench", path, "--sandbox", "--clients", 1, "--duration", 0.05, "--warmup", 0)
    assert done.code == 0, done.err
    assert started == ["compile_task"]


@pytest.mark.parametrize("flags", [["--tune"], ["--compare", "onnxruntime"]])
def test_bench_refuses_what_compiles_here(flags: list[str], mslite: Run) -> None:
    done = mslite("bench", DIGITS, "--sandbox", *flags)
    assert (done.code, "--sandbox" in done.err) == (2, True)


def test_a_folder_is_measured_without_its_depths(tmp_path: Path) -> None:
    for depth in ("", "a", "a/b"):
        (tmp_path / "models" / depth).mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / depth / "file").write_bytes(bytes(100))
    assert jailed._folder_bytes(tmp_path / "models") == 200
