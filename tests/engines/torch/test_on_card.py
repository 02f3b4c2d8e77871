"""The torch engine on a real NVIDIA card; with the CPU in its place see test_card_session.py."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import helper
from support.fake_engine import Client
from support.running import DATA, fixture_arrays
from support.sharing import python, said, tell
from support.torch_graphs import SIDE, computed, dense, model, reshaping, rows, source

from mindspore_lite.engines import sharing
from mindspore_lite.engines.base import Options
from mindspore_lite.engines.torch import program
from mindspore_lite.engines.torch.cards import check, listed
from mindspore_lite.engines.torch.engine import TorchEngine
from mindspore_lite.errors import EngineUnavailableError, ResourceError
from mindspore_lite.graph.source import ModelInput, source_of

pytestmark = pytest.mark.gpu

ENGINE = TorchEngine()
CARD = "cuda:0"
MODELS = ("mobilenet_v3_mini", "swin_mini")


def options(**more: Any) -> Options:
    """For a test: kernels as they come, unless it says otherwise."""
    return Options(device=CARD, **{"tuning": "off", **more})


def close_to(wanted: np.ndarray, got: np.ndarray, tolerance: float) -> None:
    """Within a part of the largest value."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    scale = max(float(np.abs(wanted).max(initial=0)), 1e-6)
    assert float(np.abs(got - wanted).max(initial=0)) <= tolerance * scale


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    """Give back what a test took."""
    yield
    gc.collect()
    torch.cuda.empty_cache()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "more, tolerance",
    [
        ({"tf32": True}, 1e-3),
        ({"tf32": False}, 1e-5),
        ({"precision": "preferred_fp16"}, 1e-2),
        ({"tf32": False, "tuning": "fast"}, 1e-5),
        ({"precision": "preferred_fp16", "tuning": "fast"}, 1e-2),
    ],
)
def test_card_and_cpu_agree(name: str, more: dict[str, Any], tolerance: float) -> None:
    path = DATA / f"models/{name}.mindir"
    given, _ = fixture_arrays(path.with_suffix(".npz"))
    wanted = ENGINE.load(source_of(ModelInput("MINDIR", path)), Options()).run(given)
    session = ENGINE.load(source_of(ModelInput("MINDIR", path)), options(**more))
    for _ in range(2):  # the second replays over what the first left
        for a, b in zip(wanted, session.run(given), strict=True):
            close_to(a, b, tolerance)


