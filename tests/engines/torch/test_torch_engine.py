"""The torch engine: its cache, what a model is known by, weights that may change, sharing."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from support.fake_card import FakeCard
from support.sharing import python, said, tell
from support.torch_graphs import computed, dense, model, rows, source, weight

from mindspore_lite.engines import sharing
from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.torch import engine as engines
from mindspore_lite.engines.torch.engine import TorchEngine
from mindspore_lite.errors import ResourceError, UnsupportedOpError
from mindspore_lite.weights.sharing.hold import unheld

ENGINE = TorchEngine()


class Counted:
    """A ModelSource that counts how often it is translated."""

    def __init__(self, folder: Path, variable: Any = (), **more: Any) -> None:
        made = source(folder, dense(), variable)
        self.count = 0
        self._translate = made.translate
        self.source = ModelSource(made.snapshot, "", self.translate, variable=made.variable, **more)

    def translate(self) -> ir.Model:
        self.count += 1
        return self._translate()


def check(session: Any, factor: float = 1.0) -> None:
    np.testing.assert_allclose(session.run([rows(3)])[0], computed(rows(3), factor), rtol=1e-5)


def artefacts(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if len(path.name) == 64]


def test_a_second_load_neither_translates_nor_copies(tmp_path: Path, cache_place: Path) -> None:
    given = Counted(tmp_path)
    check(ENGINE.load(given.source, Options()))
    session = ENGINE.load(given.source, Options())
    check(session)
    assert given.count == 1
    assert session.info.mapped
    (folder,) = artefacts(cache_place)
    assert (folder / "weights.bin").stat().st_size >= weight().nbytes
    parameter = session._program.plan(((3, 16),)).run.w
    assert "weights.bin" in _mapping_of(parameter.data_ptr())


def _mapping_of(address: int) -> str:
    """The line of this process's memory map in which an address lies."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, _, end = line.split()[0].partition("-")
        if int(begin, 16) <= address < int(end, 16):
            return line
    return ""


def test_a_damaged_artefact_is_built_again(tmp_path: Path, cache_place: Path) -> None:
    given = Counted(tmp_path)
    ENGINE.load(given.source, Options())
    (folder,) = artefacts(cache_place)
    for name, bad in (("model.onnx", b"\x08"), ("weights.bin", b"")):
        os.chmod(folder / name, stat.S_IRUSR | stat.S_IWUSR)
        (folder / name).write_bytes(bad)
        check(ENGINE.load(given.source, Options()))
    assert given.count == 3


def test_without_a_cache_models_run_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    given = Counted(tmp_path, variable=[("w", "")])
    session = ENGINE.load(given.source, Options())
    check(session)
    assert not session.info.mapped
    np.testing.assert_array_equal(session.info.variables[0].first, weight())
    session.update({"w": weight(2.0)})
    check(session, 2.0)


def test_what_may_not_be_stored_is_not(tmp_path: Path, cache_place: Path) -> None:
    check(ENGINE.load(Counted(tmp_path, storable=False).source, Options()))
    assert not cache_place.exists()


def test_a_cache_that_cannot_be_used_is_warned_of(tmp_path: Path, cache_place: Path) -> None:
    cache_place.write_text("no directory")
    with pytest.warns(RuntimeWarning, match="compiled model not kept"):
        check(ENGINE.load(Counted(tmp_path).source, Options()))


def test_a_model_too_large_for_the_cache_runs_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", "100")
    with pytest.warns(RuntimeWarning, match="MSLITE_CACHE_MAX_BYTES allows 100"):
        check(ENGINE.load(Counted(tmp_path).source, Options()))


def test_variable_weights_change_in_a_session_or_are_loaded_changed(tmp_path: Path) -> None:
    given = Counted(tmp_path, variable=[("w", "")])
    session = ENGINE.load(given.source, Options())
    check(session)
    changed = ModelSource(
        given.source.snapshot, "", given.translate, True, (("w", ""),), {"w": weight(3.0)}
    )
    check(ENGINE.load(changed, Options()), 3.0)
    session.update({"w": weight(2.0)})
    check(session, 2.0)
    check(ENGINE.load(given.source, Options()))  # the file is as it was
    (variable,) = session.info.variables
    assert (variable.name, variable.shape, variable.dtype) == ("w", (16, 16), np.float32)
    np.testing.assert_array_equal(variable.first, weight())


