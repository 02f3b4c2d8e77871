from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from engines.conftest import model, tensor
from onnx import helper
from support.pages import weight_pages
from support.snapshots import snapshot

from mindspore_lite.engines.base import Group, ModelSource, Options, Session
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.onnxruntime import shared_weights
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.onnxruntime.shared_weights import SharedWeights
from mindspore_lite.errors import EngineError

SIDE = 256  # 256 KiB a weight, and as much packed
PAGES = SIDE * SIDE * 4 // 4096


def chain(path: Path, rows: int, seeds: list[int]) -> ModelSource:
    """x @ w0 @ w1 ... for x of so many rows, each weight as its seed says."""
    made = [np.random.default_rng(seed).random((SIDE, SIDE), np.float32) - 0.5 for seed in seeds]
    weights = {f"w{at}": weight for at, weight in enumerate(made)}
    nodes = [
        helper.make_node("MatMul", [f"x{at}" if at else "x", name], [f"x{at + 1}"])
        for at, name in enumerate(weights)
    ]
    ends = [tensor("x", [rows, SIDE])], [tensor(f"x{len(nodes)}", [rows, SIDE])]
    path.write_bytes(model(nodes, *ends, weights).SerializeToString())
    return ModelSource(snapshot(path), "", lambda: ir.load(path))


def load(source: ModelSource, group: Group | None = None) -> Session:
    return OnnxRuntimeEngine().load(source, Options(group=group))


def answer(session: Session) -> np.ndarray:
    rows = session.info.inputs[0].shape[0]
    (found,) = session.run([np.random.default_rng(9).random((rows, SIDE), np.float32)])
    return found


def opened(tmp_path: Path, *seeds: list[int], group: Group | None) -> list[Session]:
    """Models of 3, 4, 5 ... rows, run once, as their results are without a group."""
    sources = [chain(tmp_path / f"{at}.onnx", at + 3, s) for at, s in enumerate(seeds)]
    wanted = [answer(load(source)) for source in sources]
    sessions = [load(source, group) for source in sources]
    for session, want in zip(sessions, wanted, strict=True):
        np.testing.assert_array_equal(answer(session), want)
    return sessions


def shared() -> Group:
    return Group(SharedWeights())


def distinct(cache: Path) -> int:
    """How many weights' worth of pages are in memory; packed weights alone are, after a run."""
    gc.collect()
    return len(set(weight_pages(cache))) // PAGES


def test_equal_weights_are_in_memory_once(tmp_path: Path, cache_place: Path) -> None:
    apart = opened(tmp_path, [1, 2], [1, 2], group=None)
    assert distinct(cache_place) == 4
    apart.clear()
    together = opened(tmp_path, [1, 2], [1, 2], group=shared())
    assert distinct(cache_place) == 2
    assert len(weight_pages(cache_place)) == 4 * PAGES  # each maps them for itself
    assert len(together) == 2


def test_of_three_models_each_weight_is_in_memory_once(tmp_path: Path, cache_place: Path) -> None:
    sessions = opened(tmp_path, [1, 2, 3], [3, 4, 1], [4, 5, 2], group=shared())
    assert distinct(cache_place) == 5
    assert len({inode for inode, _ in weight_pages(cache_place)}) == len(sessions)


def test_groups_share_nothing_with_each_other_nor_with_others(
    tmp_path: Path, cache_place: Path
) -> None:
    source, other = (chain(tmp_path / f"{rows}.onnx", rows, [1]) for rows in (3, 4))
    sessions = [load(source, shared()), load(other, shared()), load(other)]
    for session in sessions:
        answer(session)
    assert distinct(cache_place) == 2


def test_opening_the_same_model_again_and_again_is_remembered_once(tmp_path: Path) -> None:
    weights = SharedWeights()
    source, other = (chain(tmp_path / f"{rows}.onnx", rows, [1, 2]) for rows in (3, 4))
    for _ in range(3):
        load(source, Group(weights)).close()
        load(other, Group(weights)).close()
    assert sum(len(known) for known in weights._known.values()) == 2


