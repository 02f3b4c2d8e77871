"""The artefact cache: found again, never believed when damaged, never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.damage import fill_with_garbage, flip, truncate
from support.snapshots import snapshot

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.cache import artefact, digest
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.onnxruntime import engine as engine_module
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.weights.records import Identity

ENGINE = OnnxRuntimeEngine()
FILES = [artefact.MODEL, artefact.WEIGHTS, artefact.SKELETON, artefact.META]
pytestmark = pytest.mark.filterwarnings("error")  # no warning unless a test asks for one


def load(dense: Any, **options: Any) -> None:
    """Load and check the result."""
    session = ENGINE.load(dense.source(), Options(**options))
    dense.check(session)
    session.close()


def keys(place: Path) -> list[str]:
    return sorted(p.name for p in place.iterdir() if len(p.name) == 64)


def only_artefact(place: Path) -> Path:
    (key,) = keys(place)
    return place / key


# --- hits and keys ---


def test_second_load_does_not_translate(dense: Any, cache_place: Path) -> None:
    load(dense)
    load(dense)
    assert dense.translations == 1
    folder = only_artefact(cache_place)
    assert sorted(os.listdir(folder)) == sorted(FILES)
    assert {(folder / name).stat().st_mode & 0o777 for name in FILES} == {0o400}
    assert cache_place.stat().st_mode & 0o777 == 0o700


def test_moved_model_is_found_and_threads_do_not_matter(dense: Any, tmp_path: Path) -> None:
    load(dense)
    dense.path = dense.path.rename(tmp_path / "elsewhere.onnx")
    load(dense, threads=2)
    assert dense.translations == 1


def test_other_content_recipe_engine_or_cpu_is_another_key(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path, tmp_path: Path
) -> None:
    load(dense)
    load(make_dense(1))
    ENGINE.load(dense.source("resized"), Options())
    assert len(keys(cache_place)) == 3
    settings = {"recipe": "r", "engine": "e"}
    identities = [
        Identity("model", settings),
        Identity("other", settings),
        *(Identity("model", {**settings, name: "other"}) for name in settings),
    ]
    assert len({digest.key(identity) for identity in identities}) == 4
    assert digest.key(identities[0]) == digest.key(Identity("model", {**settings}))


def test_cpu_features_are_read_from_the_first_processor(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags\t\t: sse avx2 avx\n\nprocessor : 1\nflags : other\n")
    assert digest.cpu_features(info).endswith(" avx avx2 sse")
    assert digest.cpu_features(tmp_path / "absent")


def test_missing_model_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"gone\.onnx.*No such file"):
        ENGINE.load(ModelSource(snapshot(tmp_path / "gone.onnx"), "", lambda: None), Options())  # type: ignore


def test_model_without_large_weights_has_no_weights_file(
    cache_place: Path, source_of: Callable[[Any], ModelSource], endless: ModelSource
) -> None:
    from onnx import helper

    ends = [[helper.make_tensor_value_info(name, 1, [4])] for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", *ends)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    for _ in range(2):
        ENGINE.load(source_of(made), Options())
    assert artefact.WEIGHTS not in os.listdir(only_artefact(cache_place))


# --- damage ---


def replace_by_link(path: Path) -> None:
    aside = path.parent.parent.parent / "aside"
    shutil.copy(path, aside)
    path.unlink()
    path.symlink_to(aside)


DAMAGES = [truncate, flip, fill_with_garbage, Path.unlink, replace_by_link]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_rebuilt(
    name: str, damage: Callable[[Path], None], dense: Any, cache_place: Path
) -> None:
    load(dense)
    victim = only_artefact(cache_place) / name
    os.chmod(victim, 0o600)
    damage(victim)
    load(dense)
    assert dense.translations == 2
    load(dense)
    assert dense.translations == 2
    assert not list(cache_place.glob("build-*"))


@pytest.mark.parametrize("extra", ["stranger", "model.onnx.data"])
def test_stranger_in_the_folder_is_rebuilt(extra: str, dense: Any, cache_place: Path) -> None:
    load(dense)
    (only_artefact(cache_place) / extra).write_text("x")
    load(dense)
    assert dense.translations == 2
    assert sorted(os.listdir(only_artefact(cache_place))) == sorted(FILES)


@pytest.mark.parametrize("thing", ["file", "link", "empty folder"])
def test_other_thing_in_place_of_an_artefact_is_replaced(
    thing: str, dense: Any, cache_place: Path, tmp_path: Path
) -> None:
    load(dense)
    folder = only_artefact(cache_place)
    outside = tmp_path / "outside"
    os.rename(folder, outside)
    if thing == "file":
        folder.write_text("x")
    elif thing == "link":
        folder.symlink_to(outside)
    else:
        folder.mkdir()
    load(dense)
    assert dense.translations == 2
    assert not folder.is_symlink()
    assert sorted(os.listdir(outside)) == sorted(FILES)  # links are not followed


def test_artefact_under_another_key_is_not_believed(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path
) -> None:
    load(dense)
    folder, other = only_artefact(cache_place), make_dense(1)
    load(other)
    (other_key,) = set(keys(cache_place)) - {folder.name}
    shutil.rmtree(cache_place / other_key)
    os.rename(folder, cache_place / other_key)
    load(other)
    assert other.translations == 2


def test_meta_of_other_types_is_not_believed(dense: Any, cache_place: Path) -> None:
    load(dense)
    meta = only_artefact(cache_place) / artefact.META
    os.chmod(meta, 0o600)
    texts = ["[]", "7", '{"body": [], "digest": 0}', '{"body": {}}', "", "[" * 100_000]
    for number, text in enumerate(texts):
        meta.unlink()
        meta.write_text(text)
        load(dense)
        assert dense.translations == 2 + number


def test_copied_cache_is_read_once_and_then_trusted(
    dense: Any, cache_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(dense)
    copy = tmp_path / "copy"
    shutil.copytree(cache_place, copy)
    os.chmod(copy, 0o700)
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(copy))
    folder = only_artefact(copy)
    assert not artefact.trusted(folder, folder.name)
    load(dense)
    assert dense.translations == 1
    assert artefact.trusted(folder, folder.name)


def test_artefact_the_runtime_refuses_is_rebuilt_once(dense: Any, cache_place: Path) -> None:
    load(dense)
    folder = only_artefact(cache_place)
    os.chmod(folder / artefact.MODEL, 0o600)
    fill_with_garbage(folder / artefact.MODEL)
    (folder / artefact.META).unlink()
    artefact.seal(folder, folder.name)  # in good order, yet no model
    load(dense)
    assert dense.translations == 2
    load(dense)
    assert dense.translations == 2


def test_runtime_that_refuses_its_own_work_is_done_without(
    dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: object) -> None:
        raise EngineError("no such format")

    monkeypatch.setattr(engine_module, "_open_stored", refused)
    with pytest.warns(RuntimeWarning, match="refuses to open"):
        load(dense)
    assert (dense.translations, keys(cache_place)) == (1, [])


# --- builders at once ---

BUILDER = """
import sys
import numpy as np, onnx_ir as ir
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Options, ModelSource
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
path = Path(sys.argv[1])
def translate():
    with open(sys.argv[2], "a") as log:
        log.write("translated\\n")
    return ir.load(path)