def test_the_skeleton_is_the_graph_before_the_passes(tmp_path: Path) -> None:
    from mindspore_lite.passes.shapes import output_shapes

    session = ENGINE.load(Counted(tmp_path).source, Options())
    assert output_shapes(session.skeleton(), {"x": (5, 16)}) == [(5, 16)]
    assert len(session.skeleton()) < weight().nbytes


def test_a_model_is_known_by_content_engine_and_kind_of_device(tmp_path: Path) -> None:
    given = Counted(tmp_path).source
    own = ENGINE.identity(given, Options())
    assert own == ENGINE.identity(given, Options(precision="preferred_fp16", threads=4))
    assert own != ENGINE.identity(given, Options(device="cuda:0"))
    one, two = (ENGINE.identity(given, Options(device=f"cuda:{n}")) for n in range(2))
    assert one == two
    assert own.settings != OnnxRuntimeEngine().identity(given, Options()).settings


@pytest.mark.parametrize(
    "options, why",
    [
        ({"precision": "fp8"}, "precision is 'fp8', wanted one of enforce_fp32"),
        ({"tuning": "most"}, "tuning is 'most', wanted one of fast, full, off"),
        ({"device": "tpu:0"}, "device is 'tpu:0'"),
    ],
)
def test_settings_that_mean_nothing_are_told_first(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    given = Counted(tmp_path)
    with pytest.raises(ValueError, match=why):
        ENGINE.load(given.source, Options(**options))
    assert given.count == 0


def test_operators_without_a_kernel_are_named(tmp_path: Path) -> None:
    import onnx

    nodes = [onnx.helper.make_node("Mystery", ["x"], ["y"], domain="some.where", name="odd")]
    made = model(nodes, {"x": [2]}, {"y": [2]})
    made.opset_import.append(onnx.helper.make_opsetid("some.where", 1))
    with pytest.raises(UnsupportedOpError, match=r"some.where::Mystery \(node 'odd'\)"):
        ENGINE.load(source(tmp_path, made), Options())


# --- sharing ---

_BORROWER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.torch_graphs import computed, rows, written
from mindspore_lite.engines.base import Options
from mindspore_lite.engines.sharing import open_shared
from mindspore_lite.engines.torch.engine import TorchEngine
print(os.getpid(), flush=True)
try:
    handle = int(input())  # by now the model is written
    given = written(Path(sys.argv[2]))
    session = open_shared(TorchEngine(), given, Options(), "cpu", handle)
    print(abs(session.run([rows(3)])[0] - computed(rows(3))).max() < 1e-4, flush=True)
except Exception as exc:
    print(type(exc).__name__, exc, flush=True)
"""


def test_another_process_uses_the_same_pages_if_it_is_listed(tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    with python(_BORROWER, tests, tmp_path) as listed, python(_BORROWER, tests, tmp_path) as other:
        pid = int(said(listed))
        said(other)
        given = source(tmp_path, dense())
        _, share = sharing.load_shared(ENGINE, given, Options(), "cpu", (pid,))
        for child in (listed, other):
            tell(child, share.handle)
        assert said(listed) == "True"
        assert "is not in the shareable_weight_pid_list" in said(other)
        share.close()


def test_what_a_session_on_a_card_exports_reaches_the_borrower(
    tmp_path: Path, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopted: list[bytes] = []
    exports = iter([b"one", b"two"])
    monkeypatch.setattr(engines.ipc, "adopt", lambda store, extra: adopted.append(extra))
    monkeypatch.setattr(engines.CardSession, "export", lambda self: next(exports))
    options = Options(device="cuda:0")
    given = source(tmp_path, dense())
    owner, share = sharing.load_shared(ENGINE, given, options, "gpu:0", (os.getpid(),))
    for _ in range(2):  # each gets an export of its own
        session = sharing.open_shared(ENGINE, given, options, "gpu:0", share.handle)
        check(session)
    assert adopted == [b"one", b"two"]
    check(owner)
    share.close()


def test_a_model_that_fails_to_open_is_held_for_nobody(
    tmp_path: Path, cache_place: Path, card: FakeCard
) -> None:
    card.failures = [torch.OutOfMemoryError("CUDA out of memory.")]
    given = source(tmp_path, dense(rows=2))
    with pytest.raises(ResourceError):
        sharing.load_shared(ENGINE, given, Options(device="cuda:0"), "gpu:0", (os.getpid(),))
    (folder,) = artefacts(cache_place)
    with unheld(folder) as free:
        assert free
