"""Files that change while a model is built: the old model, the new one, or an error; no mixture.

In the manner of SQLite's tests: one fault after the k-th access to a file, for all k.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hostile_onnx import FLOAT
from support.mindir_builder import Net, encode
from support.split_builder import split

import mindspore_lite as mslite
from mindspore_lite.core import files, snapshot
from mindspore_lite.errors import ModelFileError

onnx = pytest.importorskip("onnx")
SIDE = 48
X = np.ones((1, SIDE), np.float32)


def mindir(folder: Path, value: float) -> None:
    (folder / "net.mindir").write_bytes(_mindir(value))


def split_mindir(folder: Path, value: float) -> None:
    split(_mindir(value), folder)


def _mindir(value: float) -> bytes:
    net = Net()
    weight = np.full((SIDE, SIDE), value, np.float32)
    product = net.call("MatMulExt", net.input("x", (1, SIDE)), net.weight("w", weight))
    return encode(net.model(net.call("Add", product, net.weight("b", weight[0]))))


def external_onnx(folder: Path, value: float) -> None:
    weights = []
    data = np.full((SIDE + 1, SIDE), value, np.float32).tobytes()
    for name, dims, offset in (("w", [SIDE, SIDE], 0), ("b", [SIDE], SIDE * SIDE * 4)):
        tensor = onnx.TensorProto(name=name, data_type=FLOAT, dims=dims)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, entry in {"location": "net.data", "offset": offset}.items():
            tensor.external_data.add(key=key, value=str(entry))
        weights.append(tensor)
    make = onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [make("MatMul", ["x", "w"], ["m"]), make("Add", ["m", "b"], ["y"])],
        f"g{value}",
        [onnx.helper.make_tensor_value_info("x", FLOAT, [1, SIDE])],
        [onnx.helper.make_tensor_value_info("y", FLOAT, [1, SIDE])],
        weights,
    )
    opsets = [onnx.helper.make_opsetid("", 21)]
    made = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    (folder / "net.data").write_bytes(data)


def plain_onnx(folder: Path, value: float) -> None:
    external_onnx(folder, value)
    path = folder / "net.onnx"
    made = onnx.load(path, load_external_data=False)
    for tensor in made.graph.initializer:
        array = np.full(tuple(tensor.dims), value, np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    path.write_bytes(made.SerializeToString())
    (folder / "net.data").unlink()


LAYOUTS: dict[str, Callable[[Path, float], None]] = {
    "net.mindir": mindir,
    "net_graph.mindir": split_mindir,
    "net.onnx": external_onnx,
}
OLD, NEW = 1.0, 2.0


def answer(value: float) -> float:
    return value * (SIDE + 1)


class Fault:
    """What happens to the files, once."""

    def __init__(self, folder: Path, kind: str, write: Callable[[Path, float], None]) -> None:
        self.folder, self.kind, self.write = folder, kind, write
        self.left = -1  # accesses until then
        self.seen = 0
        self.busy = False

    def access(self) -> None:
        """One access to a file."""
        if self.busy:
            return
        self.seen += 1
        if self.seen == self.left:
            self.busy = True
            self._strike()
            self.busy = False

    def _strike(self) -> None:
        own = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        if self.kind == "cut":
            for path in own:
                os.truncate(path, path.stat().st_size // 2)
        elif self.kind == "unlinked":
            for path in own:
                path.unlink()
        elif self.kind == "overwritten":
            self.write(self.folder, NEW)  # in place: the inodes stay
        else:
            fresh = self.folder.with_name("fresh")
            fresh.mkdir()
            self.write(fresh, NEW)
            for path in sorted(p for p in fresh.rglob("*") if p.is_file()):
                path.replace(self.folder / path.relative_to(fresh))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fault]]:
    """Every access that core/files.py makes is told to the fault in the list; pieces are small."""
    faults: list[Fault] = []

    def telling(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            result = real(*arguments, **more)
            if faults:
                faults[0].access()
            return result

        return call

    class Os:
        def __getattr__(self, name: str) -> Any:
            found = getattr(os, name)
            return telling(found) if name in ("open", "fstat", "preadv") else found

    monkeypatch.setattr(files, "os", Os())
    monkeypatch.setattr(files, "_openat2", telling(files._openat2))
    monkeypatch.setattr(files, "_CHUNK_BYTES", 4096)
    yield faults


def built(path: Path) -> float:
    """The one number of all outputs; another means that old and new weights were mixed."""
    kind = mslite.ModelType.ONNX if path.suffix == ".onnx" else mslite.ModelType.MINDIR
    model = mslite.Model()
    model.build_from_file(str(path), kind)
    (found,) = {float(v) for v in model.predict([X])[0].get_data_to_numpy().ravel()}
    return found


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize("kind", ["cut", "overwritten", "replaced", "unlinked"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_fault_after_any_access_gives_a_whole_model_or_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counted: list[Fault],
    name: str,
    kind: str,
    cache: str,
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cache)
    ends = set()
    for left in range(1, 1000):
        monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / f"cache{left}"))
        folder = tmp_path / str(left) / "model"
        folder.mkdir(parents=True)
        LAYOUTS[name](folder, OLD)
        fault = Fault(folder, kind, LAYOUTS[name])
        fault.left = left
        counted[:] = [fault]
        try:
            found = built(folder / name)
            assert found in (answer(OLD), answer(NEW)), f"a mixture after {left} accesses"
            ends.add(found)
        except ModelFileError:
            ends.add(0.0)
        counted.clear()
        if fault.seen < left:
            break  # the build is over before that
        if kind in ("overwritten", "replaced"):  # nothing wrong was kept, either
            assert built(folder / name) == answer(NEW)
    assert left > 8, "the accesses were not seen"
    whole = name == "net.mindir" and kind in ("replaced", "unlinked")  # one file, held open
    assert ends == {answer(OLD)} if whole else ends >= {0.0, answer(OLD)}


@pytest.mark.parametrize("kind", ["cut", "overwritten", "replaced", "unlinked"])
@pytest.mark.parametrize("layout", [plain_onnx, external_onnx])
def test_a_fault_while_converting_gives_a_whole_model_or_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counted: list[Fault],
    layout: Callable[[Path, float], None],
    kind: str,
) -> None:
    """Weights are read when they are written, so a fault may come between any two pieces."""
    monkeypatch.setenv("MSLITE_CACHE", "off")
    monkeypatch.setattr(snapshot, "RACY_NS", 0)  # or all would be read at once
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 4096)
    ends = set()
    for left in range(1, 1000):
        folder = tmp_path / str(left) / "model"
        folder.mkdir(parents=True)
        layout(folder, OLD)
        for path in folder.iterdir():
            os.utime(path, (1e9, 1e9))  # any change is a later one, however coarse the clock
        fault = Fault(folder, kind, layout)
        fault.left = left
        counted[:] = [fault]
        result = tmp_path / str(left) / "net.mindir"
        try:
            mslite.Converter().convert(mslite.FmkType.ONNX, str(folder / "net.onnx"), str(result))
            counted.clear()
            found = built(result)
            assert found in (answer(OLD), answer(NEW)), f"a mixture after {left} accesses"
            ends.add(found)
        except ModelFileError:
            ends.add(0.0)
            assert not result.exists()
        counted.clear()
        if fault.seen < left:
            break  # the conversion is over before that
    assert left > 8, "the accesses were not seen"
    assert answer(OLD) in ends
    assert 0.0 in ends or kind == "unlinked"
