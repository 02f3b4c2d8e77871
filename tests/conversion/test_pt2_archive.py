"""conversion/pt2_archive.py: no archive gets to run code of its own, and torch would let it.

The archives here are those of a small network with one thing changed. `PROOF` says of which changes
it was seen that torch.export.load runs the code: they leave a mark where they are trusted.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from support.torch_models import export  # noqa: E402

from mindspore_lite.conversion.pt2_archive import check_archive  # noqa: E402
from mindspore_lite.conversion.sources import Origin, load  # noqa: E402
from mindspore_lite.errors import LiteError, ModelFileError  # noqa: E402

Members = dict[str, bytes]
MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
CONSTANTS, SAMPLES = "data/constants/model_constants_config.json", "data/sample_inputs/model.pt"
MARK = Path("mark")  # in the working directory of the test


class Code:
    """What a pickle may do when it is loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (MARK,)


CALL = "__import__('pathlib').Path('mark').touch()"


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    path = tmp_path_factory.mktemp("archive") / "net.pt2"
    export("convolutional", path)
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def written(folder: Path, members: Members, root: str = "net/") -> Path:
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(root + name, content)
    return path


def graph(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    """A change of the JSON text of the graph."""

    def apply(members: Members) -> None:
        found = json.loads(members[MODEL])
        change(found["graph_module"])
        members[MODEL] = json.dumps(found).encode()

    return apply


def dim(text: str, tensor: str = "image") -> Callable[[Members], None]:
    def change(module: dict[str, Any]) -> None:
        values = module["graph"]["tensor_values"]
        sizes = [{"as_expr": {"expr_str": text, "hint": None}}]
        values[tensor] = {**values["image"], "sizes": sizes}

    return graph(change)


def call(target: str, **argument: Any) -> Callable[[Members], None]:
    node = {
        "target": target,
        "inputs": [{"name": "x", "arg": argument or {"as_int": 1}, "kind": 1}],
        "outputs": [{"as_tensor": {"name": "conv2d"}}],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": "added",
    }
    return graph(lambda module: module["graph"]["nodes"].append(node))


def structure(**node: Any) -> Callable[[Members], None]:
    text = json.dumps([1, {"context": "null", "children_spec": [], **node}])

    def change(module: dict[str, Any]) -> None:
        module["module_call_graph"][0]["signature"]["in_spec"] = text

    return graph(change)


def rename_input(members: Members) -> None:
    members[MODEL] = members[MODEL].replace(b'"image"', json.dumps(f"image={CALL}").encode())


def pickle_weight(members: Members) -> None:
    config = json.loads(members[WEIGHTS])
    next(iter(config["config"].values()))["use_pickle"] = True
    members[WEIGHTS] = json.dumps(config).encode()
    members["data/weights/weight_0"] = saved(Code())


def add_object(prefix: str, **more: Any) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        meta = next(iter(json.loads(members[WEIGHTS])["config"].values()))
        entry = {**meta, "path_name": f"{prefix}_0", "is_param": False, **more}
        members[CONSTANTS] = json.dumps({"config": {"thing": entry}}).encode()
        members[f"data/constants/{prefix}_0"] = pickle.dumps(Code())

    return change


def saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def add(name: str, content: bytes = b"x") -> Callable[[Members], None]:
    return lambda members: members.update({name: content})


EVIL: dict[str, tuple[Callable[[Members], None], str]] = {
    "a dim that calls": (dim(CALL), "which is not plain arithmetic"),
    "a dim of a tensor called metadata": (dim(CALL, "metadata"), "which is not plain arithmetic"),
    "a dim with an attribute": (dim("s0.__class__"), "which is not plain arithmetic"),
    "a dim with a text": (dim("Symbol('x y()')"), "which is not plain arithmetic"),
    "a dim of a builtin": (dim("eval"), "which is not plain arithmetic"),
    "a dim that calls a builtin": (dim("exec('1')"), "which is not plain arithmetic"),
    "a dim that takes for ever": (dim("Pow(Integer(9), Integer(99999999))"), "plain arithmetic"),
    "a tower of powers": (dim("9**9**9**9"), "which is not plain arithmetic"),
    "a very long dim": (dim("1+" * 5000 + "1"), "which is not plain arithmetic"),
    "a deep dim": (dim("(" * 900 + "1" + ")" * 900), "which is not plain arithmetic"),
    "a function of Python": (call("torch.os.system", as_string="x"), "calls 'torch.os.system'"),
    "a method of a class": (call("torch.ops.aten.add.__class__"), "no operator of PyTorch's own"),
    "an operator that opens files": (call("torch.ops.aten.from_file.default"), "calls 'torch.ops"),
    "an operator of nobody": (call("torch.ops.mine.op.default"), "no operator of PyTorch's own"),
    "a caller of methods": (call("_operator.methodcaller"), "no operator of PyTorch's own"),
    "a function as argument": (call("torch.ops.aten.relu.default", as_operator="torch.os.system"),
                               "calls 'torch.os.system'"),
    "an import": (structure(type="collections.defaultdict"), "'collections.defaultdict'"),
    "an enumeration": (structure(type="builtins.dict", context='{"__enum__": 1}'), "of the type"),
    "a name that is code": (rename_input, "where a name belongs"),
    "a pickled weight": (pickle_weight, "it holds pickled objects"),
    "a pickled object": (add_object("opaque_obj", use_pickle=True), "pickled"),
    "a pickle that says it is none": (add_object("opaque_obj"), "pickled|compiled"),
    "a scripted object": (add_object("custom_obj"), "pickled|compiled"),
    "pickled samples": (add(SAMPLES, saved(((Code(),), {}))), "holds more than tensors"),
    "pickled weights of old": (add("data/weights/model.pt", saved(Code())), "more than tensors"),
    "a library": (add("data/aotinductor/model/net.so"), "which may be compiled code"),
    "a program for a device": (add("data/executorch/net.pte"), "which may be compiled code"),
}  # fmt: skip
PROOF = ("a dim that calls", "a name that is code", "a pickled weight", "a pickled object",
         "a pickle that says it is none", "pickled samples", "pickled weights of old")  # fmt: skip


@pytest.mark.parametrize("why", EVIL)
def test_what_could_run_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: Members, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    change, words = EVIL[why]
    found = dict(members)
    change(found)
    with pytest.raises(ModelFileError, match=words) as caught:
        load(Origin("PYTORCH", written(tmp_path, found)))
    assert "trust_pickle" in str(caught.value)
    assert not MARK.exists()


@pytest.mark.parametrize("why", PROOF)
def test_torch_would_have_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: Members, why: str
) -> None:
    """Else the checks would be for nothing, and this says when they are."""
    monkeypatch.chdir(tmp_path)
    found = dict(members)
    EVIL[why][0](found)
    with contextlib.suppress(LiteError):  # it comes too late
        load(Origin("PYTORCH", written(tmp_path, found), trust_pickle=True))
    assert MARK.exists()