def test_a_transposed_weight_is_another_although_its_raw_form_is_the_same(
    tmp_path: Path, cache_place: Path
) -> None:
    """Packed forms differ by how the weight is used."""
    weight = np.random.default_rng(1).random((SIDE, SIDE), np.float32)
    sessions = []
    group = shared()
    for flag in (0, 1):
        nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], transB=flag)]
        ends = [tensor("x", [1, SIDE])], [tensor("y", [1, SIDE])]
        path = tmp_path / f"{flag}.onnx"
        path.write_bytes(model(nodes, *ends, {"w": weight}).SerializeToString())
        sessions.append(load(ModelSource(snapshot(path), "", partial(ir.load, path)), group))
    x = np.random.default_rng(9).random((1, SIDE), np.float32)
    for session, want in zip(sessions, (x @ weight, x @ weight.T), strict=True):
        (found,) = session.run([x])
        np.testing.assert_allclose(found, want, rtol=1e-4)
    assert distinct(cache_place) == 2


def test_weights_below_a_page_stay_where_they_are(tmp_path: Path) -> None:
    made = []
    for rows in (2, 3):
        path = tmp_path / f"{rows}.onnx"
        nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
        ends = [tensor("x", [rows, 512])], [tensor("y", [rows, 512])]
        weights = {"w": np.arange(512, dtype=np.float32)}
        path.write_bytes(model(nodes, *ends, weights).SerializeToString())
        made.append(ModelSource(snapshot(path), "", partial(ir.load, path)))
    group = shared()
    for rows, source in zip((2, 3), made, strict=True):
        session = load(source, group)
        (found,) = session.run([np.ones((rows, 512), np.float32)])
        np.testing.assert_array_equal(found, np.broadcast_to(np.arange(512), (rows, 512)))
    assert group.weights is not None
    assert group.weights._known == {}


def test_a_model_without_large_weights_goes_well_with_a_group(tmp_path: Path) -> None:
    path = tmp_path / "plain.onnx"
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    path.write_bytes(model(nodes, [tensor("x", [2])], [tensor("y", [2])]).SerializeToString())
    source = ModelSource(snapshot(path), "", lambda: ir.load(path))
    group = shared()
    for _ in range(2):
        (found,) = load(source, group).run([np.ones(2, np.float32)])
        np.testing.assert_array_equal(found, [-1, -1])


def test_the_second_goes_on_when_the_first_is_closed_and_removed(
    tmp_path: Path, cache_place: Path
) -> None:
    first, second = opened(tmp_path, [1, 2], [1, 2], group=shared())
    want = answer(second)
    first.close()
    for folder in cache_place.glob("?" * 64):
        shutil.rmtree(folder)
    np.testing.assert_array_equal(answer(second), want)
    assert distinct(cache_place) == 2


def test_what_was_removed_from_the_cache_is_not_looked_for(
    tmp_path: Path, cache_place: Path
) -> None:
    group = shared()
    sources = [chain(tmp_path / f"{rows}.onnx", rows, [1, 2]) for rows in (3, 4, 5)]
    wanted = [answer(load(source)) for source in sources]
    first = load(sources[0], group)
    answer(first)
    ((inode, _), *_) = weight_pages(cache_place)
    for folder in cache_place.glob("?" * 64):
        if (folder / artefact.WEIGHTS).stat().st_ino == inode:
            shutil.rmtree(folder)
    sessions = [first, *(load(source, group) for source in sources[1:])]
    found = [answer(session) for session in sessions]
    for result, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(result, want)
    assert distinct(cache_place) == 4  # the removed file's, and those that the other two share
    assert group.weights is not None
    assert all(place.there() for known in group.weights._known.values() for place in known)


