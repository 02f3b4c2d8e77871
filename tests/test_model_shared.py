"""Model and ModelParallelRunner: weights that several processes share; the seed's four steps."""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.encryption import encrypt
from support.fake_engine import LIMIT_S
from support.mindir_builder import Net, encode
from support.models import DYN_BATCH, MINDIR, MOBILENET, ONNX, SWIN, arrays, written
from support.onnx_graphs import F32, node
from support.onnx_graphs import model as onnx_graph
from support.sharing import assert_no_more_than, descriptors, python, said, tell

import mindspore_lite as mslite
from mindspore_lite.engines import sharing
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    LiteError,
    ModelFileError,
)
from mindspore_lite.weights.sharing.handle import Handle

HANDLE = "shareable_weight_mem_handle"
FAILED = "build_from_file failed! Error is "
SECRET = b"A very secret k."
BIG = 256  # a weight of 256 x 256 lies in the data file, not in the graph
X = np.random.default_rng(0).random((2, BIG), np.float32)


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compile cache of this test alone."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def big_net(seed: int = 0) -> bytes:
    net = Net()
    weight = np.random.default_rng(seed).random((BIG, BIG), np.float32)
    return encode(
        net.model(net.call("MatMulExt", net.input("x", (2, BIG)), net.weight("w", weight)))
    )


@pytest.fixture
def net(tmp_path: Path, cache_dir: Path) -> Path:
    return written(tmp_path / "net.mindir", big_net())


@pytest.fixture
def built() -> Iterator[Callable[..., mslite.Model]]:
    """Builds Models, and closes them at the end."""
    made: list[mslite.Model] = []

    def build(path: Path, config: Any = None, kind: Any = MINDIR, **more: Any) -> mslite.Model:
        model = mslite.Model()
        made.append(model)
        model.build_from_file(str(path), kind, config_dict=config, **more)
        return model

    yield build
    for model in made:
        model.close()


def pids(*numbers: int) -> dict[str, str]:
    return {"pids": ", ".join(map(str, numbers or (os.getpid(),)))}


def using(model: mslite.Model | mslite.ModelParallelRunner) -> dict[str, str]:
    return {"shared_mem_handle": model.get_model_info(HANDLE)}


def context(target: str = "cpu", device: int = 0, threads: int = 1) -> mslite.Context:
    made = mslite.Context()
    made.target = [target]
    made.ascend.device_id = device
    made.cpu.thread_num = threads
    return made


def artefacts(cache_dir: Path) -> list[Path]:
    return [p for p in cache_dir.iterdir() if len(p.name) == 64] if cache_dir.exists() else []


# --- the four steps -------------------------------------------------------------------------------


def test_the_process_id_is_known_before_any_build() -> None:
    assert mslite.Model().get_model_info("current_pid") == str(os.getpid())
    assert mslite.ModelParallelRunner().get_model_info("current_pid") == str(os.getpid())
    assert mslite.Model().get_model_info(HANDLE) == ""
    assert mslite.ModelParallelRunner().get_model_info(HANDLE) == ""


OWN = str(os.getpid())


@pytest.mark.parametrize(
    ("shares", "uses"),
    [
        ({"pids": f"0, {OWN}, 7"}, lambda handle: {"shared_mem_handle": handle}),
        ({"pids": OWN}, lambda handle: {"shared_mem_handle": int(handle)}),
        (
            {"ascend_context": {"shareable_weight_pid_list": f"{OWN},"}},
            lambda handle: {"ascend_context": {HANDLE: handle}},
        ),
        (
            {"common_context": {"shareable_weight_pid_list": OWN}},
            lambda handle: {"common_context": {HANDLE: f" {handle} "}},
        ),
    ],
)
def test_both_spellings_of_both_settings_work(
    shares: Any, uses: Callable[[str], Any], net: Path, built: Any
) -> None:
    main = built(net, shares)
    handle = main.get_model_info(HANDLE)
    assert 0 < int(handle) < 2**63
    other = built(net, uses(handle))
    assert other.get_model_info(HANDLE) == ""  # it has none to give
    np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (main, other)])