def test_one_tuned_model_says_nothing_and_agrees(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(tuning="full", batches=(1, 8)))
    close_to(computed(rows(8)), session.run([rows(8)])[0], 1e-3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("more", [{"tf32": False}, {"precision": "preferred_fp16"}])
@pytest.mark.parametrize("name", MODELS)
def test_a_second_start_follows_the_tape_of_the_first(
    name: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = DATA / f"models/{name}.mindir"
    given, _ = fixture_arrays(path.with_suffix(".npz"))
    first = ENGINE.load(source_of(ModelInput("MINDIR", path)), options(tuning="fast", **more))
    wanted = first.run(given)
    monkeypatch.setattr(program, "lower", lambda *_: pytest.fail("it was lowered again"))
    second = ENGINE.load(source_of(ModelInput("MINDIR", path)), options(tuning="fast", **more))
    for a, b in zip(wanted, second.run(given), strict=True):
        close_to(a, b, 1e-5 if "tf32" in more else 1e-3)


def test_a_second_start_can_change_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = source(tmp_path, dense(rows=2), variable=[("w", ""), ("b", "")])
    ENGINE.load(given, options(tf32=False, tuning="fast"))
    monkeypatch.setattr(program, "lower", lambda *_: pytest.fail("it was lowered again"))
    session = ENGINE.load(given, options(tf32=False, tuning="fast"))
    close_to(computed(rows(2)), session.run([rows(2)])[0], 1e-5)
    session.update({"w": np.eye(SIDE, dtype=np.float32), "b": np.zeros(SIDE, np.float32)})
    close_to(np.maximum(rows(2), 0), session.run([rows(2)])[0], 1e-5)


def test_buckets_pad_and_part(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(batches=(1, 4, 16), tf32=False))
    for count in (1, 2, 4, 9, 16, 40):
        close_to(computed(rows(count)), session.run([rows(count)])[0], 1e-5)
    given = [rows(count, count) for count in (1, 3, 2, 5)]
    for x, (y,) in zip(given, session.run_joined([[x] for x in given]), strict=True):
        close_to(computed(x), y, 1e-5)


def test_tensors_of_the_card_stay_there(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(batches=(8,), tf32=False))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        found = []
        for seed in range(20):
            x = torch.from_numpy(rows(5, seed)).to(CARD, non_blocking=True)
            found.append(session.run([x * 2])[0] + 1)
    stream.synchronize()
    for seed, y in enumerate(found):
        assert y.device == torch.device(CARD)
        close_to(computed(rows(5, seed) * 2) + 1, y.cpu().numpy(), 1e-5)


def test_eight_threads_on_four_twins(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(batches=(1, 4), tf32=False))
    twins = [session, *(session.twin() for _ in range(3))]

    def client(number: int) -> None:
        for turn in range(50):
            x = rows(1 + turn % 6, number * 100 + turn)
            close_to(computed(x), twins[number % 4].run([x])[0], 1e-5)

    for one in [Client(lambda number=number: client(number)) for number in range(8)]:
        one.join(120)
        assert one.error is None and not one.is_alive()


def test_shapes_are_captured_while_others_run(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(tf32=False))
    twin = session.twin()
    running = Client(lambda: [twin.run([rows(2)]) for _ in range(500)])
    for count in range(3, 15):
        close_to(computed(rows(count)), session.run([rows(count)])[0], 1e-5)
    running.join(120)
    assert running.error is None
    for (y,) in running.result:
        close_to(computed(rows(2)), y, 1e-5)


def test_updates_under_load_are_seen_whole(tmp_path: Path) -> None:
    given = source(tmp_path, dense(rows=2), variable=[("w", ""), ("b", "")])
    session = ENGINE.load(given, options(tf32=False))
    ones = np.ones((SIDE, SIDE), np.float32)
    states = [{"w": ones * k, "b": np.full(SIDE, 1000 * k, np.float32)} for k in (1.0, 2.0)]
    session.update(states[0])
    x = np.ones((2, SIDE), np.float32)
    going = [True]

    def client(one: Any) -> set[float]:
        seen: set[float] = set()
        while going:
            seen |= set(np.unique(one.run([x])[0]).tolist())
        return seen

    clients = [Client(lambda s=s: client(s)) for s in (session, session.twin(), session.twin())]
    for at in range(100):
        session.update(states[at % 2])
    going.clear()
    for one in clients:
        one.join(120)
        assert one.error is None
        assert one.result and one.result <= {1016.0, 2032.0}
    assert session._open_program().store.last_update_ms > 0


def test_memory_that_others_clear_is_not_that_of_a_recorded_run(tmp_path: Path) -> None:
    """As torch.compile does when it records: a long product is summed up in scratch memory."""
    deep = 1 << 16
    weights = {"w": np.full((deep, 8), 1 / deep, np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    long = model(nodes, {"x": [8, deep]}, {"y": [8, 8]}, weights)
    session = ENGINE.load(source(tmp_path, long), options())
    given = [np.ones((8, deep), np.float32)]
    for _ in range(3):
        close_to(np.ones((8, 8), np.float32), session.run(given)[0], 1e-3)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def test_a_graph_that_depends_on_data_runs(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, reshaping()), options())
    x = np.arange(6, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match="runs step by step"):
        (y,) = session.run([x, np.array([2, 3])])
    np.testing.assert_array_equal(y, x.reshape(2, 3))


def test_a_full_card_is_survived(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense()), options(tf32=False))
    close_to(computed(rows(2)), session.run([rows(2)])[0], 1e-5)
    free, _ = torch.cuda.mem_get_info(0)
    filled = torch.empty(max(0, free - (64 << 20)), dtype=torch.uint8, device=CARD)
    with pytest.raises(ResourceError, match="MiB are free: use fewer workers"):
        session.run([rows(4 << 20)])  # 256 MiB
    close_to(computed(rows(2)), session.run([rows(2)])[0], 1e-5)
    del filled
    torch.cuda.empty_cache()
    close_to(computed(rows(3)), session.run([rows(3)])[0], 1e-5)


def test_twins_add_no_weights(tmp_path: Path) -> None:
    session = ENGINE.load(source(tmp_path, dense(rows=2)), options())
    store = session._open_program().store
    before = store.size_bytes
    twins = [session.twin() for _ in range(4)]
    assert store.size_bytes == before
    assert all(twin._open_program().store is store for twin in twins)


def test_a_closed_model_gives_its_memory_back(tmp_path: Path) -> None:
    def used() -> int:
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated(0)

    before = used()
    session = ENGINE.load(source(tmp_path, dense(rows=4096)), options())
    twin = session.twin()
    session.run([rows(4096)])
    assert used() > before
    session.close()
    twin.close()
    del session, twin
    assert used() <= before


def test_cards_are_listed_and_a_wrong_number_is_told() -> None:
    found = listed("cuda")
    assert found[0].device == CARD and found[0].memory_bytes > 1 << 30 and found[0].name
    with pytest.raises(EngineUnavailableError, match="visible to this process"):
        check(f"cuda:{len(found)}")


# --- sharing ---

_BORROWER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from support.torch_graphs import computed, rows, written
from mindspore_lite.engines.base import Options
from mindspore_lite.engines.sharing import open_shared
from mindspore_lite.engines.torch.engine import TorchEngine
print(os.getpid(), flush=True)
options = Options(device="cuda:0", tuning="off", tf32=False)
try:
    handle = int(input())  # by now the model is written
    given = written(Path(sys.argv[2]))
    session = open_shared(TorchEngine(), given, options, "gpu:0", handle)
    print(abs(session.run([rows(3)])[0] - computed(rows(3))).max() < 1e-3, flush=True)
    print(session._open_program().store.flat is None, flush=True)
    input()
    print(abs(session.run([rows(3)])[0] - computed(rows(3))).max() < 1e-3, flush=True)
except Exception as exc:
    print(type(exc).__name__, exc, flush=True)
"""


def test_another_process_maps_the_weights_if_it_is_listed(tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    with python(_BORROWER, tests, tmp_path) as listed_, python(_BORROWER, tests, tmp_path) as other:
        pid = int(said(listed_))
        said(other)
        given = source(tmp_path, dense(rows=3))
        own, share = sharing.load_shared(ENGINE, given, options(tf32=False), "gpu:0", (pid,))
        for child in (listed_, other):
            tell(child, share.handle)
        assert said(listed_) == "True"
        assert said(listed_) == "True"  # it made no buffer of its own
        assert "is not in the shareable_weight_pid_list" in said(other)
        share.close()
        own.close()
        del own
        gc.collect()
        filler = [torch.full((1 << 20,), 7.0, device=CARD) for _ in range(64)]  # over freed memory
        tell(listed_, "go on")
        assert said(listed_) == "True"  # what it has mapped is still there
        del filler


def test_a_process_that_asks_itself_gets_a_copy(tmp_path: Path) -> None:
    given = source(tmp_path, dense(rows=3))
    own, share = sharing.load_shared(ENGINE, given, options(tf32=False), "gpu:0", (os.getpid(),))
    session = sharing.open_shared(ENGINE, given, options(tf32=False), "gpu:0", share.handle)
    close_to(computed(rows(3)), session.run([rows(3)])[0], 1e-5)
    own.close()
    share.close()
