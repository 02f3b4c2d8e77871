"""Random and damaged files: reading and translating ends in an error of ours, or in a graph."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from fuzzing.mutate_proto import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.archives import DATA, cases, content

from mindspore_lite.core import files
from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import side_files
from mindspore_lite.mindir.decrypt import Key
from mindspore_lite.mindir.opened import open_mindir
from mindspore_lite.mindir.read import read, read_file
from mindspore_lite.mindir.records import Model

KEY = Key(b"0123456789abcdef", "AES-CBC")
NAMES = ("io_nested_tuple", "inplace_chain", "mint_reduce", "call_lazy_inline_tuple")
FILES = {name: (DATA / "nets" / f"{name}.mindir").read_bytes() for name in NAMES}
FUZZ = settings(max_examples=150, deadline=None, derandomize=True)


def attempt(data: bytes) -> None:
    try:
        model = read(memoryview(data))
    except ModelFileError:
        return
    with contextlib.suppress(LiteError):
        from_mindir(model)


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes_end_in_our_error(data: bytes) -> None:
    attempt(data)


@FUZZ
@given(st.binary(max_size=200))
def test_random_bytes_inside_a_graph_end_in_our_error(payload: bytes) -> None:
    length = bytes([len(payload) & 0x7F | 0x80, len(payload) >> 7])
    attempt(b"\x3a" + length + payload)


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_changed_bytes_end_in_our_error_or_a_model(
    name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(FILES[name])
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    attempt(bytes(data))


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(start=st.floats(0, 1), length=st.integers(1, 60), insert=st.binary(max_size=30))
def test_cut_and_inserted_bytes_end_in_our_error_or_a_model(
    name: str, start: float, length: int, insert: bytes
) -> None:
    data = FILES[name]
    at = int(start * len(data))
    attempt(data[:at] + insert + data[at + length :])


@pytest.mark.parametrize("seed", range(20))
def test_files_with_damaged_fields_end_in_our_error_or_a_model(seed: int) -> None:
    """A little of what scripts/fuzz does for as long as one likes."""
    rng = Random(seed)
    for _ in range(15):
        attempt(mutated(content(f"{rng.choice(cases())}.mindir"), rng))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_off_anywhere_is_refused(name: str) -> None:
    """Of a whole file every field is needed up to the end of the graph."""
    data = FILES[name]
    refused = 0
    for length in range(0, len(data), 7):
        try:
            read(memoryview(data[:length]))
        except ModelFileError as exc:
            assert str(exc)
            refused += 1
    assert refused > 0.9 * len(data) / 7


# --- with weights beside the model ----------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder, with ways out of it, in a folder that holds a secret."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(b"\1" + bytes(500))
    made = outside / "model"
    shutil.copytree(DATA / "container", made)
    (made / "out").symlink_to(outside)
    (made / "link").symlink_to(outside / "secret")
    os.mkfifo(made / "pipe")
    return made


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that is opened from here on."""
    seen: list[Path] = []

    def spy(folder: Path, location: str) -> files.File:
        found = files.open_beneath(folder, location)
        seen.append(Path(found.real_path()))
        return found

    monkeypatch.setattr(side_files, "open_beneath", spy)
    return seen


def read_split(path: Path, data: bytes) -> Model:
    """Read these bytes as if they lay where the path says."""
    return read(*open_mindir(None, memoryview(data), beside=path).load())


LOCATIONS = st.one_of(
    st.sampled_from(["split_variables/data_0", "split_graph.mindir", "link", "out/secret", "pipe"]),
    st.sampled_from(["..", "/", "", ".", "/etc/passwd", "../secret", "split_variables", "\0"]),
    st.text(max_size=20),
    st.lists(st.sampled_from(["..", ".", "out", "model", "secret", "split_variables", "data_0"]),
             max_size=6).map("/".join),
)  # fmt: skip
PLACES = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 1100)
LEEWAY = settings(FUZZ, suppress_health_check=[HealthCheck.function_scoped_fixture])


@LEEWAY
@given(location=LOCATIONS, offset=PLACES, length=PLACES)
def test_no_place_of_a_weight_leads_out_of_the_folder(
    folder: Path, opened: list[Path], location: str, offset: int, length: int
) -> None:
    path = folder / "split_graph.mindir"
    proto = pb.Model.FromString(path.read_bytes())
    for weight in proto.graph.parameter:
        weight.external_data.location = location
        weight.external_data.offset, weight.external_data.length = offset, length
    with contextlib.suppress(ModelFileError):
        read_split(path, proto.SerializeToString())
    inside = folder.resolve()
    assert all(p.resolve().is_relative_to(inside) and p.is_file() for p in opened)


@LEEWAY
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_split_model_ends_in_our_error_or_a_model(
    folder: Path, opened: list[Path], changes: list[tuple[float, int]]
) -> None:
    path = folder / "split_graph.mindir"
    data = bytearray(path.read_bytes())
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    with contextlib.suppress(LiteError):
        from_mindir(read_split(path, bytes(data)))
    assert all(p.resolve().is_relative_to(folder.resolve()) for p in opened)


@pytest.mark.parametrize("name", ["cbc_16.mindir", "split_cbc_variables/data_0"])
@LEEWAY
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_encrypted_model_ends_in_our_error_or_a_model(
    folder: Path, name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray((DATA / "container" / name).read_bytes())
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    (folder / name).write_bytes(data)
    model = folder / name if name.endswith("mindir") else folder / "split_cbc_graph.mindir"
    with contextlib.suppress(LiteError):
        from_mindir(read_file(model, KEY))
