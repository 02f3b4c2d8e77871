"""benchmark_dump.py: which files come out of a run, and configurations that make no sense."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Done
from support.models import DIGITS

from mindspore_lite.cli.benchmark_dump import Dump, read_dump, write_dump
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import Tensor

IN = "x_input_0_shape_1_3_Float32_DEFAULT.bin"
OUT = "net.y_output_0_shape_2_Int64_DEFAULT.bin"


def written(folder: Path, **settings: object) -> str:
    """A configuration for dumps into a folder."""
    path = folder / "dump.json"
    path.write_text(json.dumps({"common_dump_settings": {"path": str(folder / "d"), **settings}}))
    return str(path)


def run() -> tuple[dict[str, np.ndarray], list[Tensor]]:
    output = Tensor(np.arange(2, dtype=np.int64))
    output.name = "net/y"
    return {"x": np.ones((1, 3), np.float32)}, [output]


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({}, [OUT, IN]),
        ({"input_output": 1}, [IN]),
        ({"input_output": 2}, [OUT]),
        ({"dump_mode": 1, "kernels": ["x"]}, [IN]),
    ],
)
def test_files_are_named_as_the_original_names_them(
    tmp_path: Path, settings: dict[str, object], files: list[str]
) -> None:
    folder = write_dump(read_dump(written(tmp_path, **settings)), *run())
    assert folder == tmp_path / "d/default/0"
    assert sorted(path.name for path in folder.iterdir()) == files


def test_every_dump_has_a_folder_of_its_own(tmp_path: Path) -> None:
    dump = read_dump(written(tmp_path, net_name="net"))
    assert [write_dump(dump, *run()).name for _ in range(3)] == ["0", "1", "2"]
    found = np.fromfile(next((tmp_path / "d/net/2").glob("net.y*")), np.int64)
    assert found.tolist() == [0, 1]


def test_the_command_dumps_one_run(
    benchmark: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", written(tmp_path))
    flags = (f"--modelFile={DIGITS}", "--inputShape=x:1,1,8,8", "--numThreads=1", "--loopCount=1")
    done = benchmark(*flags, "--cpuBindMode=0")
    assert (done.code, done.err) == (0, "")
    assert f"Dumped file is saved to : {tmp_path / 'd/default/0'}\n" in done.out
    name = "Default.Softmax-op0_output_0_shape_1_10_Float32_DEFAULT.bin"
    assert np.fromfile(tmp_path / "d/default/0" / name, np.float32).sum() == pytest.approx(1)
    done = benchmark(*flags, "--enableParallelPredict=true")
    assert done.code == 255
    assert done.err.startswith("MINDSPORE_DUMP_CONFIG is for one client; unset it\n")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"path": ""}, "path is '', wanted a folder"),
        ({"dump_mode": 2, "kernels": []}, "dump_mode is 2, wanted 0 or 1"),
        ({"input_output": "0"}, "input_output is '0', wanted 0, 1 or 2"),
        ({"net_name": "../x"}, "net_name is '../x', wanted a name without /"),
        ({"kernels": "x"}, "kernels is 'x', wanted a list of names"),
        ({"kernels": ["x"]}, "kernels need dump_mode 1"),
        ({"dump_mode": 1}, "kernels need dump_mode 1"),
    ],
)
def test_settings_that_make_no_sense(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=r"dump\.json: ") as caught:
        read_dump(written(tmp_path, **settings))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"common_dump_settings": 1}', "\x00", "[" * 9999]
)
def test_what_is_no_configuration(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(ValueError, match="is no JSON object"):
        read_dump(str(tmp_path / "a"))
    with pytest.raises(ValueError, match="cannot read the dump configuration"):
        read_dump(str(tmp_path / "b"))


def test_what_cannot_be_dumped(tmp_path: Path) -> None:
    dump = read_dump(written(tmp_path, dump_mode=1, kernels=["net/conv"]))
    with pytest.raises(InputError, match=r"\['net/conv'\] cannot be dumped, only \['x', 'net/y'\]"):
        write_dump(dump, *run())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot dump to"):
        write_dump(Dump(tmp_path / "file/net", True, True, ()), *run())
    for number in range(1000):
        (tmp_path / "full" / str(number)).mkdir(parents=True)
    with pytest.raises(InputError, match="holds 1000 dumps already"):
        write_dump(Dump(tmp_path / "full", True, True, ()), *run())