def test_the_unchanged_archive_is_fine(tmp_path: Path, members: Members) -> None:
    check_archive(written(tmp_path, members))


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s40', positive=True, integer=True)",
        "Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))",
        "Pow(Symbol('s0'), Integer(2))",
        "FloorDiv(Symbol('u1', integer=True), Integer(4))",
        "Max(Integer(1), Symbol('s1', positive=True, integer=True))",
        "2*s0 + 1",
        "s0 // 4",
        "Float('0.5', precision=53)",
        "s0 >= 2",
    ],
)
def test_arithmetic_in_a_dim_is_fine(tmp_path: Path, members: Members, text: str) -> None:
    found = dict(members)
    dim(text)(found)
    check_archive(written(tmp_path, found))


def test_an_archive_of_old_is_refused(tmp_path: Path, members: Members) -> None:
    path = written(tmp_path, {**members, "version": b"8.2"}, root="")
    with pytest.raises(ModelFileError, match=r"PyTorch 2\.7 or older.*trust_pickle"):
        check_archive(path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\3\4" + bytes(100)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(content)
    words = r"net\.pt2.*(no archive made by torch.export.save|an empty file)"
    with pytest.raises(ModelFileError, match=words):
        load(Origin("PYTORCH", path))


@pytest.mark.parametrize("missing", [MODEL, WEIGHTS, CONSTANTS, "archive_format", "byteorder"])
def test_an_archive_that_lacks_something_is_refused(
    tmp_path: Path, members: Members, missing: str
) -> None:
    found = {name: content for name, content in members.items() if name != missing}
    path = written(tmp_path, found)
    if missing == "byteorder":  # which nothing needs
        check_archive(path)
        return
    with pytest.raises(ModelFileError, match=r"net\.pt2"):
        load(Origin("PYTORCH", path))


def test_a_graph_that_is_no_json_is_refused(tmp_path: Path, members: Members) -> None:
    with pytest.raises(ModelFileError, match="is no JSON"):
        check_archive(written(tmp_path, {**members, MODEL: b"{"}))


@pytest.mark.parametrize("cut", [10, 1000, 3000])
def test_a_damaged_archive_is_refused(tmp_path: Path, members: Members, cut: int) -> None:
    path = written(tmp_path, members)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ModelFileError, match=r"net\.pt2"):
        load(Origin("PYTORCH", path))


def test_an_archive_that_unpacks_to_any_size_is_not_unpacked(
    tmp_path: Path, members: Members
) -> None:
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, MODEL: b" " * (64 << 20)}.items():
            archive.writestr(f"net/{name}", content)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(ModelFileError, match="its content is compressed"):
        check_archive(path)