def test_the_settings_may_stand_in_a_file(net: Path, built: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.ini"
    file.write_text(f'[ascend_context]\nshareable_weight_pid_list="{OWN}"\n')
    main = built(net, config_path=str(file))
    file.write_text(f"[ascend_context]\n{HANDLE}={main.get_model_info(HANDLE)}\n")
    built(net, config_path=str(file)).predict([X])


@pytest.mark.parametrize("path", [MOBILENET, SWIN, DYN_BATCH], ids=lambda path: path.stem)
def test_outputs_are_those_of_an_unshared_model_to_the_bit(path: Path, built: Any) -> None:
    plain = built(path)
    shape = [2 if dim < 1 else dim for dim in plain.get_inputs()[0].shape]
    x = np.random.default_rng(1).random(shape, np.float32)
    (wanted,) = arrays(plain.predict([x]))
    main = built(path, pids())
    for model in (main, built(path, using(main))):
        np.testing.assert_array_equal(arrays(model.predict([x]))[0], wanted)


@pytest.mark.parametrize("outside", [False, True])
def test_onnx_models_are_shared_too(outside: bool, built: Any, tmp_path: Path) -> None:
    weight = np.random.default_rng(0).random((BIG, BIG), np.float32)
    ends = [("x", F32, (2, BIG))], [("y", F32, (2, BIG))]
    proto = onnx_graph([node("MatMul", ["x", "w"], ["y"])], *ends, w=weight)
    path = tmp_path / "net.onnx"
    onnx.save(proto, path, save_as_external_data=outside, location="net.data")
    main = built(path, pids(), ONNX)
    other = built(path, using(main), ONNX)
    np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (main, other)])
    if outside:
        with open(tmp_path / "net.data", "r+b") as data:
            data.write(b"\0\0\0\0")
        with pytest.raises(ModelFileError, match="the weights of another model"):
            built(path, using(main), ONNX)


def test_a_model_in_memory_and_its_file_are_the_same_model(net: Path, built: Any) -> None:
    main = mslite.Model()
    main.build_from_buffer(net.read_bytes(), MINDIR, config_dict=pids())
    from_file = built(net, using(main))
    with mslite.Model() as from_bytes:
        from_bytes.build_from_buffer(net.read_bytes(), MINDIR, config_dict=using(main))
        np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (from_bytes, from_file)])
    main.close()


def test_a_copy_of_the_file_is_the_same_model_and_any_other_is_not(
    net: Path, built: Any, tmp_path: Path
) -> None:
    main = built(net, pids())
    built(Path(shutil.copy(net, tmp_path / "copy.mindir")), using(main)).predict([X])
    other = written(tmp_path / "other.mindir", big_net(seed=1))
    with pytest.raises(ModelFileError) as caught:
        built(other, using(main))
    assert str(caught.value) == (
        f"{FAILED}process {OWN} shares the weights of another model: the content of the files "
        "differs; build both from the same model file"
    )


# --- the compile cache ----------------------------------------------------------------------------


@pytest.mark.parametrize("own_cache_is", ["elsewhere", "off", "unusable"])
def test_the_sharers_compiled_model_is_used_whatever_the_own_cache_is(
    own_cache_is: str, net: Path, built: Any, cache_dir: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    main = built(net, pids())
    before = sorted(cache_dir.rglob("*"))
    own = tmp_path / "own"
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(own))
    if own_cache_is == "off":
        monkeypatch.setenv("MSLITE_CACHE", "off")
    elif own_cache_is == "unusable":
        own.write_text("no folder")
    other = built(net, using(main))
    np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (main, other)])
    assert sorted(cache_dir.rglob("*")) == before
    if own_cache_is == "elsewhere":
        assert artefacts(own) == []


def test_a_shared_model_stays_in_the_cache_until_it_is_closed(
    net: Path, built: Any, cache_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = built(net, pids())
    (shared,) = artefacts(cache_dir)
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(artefact.size_bytes(shared) + 2000))
    built(written(tmp_path / "b.mindir", big_net(1)))
    assert shared in artefacts(cache_dir)
    built(net, using(main)).predict([X])
    main.close()
    built(written(tmp_path / "c.mindir", big_net(2)))
    assert shared not in artefacts(cache_dir)


def test_a_damaged_model_that_is_shared_is_not_removed_under_others(
    net: Path, built: Any, cache_dir: Path
) -> None:
    main = built(net, pids())
    (shared,) = artefacts(cache_dir)
    (shared / artefact.META).unlink()
    with pytest.warns(RuntimeWarning, match="the compiled model is shared with other processes"):
        again = built(net)
    np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (main, again)])
    assert artefacts(cache_dir) == [shared]


