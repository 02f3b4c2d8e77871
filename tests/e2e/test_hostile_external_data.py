"""No model reads a file that it must not: every place x every way in x every bad target."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.hostile_onnx import COUNT, PLACES, SECRET, Entries, named, targets
from support.mindir_builder import Net, encode
from support.workers import host_here

import mindspore_lite as mslite
from mindspore_lite.cli import converter_lite as converter_script
from mindspore_lite.cli.main import main
from mindspore_lite.errors import LiteError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.remote.wire.bodies import MODEL, Build
from mindspore_lite.remote.wire.client import WireSession

Way = Callable[[Path, Path], bytes]  # a model and a folder for results in, what it gave away out
ONNX, MINDIR = mslite.ModelType.ONNX, mslite.ModelType.MINDIR


def _kind(model: Path) -> mslite.ModelType:
    return ONNX if model.suffix == ".onnx" else MINDIR


def _engine(name: str) -> Way:
    def run(model: Path, out: Path) -> bytes:
        found = mslite.Model()
        settings = {"common_context": {"engine": name}}
        found.build_from_file(str(model), _kind(model), config_dict=settings)
        return found.predict([np.zeros(COUNT, np.float32)])[0].get_data_to_numpy().tobytes()

    return run


def _runner(model: Path, out: Path) -> bytes:
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(model))
        return runner.predict([np.zeros(COUNT, np.float32)])[0].get_data_to_numpy().tobytes()


def _converter(model: Path, out: Path) -> bytes:
    kind = mslite.FmkType.ONNX if model.suffix == ".onnx" else mslite.FmkType.MINDIR
    mslite.Converter().convert(kind, str(model), str(out / "made"))
    return _written(out)


def _command(start: Callable[[], object], *arguments: str) -> Way:
    def run(model: Path, out: Path) -> bytes:
        names = {"MODEL": str(model), "OUT": str(out / "made"), "FMK": _kind(model).name}
        words = [part.format(**names) for part in arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            with contextlib.suppress(SystemExit):
                start()
        return _written(out)

    return run


def _quantise(model: Path, out: Path) -> bytes:
    samples = out / "samples"
    samples.mkdir(exist_ok=True)
    np.save(samples / "0.npy", np.zeros(COUNT, np.float32))
    settings = out / "quant.cfg"
    settings.write_text(
        "[common_quant_param]\nquant_type=FULL_QUANT\nbit_num=8\n"
        f"[data_preprocess_param]\ncalibrate_path=x:{samples}\ninput_type=BIN\ncalibrate_size=1\n"
        "[full_quant_param]\ntarget_device=DSP\n"
    )
    words = "--fmk={FMK} --modelFile={MODEL} --outputFile={OUT} --configFile=" + str(settings)
    return _command(converter_script.main, "converter_lite", *words.split())(model, out)


def _written(out: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file())


def _worker(session: WireSession) -> Way:
    def run(model: Path, out: Path) -> bytes:
        found = session.build(Build(MODEL, _kind(model).value, str(model)))
        try:
            return bytes(found.predict([np.zeros(COUNT, np.float32)])[0].tobytes())
        finally:
            found.close()

    return run


WAYS: dict[str, Way] = {
    "Model on onnxruntime": _engine("onnxruntime"),
    "Model on openvino": _engine("openvino"),
    "Model on torch": _engine("torch"),
    "ModelParallelRunner": _runner,
    "Converter": _converter,
    "converter_lite": _command(
        converter_script.main, "converter_lite", "--fmk={FMK}", "--modelFile={MODEL}",
        "--outputFile={OUT}",
    ),
    "quantisation": _quantise,
    "mslite convert": _command(main, "mslite", "convert", "{MODEL}", "{OUT}"),
    "mslite inspect": _command(main, "mslite", "inspect", "{MODEL}", "--html", "{OUT}"),
    "mslite run": _command(main, "mslite", "run", "{MODEL}", "--save", "{OUT}.npz"),
    "mslite bench": _command(main, "mslite", "bench", "{MODEL}", "--duration", "1"),
    "a worker": lambda model, out: b"",  # set by the fixture
}  # fmt: skip


def _mindir(entries: Entries) -> bytes:
    net = Net()
    y = net.call("Add", net.input("x", (COUNT,)), net.weight("w", SECRET * 0))
    proto = pb.Model.FromString(encode(net.model(y)))
    (weight,) = proto.graph.parameter
    weight.ClearField("raw_data")
    weight.external_data.location = str(entries["location"])
    for key in ("offset", "length"):
        value = int(str(entries.get(key, 64 if key == "offset" else SECRET.nbytes)))
        setattr(weight.external_data, key, max(-(2**63), min(2**63 - 1, value)))
    return proto.SerializeToString()


MODELS: dict[str, tuple[str, Callable[[Entries], bytes]]] = {
    name: ("m.onnx", lambda entries, make=make: make(entries).SerializeToString())  # type: ignore
    for name, make in PLACES.items()
}
MODELS["weight of a MindIR"] = ("m.mindir", _mindir)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all files that Python opens; audit hooks cannot be removed, so it is shared."""
    _OPENED.clear()
    if not _HOOKED:
        sys.addaudithook(_note)
        _HOOKED.append(True)
    return _OPENED


_OPENED: list[str] = []
_HOOKED: list[bool] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        _OPENED.append(str(arguments[0]))


@pytest.fixture(scope="module")
def session() -> Iterator[WireSession]:
    with host_here() as host:
        yield host.session()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", MODELS)
def test_no_way_in_reads_a_file_that_a_model_must_not_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: list[str],
    request: pytest.FixtureRequest,
    way: str,
    place: str,
) -> None:
    folder, working = tmp_path / "model", tmp_path / "cwd"
    folder.mkdir()
    working.mkdir()
    monkeypatch.chdir(working)
    enter = _worker(request.getfixturevalue("session")) if way == "a worker" else WAYS[way]
    name, make = MODELS[place]
    for target, entries in targets(folder, working).items():
        (folder / name).write_bytes(make(entries))
        out = tmp_path / target
        out.mkdir()
        opened.clear()
        given = b""
        with contextlib.suppress(LiteError), warnings.catch_warnings(action="ignore"):
            given = enter(folder / name, out)
        assert b"TOP-SECRET" not in given, target
        assert not any("secret" in path for path in opened), target


@pytest.mark.parametrize("way", ["Model on onnxruntime", "Model on openvino", "Model on torch"])
def test_an_honest_neighbour_is_read(tmp_path: Path, way: str) -> None:
    """Otherwise the test above would prove nothing."""
    (tmp_path / "data").write_bytes(SECRET.tobytes())
    model = PLACES["initializer"]({"location": "data"})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert b"TOP-SECRET" in WAYS[way](tmp_path / "m.onnx", tmp_path)


def test_weights_that_reach_into_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(SECRET.tobytes() * 2)
    made: onnx.ModelProto = PLACES["initializer"]({"location": "data", "offset": 0})
    made.graph.initializer.append(named({"location": "data", "offset": 32}, "v"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(LiteError, match="weights 'w' and 'v' overlap in the data file 'data'"):
        WAYS["Model on onnxruntime"](tmp_path / "m.onnx", tmp_path)


def test_tied_weights_may_share_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(SECRET.tobytes())
    made: onnx.ModelProto = PLACES["initializer"]({"location": "data"})
    made.graph.initializer.append(named({"location": "data"}, "v"))
    made.graph.node[0].input[0] = "v"
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    got = WAYS["Model on onnxruntime"](tmp_path / "m.onnx", tmp_path)
    assert got == (SECRET + SECRET).tobytes()
