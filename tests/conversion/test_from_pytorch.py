"""conversion/from_pytorch.py: programs become models that compute what PyTorch computes."""

from __future__ import annotations

import functools
import pickle
import shutil
import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from support.running import assert_close, run_graph  # noqa: E402
from support.torch_models import Recurrent, export, network  # noqa: E402

from mindspore_lite.conversion import from_pytorch  # noqa: E402
from mindspore_lite.conversion.sources import Origin, load  # noqa: E402
from mindspore_lite.errors import (  # noqa: E402
    EngineUnavailableError,
    ModelFileError,
    UnsupportedOpError,
)


def outputs_of(name: str, inputs: tuple[torch.Tensor, ...]) -> list[np.ndarray]:
    model, _, _ = network(name)
    with torch.no_grad():
        made = model(*inputs)
    flat = list(made.values()) if isinstance(made, dict) else made
    return [t.numpy() for t in (flat if isinstance(flat, list | tuple) else [flat])]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("exported")

    @functools.cache
    def path(name: str) -> Path:
        export(name, folder / f"{name}.pt2")
        return folder / f"{name}.pt2"

    return path


def check_outputs(name: str, model: ir.Model, inputs: tuple[torch.Tensor, ...]) -> None:
    found = run_graph(model, *(t.numpy() for t in inputs))
    for got, want in zip(found, outputs_of(name, inputs), strict=True):
        assert_close(got, want)


def test_a_convolutional_network_keeps_names_and_open_dims(exported: Callable[[str], Path]) -> None:
    stages: list[str] = []
    model = load(Origin("PYTORCH", exported("convolutional"), step=stages.append))
    assert stages == [
        "loading PyTorch",
        "reading an exported program",
        "exporting it to ONNX, which PyTorch does",
    ]
    assert [v.name for v in model.graph.inputs] == ["image"]
    assert [v.name for v in model.graph.outputs] == ["logits", "best"]
    assert {"conv.weight", "conv.bias", "head.weight", "head.bias", "scale"} <= set(
        model.graph.initializers
    )
    assert not any(node.metadata_props for node in model.graph)  # no paths of another machine
    check_outputs("convolutional", model, (torch.randn(5, 3, 8, 8),))


def test_a_transformer_takes_other_lengths(exported: Callable[[str], Path]) -> None:
    model = load(Origin("PYTORCH", exported("attentive")))
    assert [v.name for v in model.graph.inputs] == ["ids", "mask"]
    assert len(model.graph.outputs) == 2
    check_outputs("attentive", model, (torch.arange(15).reshape(3, 5), torch.ones(3, 5)))


def test_a_recurrent_network_under_another_suffix_is_recognised(
    tmp_path: Path, exported: Callable[[str], Path]
) -> None:
    path = tmp_path / "net.pt"
    shutil.copyfile(exported("recurrent"), path)
    model = load(Origin("PYTORCH", path))
    check_outputs("recurrent", model, network("recurrent")[1])


# --- TorchScript and pickled modules --------------------------------------------------------------


SHAPES = {"series": (3, 7, 6)}


@pytest.fixture
def pickled(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt"
    torch.save(network("recurrent")[0], path)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        model, inputs, _ = network("recurrent")
        torch.jit.trace(model, inputs).save(path)
    return path


@pytest.mark.parametrize(("kind", "words"), [("script", "TorchScript"), ("pickled", "Python")])
def test_what_may_run_code_needs_trust(
    request: pytest.FixtureRequest, kind: str, words: str
) -> None:
    path = request.getfixturevalue(kind)
    with pytest.raises(ModelFileError) as caught:
        load(Origin("PYTORCH", path))
    text = str(caught.value)
    for part in ("net.pt", words, "may run code", "set trust_pickle", "input_shape",
                 "torch.export.save"):  # fmt: skip
        assert part in text


def test_a_pickle_does_not_run_without_trust(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    path = tmp_path / "evil.pth"
    path.write_bytes(pickle.dumps(Touch(mark)))
    with pytest.raises(ModelFileError, match="trust_pickle"):
        load(Origin("PYTORCH", path, shapes=SHAPES))
    assert not mark.exists()


def test_an_archive_that_claims_to_span_disks_is_refused(exported: Callable[[str], Path]) -> None:
    """Python's zipfile raises at such an end where it is only asked whether that is an archive."""
    path = exported("convolutional")
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0, 0, 0, 0, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 1, 0, 5)
    damaged = path.with_name("spans.pt2")
    damaged.write_bytes(path.read_bytes() + locator + end)
    with pytest.raises(ModelFileError, match=r"spans\.pt2.*reading the archive failed: BadZipFile"):
        load(Origin("PYTORCH", damaged))


class Touch:
    """Pickled code that leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("kind", ["script", "pickled"])
def test_trusted_files_load_with_given_shapes(request: pytest.FixtureRequest, kind: str) -> None:
    path = request.getfixturevalue(kind)
    model = load(Origin("PYTORCH", path, trust_pickle=True, shapes=SHAPES))
    assert [v.name for v in model.graph.inputs] == ["series"]
    check_outputs("recurrent", model, (torch.randn(3, 7, 6),))


def test_trusted_files_without_shapes_are_refused(pickled: Path) -> None:
    with pytest.raises(ModelFileError, match=r"does not say what its inputs are.*input_shape"):
        load(Origin("PYTORCH", pickled, trust_pickle=True))


def test_weights_alone_are_no_network(tmp_path: Path) -> None:
    path = tmp_path / "state.pth"
    torch.save(Recurrent().state_dict(), path)
    with pytest.raises(ModelFileError, match=r"holds a OrderedDict, wanted a torch\.nn"):
        load(Origin("PYTORCH", path, trust_pickle=True, shapes=SHAPES))


def test_shapes_that_do_not_fit_the_module_are_said(pickled: Path) -> None:
    with pytest.raises(UnsupportedOpError, match=r"net\.pt.*torch.export.export failed"):
        load(Origin("PYTORCH", pickled, trust_pickle=True, shapes={"series": (1, 9)}))


# --- without a package ----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["torch", "onnxscript"])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"x")
    found = from_pytorch.importlib.util.find_spec

    def find_spec(name: str) -> object:
        return None if name == missing else found(name)

    monkeypatch.setattr(from_pytorch.importlib.util, "find_spec", find_spec)
    with pytest.raises(EngineUnavailableError, match=rf"{missing}: pip install 'mslite\[py"):
        load(Origin("PYTORCH", path))