def test_nobody_removes_a_compiled_model_before_it_is_held(
    net: Path, built: Any, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(folder: Path, **more: Any) -> Any:
        store = cache.usable()
        assert store is not None
        store.max_bytes = 0
        store.evict(keep="")
        return hold(folder, **more)

    hold = sharing.Hold
    monkeypatch.setattr(sharing, "Hold", held)
    built(net).close()
    for _ in range(2):  # found in the cache, and built into it
        main = built(net, pids())
        built(net, using(main)).predict([X])
        main.close()
        shutil.rmtree(artefacts(cache_dir)[0])


def test_a_compiled_model_that_cannot_be_held_is_told(
    net: Path, built: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path, **more: Any) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(sharing, "Hold", refused)
    assert "cannot be held (Too many open files)" in refusal(lambda: built(net, pids()))


# --- what cannot be shared ------------------------------------------------------------------------


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(LiteError) as caught:
        build()
    return str(caught.value)


def test_without_a_compile_cache_there_is_nothing_to_share(
    net: Path, built: Any, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    assert refusal(lambda: built(net, pids())) == (
        f"{FAILED}the model cannot be shared with other processes: weights are shared from the "
        f"compile cache {str(cache_dir)!r}, which is not used (switched off by MSLITE_CACHE); put "
        "that right, or leave out shareable_weight_pid_list"
    )


def test_an_unusable_or_too_small_cache_is_told(
    net: Path, built: Any, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", "1K")
    with pytest.warns(RuntimeWarning, match="compiled model not kept"):
        text = refusal(lambda: built(net, pids()))
    assert "the model could not be put there, and a warning says why" in text
    cache_dir.rename(cache_dir.with_name("away"))
    cache_dir.touch()
    monkeypatch.setattr("mindspore_lite.engines.cache.store._WARNED", set())
    with pytest.warns(RuntimeWarning, match="compiled model not kept"):
        text = refusal(lambda: built(net, pids()))
    assert "which is not used (it is not a directory)" in text


@pytest.mark.parametrize(
    ("config", "words"),
    [(pids(), "cannot be shared with other"), ({"shared_mem_handle": 1}, "cannot be used from")],
)
def test_an_encrypted_model_is_not_shared(
    config: Any, words: str, built: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "secret.mindir", encrypt(big_net(), SECRET))
    text = refusal(lambda: built(file, config, dec_key=SECRET))
    assert text.startswith(f"{FAILED}the weights of an encrypted model {words}")


def test_a_model_with_inputs_of_any_rank_is_not_shared(built: Any, tmp_path: Path) -> None:
    net = Net()
    file = written(
        tmp_path / "any.mindir", encode(net.model(net.call("Neg", net.input("x", None))))
    )
    text = refusal(lambda: built(file, pids()))
    assert text.startswith(
        f"{FAILED}the model cannot be shared with other processes: inputs ['x'] have any number of "
    )


def test_weights_that_may_change_are_not_shared(net: Path, built: Any) -> None:
    config = {"ascend_context": {"variable_weights_list": "w", "shareable_weight_pid_list": OWN}}
    assert "cannot be shared with other processes; leave one" in refusal(lambda: built(net, config))


def test_both_settings_at_once_fail_the_build(net: Path, built: Any) -> None:
    config = {"ascend_context": {"shareable_weight_pid_list": OWN, HANDLE: "1"}}
    text = refusal(lambda: built(net, config))
    assert text.startswith(f"{FAILED}shareable_weight_pid_list and {HANDLE} are both set;")


# --- who else does not get it ---------------------------------------------------------------------


def test_an_unlisted_process_gets_nothing(net: Path, built: Any) -> None:
    main = built(net, pids(os.getppid()))
    text = refusal(lambda: built(net, using(main)))
    assert text.startswith(f"{FAILED}this process, {OWN}, is not in the shareable_weight_pid_list")


def test_a_number_that_is_no_handle_is_told(net: Path, built: Any) -> None:
    wrong = int(Handle(os.getpid(), 0, 0))
    text = refusal(lambda: built(net, {"shared_mem_handle": wrong}))
    assert text.startswith(f"{FAILED}{HANDLE} is no handle of shared weights: process {OWN} ")
    assert str(wrong) not in text


def test_devices_must_be_the_same(net: Path, built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:3")
    main = built(net, pids(), context=context("ascend", 2))
    built(net, using(main), context=context("Ascend", 2)).predict([X])
    for other, named in [(context("ascend", 1), "ascend:1"), (context(), "cpu")]:
        text = refusal(lambda other=other: built(net, using(main), context=other))
        assert text == (
            f"{FAILED}process {OWN} shares weights on device 'ascend:2', but this model is built "
            f"for {named!r}; use the same target and device_id in both"
        )


def test_another_version_of_the_engine_is_told(
    net: Path, built: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = built(net, pids())
    monkeypatch.setattr("mindspore_lite.engines.onnxruntime.engine.VERSION", "0.1")
    text = refusal(lambda: built(net, using(main)))
    assert "with another version of the engine: 'onnxruntime 1." in text
    assert "there, 'onnxruntime 0.1' here" in text


# --- how long it lasts ----------------------------------------------------------------------------


def test_closing_the_model_ends_the_sharing_and_leaves_others_what_they_have(
    net: Path, built: Any
) -> None:
    main = built(net, pids())
    (wanted,) = arrays(main.predict([X]))
    config = using(main)
    other = built(net, config)
    main.close()
    assert main.get_model_info(HANDLE) == ""
    np.testing.assert_array_equal(arrays(other.predict([X]))[0], wanted)
    with pytest.raises(ClosedError, match="has closed the model whose weights it shared"):
        built(net, config)


def test_a_model_that_is_forgotten_is_not_shared(net: Path, built: Any) -> None:
    main = mslite.Model()
    main.build_from_file(str(net), MINDIR, config_dict=pids())
    config = using(main)
    del main
    gc.collect()
    with pytest.raises(ClosedError):
        built(net, config)


def test_resizing_works_on_both_sides_and_the_sharing_goes_on(net: Path, built: Any) -> None:
    main = built(net, pids())
    config = using(main)
    other = built(net, config)
    x = np.concatenate([X, X])
    for model in (main, other):
        model.resize(model.get_inputs(), [x.shape])
        assert arrays(model.predict([x]))[0].shape == (4, BIG)
    assert using(main) == config
    built(net, config).predict([X])


def test_many_builds_leave_no_descriptors_or_threads(net: Path, built: Any) -> None:
    def once() -> None:
        main = built(net, pids())
        other = built(net, using(main))
        other.close()
        main.close()

    once()
    before = descriptors()
    for _ in range(25):
        once()
    assert_no_more_than(before)


USER = """
import json, sys
import numpy as np
import mindspore_lite as mslite
model = mslite.Model()
print(model.get_model_info("current_pid"), flush=True)
for line in sys.stdin:
    path, config = json.loads(line)
    try:
        if config is not None:
            model.build_from_file(path, mslite.ModelType.MINDIR, config_dict=config)
        x = np.ones([t for t in model.get_inputs()[0].shape], np.float32)
        answer = [float(v) for v in model.predict([x])[0].get_data_to_numpy()[0, :3]]
    except RuntimeError as exc:
        answer = f"{type(exc).__name__}: {exc}"
    print(json.dumps([answer, model.get_model_info("shareable_weight_mem_handle")]), flush=True)
"""


def order(child: Any, *line: Any) -> tuple[Any, str]:
    tell(child, json.dumps(line))
    answer, handle = json.loads(said(child))
    return answer, handle


def test_a_sharer_that_is_killed_leaves_others_running_and_new_ones_told(net: Path) -> None:
    path = str(net)
    with python(USER) as main, python(USER) as one, python(USER) as late:
        _, one_pid, late_pid = (said(child) for child in (main, one, late))
        listed = {"pids": f"{one_pid}, {late_pid}"}
        values, handle = order(main, path, listed)
        assert order(one, path, {"shared_mem_handle": handle}) == (values, "")
        main.kill()
        main.wait()
        assert order(one, path, None) == (values, "")
        text, _ = order(late, path, {"shared_mem_handle": handle})
        assert text.startswith(
            f"WorkerDiedError: {FAILED}process {main.pid}, which shared the weights, has ended;"
        )
        assert order(late, path, {}) == (values, "")


MAPS = """
import ctypes, hashlib, json, os, re, sys
import mindspore_lite as mslite
model = mslite.Model()
print(model.get_model_info("current_pid"), flush=True)
path, config, folder = json.loads(sys.stdin.readline())
model.build_from_file(path, mslite.ModelType.MINDIR, config_dict=config)
mapped = [l.split() for l in open("/proc/self/maps") if folder in l]
fds = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if n != "3"]
for place, rights, *_ in mapped:
    if "w" in rights:
        start = int(place.split("-")[0], 16)
        ctypes.memset(start, 0xff, 64)
print(json.dumps([[m[1] for m in mapped], [f for f in fds if folder in f]]), flush=True)
"""


def test_nobody_who_uses_weights_can_write_to_them(net: Path, built: Any, cache_dir: Path) -> None:
    with python(MAPS) as child:
        main = built(net, pids(int(said(child))))
        (wanted,) = arrays(main.predict([X]))
        (folder,) = artefacts(cache_dir)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        tell(child, json.dumps([str(net), using(main), str(folder)]))
        rights, open_files = json.loads(said(child))
    assert rights
    assert all(one.endswith("p") for one in rights)  # private: what is written is the writer's own
    assert open_files == []
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    np.testing.assert_array_equal(arrays(main.predict([X]))[0], wanted)
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o400}


def test_no_thread_and_no_socket_without_a_list(net: Path) -> None:
    code = (
        "import sys, threading, mindspore_lite as mslite\n"
        "mslite.Model().build_from_file(sys.argv[1], mslite.ModelType.MINDIR)\n"
        "print([t.name for t in threading.enumerate()])"
    )
    with python(code, net) as child:
        assert said(child) == "['MainThread']"


# --- ModelParallelRunner --------------------------------------------------------------------------


def runner_context(config: dict[str, Any], threads: int = 1, workers: int = 1) -> mslite.Context:
    made = context(threads=threads)
    made.parallel.workers_num = workers
    made.parallel.config_info = config
    return made


@pytest.mark.parametrize("threads", [1, 2])
def test_runners_share_and_use_weights(threads: int, net: Path, built: Any) -> None:
    with mslite.ModelParallelRunner() as main, mslite.ModelParallelRunner() as other:
        main.build_from_file(str(net), runner_context(pids(), threads))
        config = using(main)
        assert int(config["shared_mem_handle"])
        other.build_from_file(str(net), runner_context(config, threads))
        assert other.get_model_info(HANDLE) == ""
        np.testing.assert_array_equal(*[arrays(m.predict([X]))[0] for m in (main, other)])
        x = np.concatenate([X, X, X])
        np.testing.assert_array_equal(*[arrays(m.predict([x]))[0] for m in (main, other)])
        model = built(net, config)
        main.close()
        assert main.get_model_info(HANDLE) == ""
        with pytest.raises(ClosedError):
            built(net, config)
        model.predict([X])


def test_a_runner_that_is_forgotten_shares_nothing(net: Path, built: Any) -> None:
    before = set(threading.enumerate())
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(net), runner_context(pids()))
    config = using(runner)
    workers = [t for t in threading.enumerate() if t.name.startswith("mslite-worker")]
    mine = set(workers) - before
    assert len(mine) == 1
    del runner
    gc.collect()  # has its thread end, which then lets go of the weights
    for thread in mine:
        thread.join(LIMIT_S)
    gc.collect()
    with pytest.raises(ClosedError):
        built(net, config)


def test_a_runner_tells_why_it_cannot_use_weights(net: Path) -> None:
    with pytest.raises(EngineError) as caught:
        mslite.ModelParallelRunner().build_from_file(
            str(net), runner_context({"shared_mem_handle": "1"})
        )
    assert str(caught.value).startswith(
        f"ModelParallelRunner's build from file failed! Error is {HANDLE} is no handle"
    )


@pytest.mark.parametrize("config", [pids(), {"shared_mem_handle": "1"}])
def test_a_runner_of_several_devices_refuses_both(config: dict[str, str], net: Path) -> None:
    made = context()
    made.parallel.config_info = config
    with pytest.raises(EngineError) as caught:
        mslite.MultiDeviceRunner().build_from_file(str(net), made)
    assert str(caught.value).startswith(
        "MultiDeviceRunner's build from file failed! Error is a MultiDeviceRunner can neither "
    )