print("ready", flush=True)
sys.stdin.readline()  # the barrier: the parent lets all go at once
source = ModelSource(Snapshot([open_file(path)]), "", translate)
session = OnnxRuntimeEngine().load(source, Options())
print(float(session.run([np.ones((1, 64), np.float32)])[0].sum()))
"""


def test_processes_building_at_once_share_one_artefact(
    dense: Any, cache_place: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", BUILDER, str(dense.path), str(log)]
    pipe = subprocess.PIPE
    builders = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for builder in builders:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "ready\n"
    answers = []
    for builder in builders:
        assert builder.stdin is not None
        builder.stdin.write("go\n")
        builder.stdin.flush()
    for builder in builders:
        answers.append(float(builder.communicate(timeout=300)[0]))
        assert builder.returncode == 0
    wanted = float(dense.w.sum()) + 64
    assert answers == pytest.approx([wanted] * 3, rel=1e-4)
    assert log.read_text() == "translated\n"
    assert artefact.trusted(only_artefact(cache_place), keys(cache_place)[0])
    assert not list(cache_place.glob("build-*"))


def test_threads_building_at_once_translate_once(dense: Any) -> None:
    gate = threading.Barrier(4)

    def one(_: int) -> None:
        gate.wait()
        load(dense)

    with ThreadPoolExecutor(4) as builders:
        list(builders.map(one, range(4)))
    assert dense.translations == 1


def test_builds_of_dead_processes_are_swept(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path
) -> None:
    load(dense)
    left = cache_place / "build-00-0123456789abcdef"
    busy = cache_place / "build-01-0123456789abcdef"
    for folder in (left, busy):
        folder.mkdir()
        (folder / "model.onnx").write_text("half")
    store = cache.usable()
    assert store is not None
    with store.locked("01", alone=True):  # as its live builder would
        load(make_dense(1))
    assert not left.exists()
    assert busy.exists()


# --- bound and eviction ---


def one_size(place: Path) -> int:
    return artefact.size_bytes(only_artefact(place))


def test_least_recently_used_goes_first(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(dense)
    first = only_artefact(cache_place).name
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(one_size(cache_place) * 5 // 2))
    load(make_dense(1))
    (second,) = set(keys(cache_place)) - {first}
    os.utime(cache_place / first, ns=(1, 1))
    os.utime(cache_place / second, ns=(2, 2))
    load(dense)  # used now, and so the younger
    load(make_dense(2))
    assert first in keys(cache_place)
    assert second not in keys(cache_place)
    assert len(keys(cache_place)) == 2


def test_artefact_in_use_is_not_evicted(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(dense)
    first = only_artefact(cache_place).name
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(one_size(cache_place) * 3 // 2))
    store = cache.usable()
    assert store is not None
    with store.locked(first, alone=False):
        load(make_dense(1))
    assert first in keys(cache_place)


class Removing:
    """os.scandir, with somebody else removing each file just before it is looked at."""

    scandir = staticmethod(os.scandir)

    def __init__(self, folder: Path) -> None:
        self._entries = self.scandir(folder)

    def __enter__(self) -> Removing:
        return self

    def __exit__(self, *error: object) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        for entry in self._entries:
            os.unlink(entry.path)
            yield entry


def test_files_that_go_while_they_are_measured_leave_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "scandir", Removing)
    with pytest.raises(FileNotFoundError):  # and no ResourceWarning, which would be an error
        artefact.size_bytes(tmp_path)


def test_evicted_model_goes_on_working(
    dense: Any, make_dense: Callable[[int], Any], cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ENGINE.load(dense.source(), Options())
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", str(one_size(cache_place) * 3 // 2))
    load(make_dense(1))
    assert len(keys(cache_place)) == 1
    dense.check(session)
    assert session.skeleton()


@pytest.mark.parametrize("bound", ["0", "1K", "20K"])  # 20K: above the weights, below the artefact
def test_artefact_above_the_bound_is_not_kept(
    bound: str, dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", bound)
    with pytest.warns(RuntimeWarning, match="MSLITE_CACHE_MAX_BYTES allows"):
        load(dense)
    assert keys(cache_place) == []
    assert not list(cache_place.glob("build-*"))


def test_remembered_digests_are_bounded(
    dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_SEEN_MAX", 3)
    (cache_place / "seen").mkdir(parents=True, mode=0o700)
    os.chmod(cache_place, 0o700)
    for number in range(9):
        note = cache_place / "seen" / f"{number}.json"
        note.write_text("{}")
        os.utime(note, (number, number))
    load(dense)
    assert len(os.listdir(cache_place / "seen")) == 3


# --- settings ---


@pytest.mark.parametrize("word", ["off", "0", "false", "no", "OFF"])
def test_switched_off_leaves_no_files(
    word: str, dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", word)
    load(dense)
    load(dense)
    assert dense.translations == 2
    assert not cache_place.exists()


@pytest.mark.parametrize("word", ["", "on", "1", "true", "Yes"])
def test_switched_on(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE", word)
    assert cache.settings().enabled


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", 10 << 30), ("0", 0), ("123", 123), ("2K", 2048), ("3m", 3 << 20), (" 4G ", 4 << 30)],
)
def test_bounds(text: str, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", text)
    assert cache.settings().max_bytes == wanted


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MSLITE_CACHE", "maybe", "MSLITE_CACHE is 'maybe', wanted 'on' or 'off'"),
        ("MSLITE_CACHE_MAX_BYTES", "-1", "'-1', wanted a number of bytes"),
        ("MSLITE_CACHE_MAX_BYTES", "10T", "'10T', wanted a number of bytes"),
        ("MSLITE_CACHE_MAX_BYTES", "1.5G", "'1.5G', wanted"),
        ("MSLITE_CACHE_MAX_BYTES", "\u0661", "wanted a number of bytes"),
    ],
)
def test_bad_values_are_refused(
    name: str, value: str, message: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        load(dense)
    state = cache.describe()
    assert not state.enabled
    assert value in state.reason


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MSLITE_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.settings().place == tmp_path / ".cache/mslite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.settings().place == tmp_path / ".cache/mslite"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.settings().place == Path("/xdg/mslite")
    monkeypatch.setenv("MSLITE_CACHE_DIR", "~/mine")
    assert cache.settings().place == tmp_path / "mine"


# --- places that cannot be used ---


def unusable_places(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    file = tmp_path / "file"
    file.write_text("x")
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chmod(shared, 0o770)
    odd = tmp_path / "odd"
    odd.mkdir(mode=0o700)
    (odd / "locks").symlink_to(tmp_path)
    return {
        "a file": (file, "cannot be made"),
        "below a file": (file / "cache", "cannot be made"),
        "in /proc": (Path("/proc/mslite-cache"), "cannot be made"),
        "writable by others": (shared, "others may write to it .mode 770., wanted 700"),
        "linked inside": (odd, "not a directory"),
        "no home": (Path("~nobody-of-this-name/cache"), "no home directory"),
    }


@pytest.mark.parametrize(
    "kind", ["a file", "below a file", "in /proc", "writable by others", "linked inside", "no home"]
)
def test_unusable_place_warns_once_and_works(
    kind: str, dense: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, message = unusable_places(tmp_path)[kind]
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(place))
    with pytest.warns(RuntimeWarning, match=f"{message}.*MSLITE_CACHE_DIR.*MSLITE_CACHE=off"):
        load(dense)
    load(dense)  # and no second warning
    assert dense.translations == 2


def test_place_of_another_user_is_not_used(
    dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: cache_place.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to user"):
        load(dense)
    assert list(cache_place.iterdir()) == []


def test_lock_that_cannot_be_opened_is_done_without(dense: Any, cache_place: Path) -> None:
    (cache_place / "locks").mkdir(parents=True)
    os.chmod(cache_place, 0o700)
    os.chmod(cache_place / "locks", 0o700)
    for number in range(256):
        (cache_place / "locks" / f"{number:02x}.lock").symlink_to("/dev/null")
    with pytest.warns(RuntimeWarning, match="locking failed"):
        load(dense)


FULL_DISK = """
import os, resource, sys, warnings
import numpy as np, onnx_ir as ir
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Options, ModelSource
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)  # writing more fails
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    source = ModelSource(Snapshot([open_file(path)]), "", lambda: ir.load(path))
    session = OnnxRuntimeEngine().load(source, Options())