@pytest.mark.parametrize("when", ["before it opens", "after it opened"])
def test_a_file_that_is_exchanged_at_the_last_moment_is_not_used(
    tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = shared()
    sources = [chain(tmp_path / f"{rows}.onnx", rows, [1, 2]) for rows in (3, 4)]
    want = answer(load(sources[1]))
    first = load(sources[0], group)
    assert group.weights is not None
    (file,) = {place.file for known in group.weights._known.values() for place in known}

    def exchange() -> None:
        size = file.stat().st_size
        file.unlink()
        file.write_bytes(bytes(size))

    genuine = group.weights.opened

    def opened_meanwhile(folder: Path, load: Callable[..., Session]) -> Session:
        def with_exchange(model: str | bytes, more: dict[str, str]) -> Session:
            if isinstance(model, str):
                return load(model, more)
            if when == "before it opens":
                exchange()
            session = load(model, more)
            if when == "after it opened":
                exchange()
            return session

        return genuine(folder, with_exchange)

    monkeypatch.setattr(group.weights, "opened", opened_meanwhile)
    np.testing.assert_array_equal(answer(load(sources[1], group)), want)
    first.close()


def test_a_model_that_cannot_be_opened_elsewhere_is_opened_from_its_own_file(
    tmp_path: Path,
) -> None:
    weights = SharedWeights()
    for rows in (3, 4):
        load(chain(tmp_path / f"{rows}.onnx", rows, [1]), Group(weights))
    folder = next(iter(weights._known.values()))[0].file.parent
    other = SharedWeights()
    other._known = {
        likeness: tuple(replace(place, file=_linked(place.file, tmp_path)) for place in places)
        for likeness, places in weights._known.items()
    }

    def refuses_bytes(model: str | bytes, more: dict[str, str]) -> str:
        if isinstance(model, bytes):
            raise EngineError("not from there")
        assert more == {}
        return model

    assert other.opened(folder, refuses_bytes) == str(folder / artefact.MODEL)


def _linked(file: Path, folder: Path) -> Path:
    """The same file by another name."""
    (folder / "link").symlink_to(file)
    return folder / "link"


def test_a_damaged_graph_is_built_again(tmp_path: Path, cache_place: Path) -> None:
    source = chain(tmp_path / "a.onnx", 3, [1])
    want = answer(load(source))
    (file,) = cache_place.glob(f"*/{artefact.MODEL}")
    before = file.stat()
    file.chmod(0o600)
    file.write_bytes(b"\xff" * before.st_size)
    np.testing.assert_array_equal(answer(load(source, shared())), want)
    with pytest.raises(EngineError, match="damaged"):
        SharedWeights().opened(_broken(tmp_path), lambda *_: None)


def _broken(tmp_path: Path) -> Path:
    (tmp_path / artefact.MODEL).write_bytes(b"\xff" * 100)
    return tmp_path


def test_without_the_cache_it_is_said_that_nothing_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    source = chain(tmp_path / "a.onnx", 3, [1])
    want = answer(load(source))
    with pytest.warns(RuntimeWarning, match="shares no weights, because it is not in the compile"):
        session = load(source, shared())
    np.testing.assert_array_equal(answer(session), want)


def test_models_that_are_opened_at_once_find_each_other(tmp_path: Path, cache_place: Path) -> None:
    group = shared()
    sources = [chain(tmp_path / f"{rows}.onnx", rows, [1, 2]) for rows in range(3, 11)]
    wanted = [answer(load(source)) for source in sources]
    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(lambda source: load(source, group), sources))
        for _ in range(5):
            for found, want in zip(pool.map(answer, sessions), wanted, strict=True):
                np.testing.assert_array_equal(found, want)
    assert distinct(cache_place) == 2


def test_long_weights_are_compared_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(3 << 20))
    data = bytearray(3 << 20)
    data[-1] = 1
    (tmp_path / "other").write_bytes(data)
    entries = {"offset": "0", "length": str(3 << 20)}
    places = [
        shared_weights.WeightPlace(tmp_path / name, digest.stamp(tmp_path / name), entries)
        for name in ("one", "other")
    ]
    shorter = replace(places[1], entries={"offset": "0", "length": str((3 << 20) - 1)})
    longer = replace(places[0], entries={"offset": "1", "length": str(3 << 20)})
    with ExitStack() as files:
        read = shared_weights._Reader(files)
        assert not read.equal(*places)
        assert read.equal(shorter, places[0])
        assert not read.equal(longer, longer)  # ends behind the file's end
