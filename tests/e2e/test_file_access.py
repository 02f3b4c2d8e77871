"""Nothing opens files but core/files.py: a hook of Python sees it, and the kernel enforces it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import onnx
import pytest
from support import landlocked
from support.hostile_onnx import COUNT, PLACES, SECRET

ROOT = Path(__file__).parent.parent.parent

# builds, runs and converts a model with each engine; hostile ones must end in an error of ours
WORK = f"""
import sys, warnings
import numpy as np
import mindspore_lite as mslite
from mindspore_lite.errors import LiteError
folder, out, engine = sys.argv[1:4]
warnings.simplefilter("ignore")
x = np.zeros({COUNT}, np.float32)

def run(path):
    model = mslite.Model()
    settings = {{"common_context": {{"engine": engine}}}}
    model.build_from_file(path, mslite.ModelType.ONNX, config_dict=settings)
    return model.predict([x])[0].get_data_to_numpy()

def convert(path):
    mslite.Converter().convert(mslite.FmkType.ONNX, path, f"{{out}}/made")

print("honest", run(f"{{folder}}/honest.onnx").tobytes() == bytes({SECRET.tobytes()!r}))
convert(f"{{folder}}/honest.onnx")
for name in {list(PLACES)!r}:
    for attempt in (run, convert):
        try:
            attempt(f"{{folder}}/{{name}}.onnx")
            print("taken", name)
        except LiteError:
            pass
print("done")
"""
AUDITED = """
import sys
opened = []
sys.addaudithook(lambda event, a: event == "open" and opened.append(str(a[0])))
exec(compile(sys.stdin.read(), "<work>", "exec"))
for path in opened:
    print("opened", path)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that may be read, and many that name a file outside of their folder."""
    made = tmp_path / "model"
    made.mkdir()
    (tmp_path / "secret").write_bytes(SECRET.tobytes())
    (made / "data").write_bytes(SECRET.tobytes())
    honest = PLACES["initializer"]({"location": "data"})
    onnx.save(honest, made / "honest.onnx")
    for name, make in PLACES.items():
        onnx.save(make({"location": str(tmp_path / "secret")}), made / f"{name}.onnx")
    for name in ("out", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    return made


ENGINES = ("onnxruntime", "openvino", "torch")


@landlocked.needs_landlock
@pytest.mark.parametrize("engine", ENGINES)
def test_packages_the_model_and_the_cache_are_all_that_is_read(folder: Path, engine: str) -> None:
    """For native code, too: the kernel refuses all else."""
    out, cache = folder.parent / "out", folder.parent / "cache"
    done = landlocked.run(
        WORK,
        read=[folder],
        write=[out, cache],
        arguments=[str(folder), str(out), engine],
        environment={"MSLITE_CACHE_DIR": str(cache)},
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("CONVERT")]
    assert (done.returncode, lines) == (0, ["honest True", "done"]), done.stderr
    assert b"TOP-SECRET" not in b"".join(
        p.read_bytes() for p in out.iterdir() if "made" not in p.name
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_python_opens_no_file_that_a_model_has_no_right_to(folder: Path, engine: str) -> None:
    out, cache = folder.parent / "out", folder.parent / "cache"
    done = subprocess.run(
        [sys.executable, "-c", AUDITED, str(folder), str(out), engine],
        input=WORK,
        env={
            "MSLITE_CACHE_DIR": str(cache),
            "PYTHONPATH": str(ROOT),
            "HOME": str(out),
            "TMPDIR": str(out),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    opened = {
        line.removeprefix("opened ") for line in done.stdout.splitlines() if "opened " in line
    }
    allowed = (
        *("/proc/", "/sys/", "/dev/", "/etc/ld.so", "/etc/os-release", "/usr/"),
        *(str(path) for path in (folder, out, cache, ROOT / "mindspore_lite")),
        *(str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib")),
        sys.prefix,
        sys.base_prefix,
    )
    named = {path for path in opened if path.startswith("/")}
    assert any(path.startswith(str(folder)) for path in named), "the hook saw nothing"
    assert not [path for path in named if not path.startswith(allowed)]