print(len(caught), float(session.run([np.ones((1, 64), np.float32)])[0].sum()))
"""


@pytest.mark.parametrize("room", [0, 400, 8192, 20000])  # for nothing, notes, the graph, one weight
def test_full_disk_warns_and_works(room: int, dense: Any, cache_place: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(dense.path), str(room)]
    pipe = subprocess.PIPE
    done = subprocess.run(command, stdout=pipe, text=True, timeout=300, check=True)
    warned, total = done.stdout.split()
    assert int(warned) == 1
    assert float(total) == pytest.approx(float(dense.w.sum()) + 64, rel=1e-4)
    assert keys(cache_place) == []
    assert not list(cache_place.glob("build-*"))
    assert not list(cache_place.glob("seen/*.part"))


# --- for people ---


def test_describe_counts_and_creates_nothing(dense: Any, cache_place: Path) -> None:
    state = cache.describe()
    assert (state.place, state.enabled, state.reason) == (str(cache_place), True, "")
    assert (state.entries, state.size_bytes, state.max_bytes) == (0, 0, 10 << 30)
    assert not cache_place.exists()
    load(dense)
    state = cache.describe()
    assert (state.entries, state.size_bytes) == (1, one_size(cache_place))


def test_describe_says_why_it_is_not_used(
    cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_place.write_text("x")
    assert "not a directory" in cache.describe().reason
    monkeypatch.setenv("MSLITE_CACHE", "off")
    assert "MSLITE_CACHE" in cache.describe().reason


def test_a_tree_that_is_deeper_than_python_can_follow_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "top"
    place.mkdir()
    deep = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    cache.remove_tree(place)
    assert not place.exists()
