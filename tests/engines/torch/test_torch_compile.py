"""Compiling: what is kept where, what happens when it fails, and that it says nothing."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support.torch_graphs import computed, dense, program, rows

from mindspore_lite.engines.torch import compile as compiler
from mindspore_lite.engines.torch.kernels.lower import Target, lower

X = torch.from_numpy(rows(3))


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compilers' files go to the test's own cache."""
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")  # so that it is put back at the end of the test
        monkeypatch.delenv(name)


def module() -> Any:
    """`dense` for three rows, its weights put in."""
    made = program(dense())
    lowered = lower(made._model, ((3, 16),), Target(torch.device("cpu")))
    made.store.fill(lowered)
    return lowered.module


def test_off_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_inductor", lambda: pytest.fail("it was compiled"))
    own = module()
    assert compiler.compiled(own, [X], "off") is own


def test_a_compiled_graph_follows_its_weights_and_keeps_its_files_in_the_cache(
    cache_place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = module()
    run = compiler.compiled(own, [X], "fast")
    assert run is not own
    np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3)), rtol=1e-5)
    with torch.no_grad():
        own.w.mul_(2)
    np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3), 2.0), rtol=1e-5)
    place = cache_place / "torch"
    assert place.stat().st_mode & 0o777 == 0o700
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(place)
    assert os.environ["TRITON_CACHE_DIR"] == str(place / "triton")
    assert any(path.is_file() for path in place.rglob("*"))
    assert capfd.readouterr() == ("", "")


def fails(*given: Any, **more: Any) -> Any:
    raise RuntimeError("no C compiler\n found")


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compiling gives the graph itself, which can be kept; how many parameters each time."""
    done: list[int] = []

    class Made:
        def __init__(self, graph: Any, given: Any) -> None:
            self.graph = graph
            done.append(len(given))

        def __call__(self, *given: Any) -> Any:
            return self.graph(*given)

        def save(self, path: str, format: str) -> None:
            assert format == "binary"
            torch.save(self.graph, path)

    class Found:
        @staticmethod
        def load(path: str, format: str) -> Any:
            return torch.load(path, weights_only=False)

    monkeypatch.setattr(compiler, "_inductor", lambda: lambda graph, given, _: Made(graph, given))
    monkeypatch.setattr(compiler, "_artefacts", lambda: SimpleNamespace(CompiledArtifact=Found))
    return done


def test_a_second_start_finds_what_the_first_has_compiled(uncompiled: list[int]) -> None:
    for _ in range(2):
        own = module()
        run = compiler.compiled(own, [X], "fast", origin="a model")
        np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3)), rtol=1e-5)
        with torch.no_grad():
            own.w.mul_(2)
        np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3), 2.0), rtol=1e-5)
    assert uncompiled == [3]  # the input and two weights


def test_a_real_compilation_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.compiled(module(), [X], "fast", origin="a model")
    monkeypatch.setattr(compiler, "_inductor", lambda: fails)
    run = compiler.compiled(module(), [X], "fast", origin="a model")
    np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3)), rtol=1e-5)


@pytest.mark.parametrize("other", ["origin", "inputs", "code", "switch", "torch", "nothing"])
def test_whatever_would_change_the_code_is_compiled_anew(
    other: str, uncompiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.compiled(module(), [X], "fast", origin="a model")
    given, origin = X, "a model"
    if other == "origin":
        origin = "another"
    elif other == "inputs":
        given = X.t().contiguous().t()  # the same numbers, but another layout
    elif other == "code":
        monkeypatch.setattr(compiler.code_cache, "_code", lambda: "another")
    elif other == "switch":
        monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    elif other == "torch":
        monkeypatch.setattr(torch, "__version__", "3.0")
    compiler.compiled(module(), [given], "fast", origin=origin)
    assert len(uncompiled) == (1 if other == "nothing" else 2)


def test_a_model_without_an_origin_is_not_kept(uncompiled: list[int], cache_place: Path) -> None:
    for _ in range(2):
        compiler.compiled(module(), [X], "fast")
    assert len(uncompiled) == 2
    assert not list(cache_place.rglob("kept"))


def test_a_damaged_file_is_compiled_anew(uncompiled: list[int], cache_place: Path) -> None:
    compiler.compiled(module(), [X], "fast", origin="a model")
    (file,) = cache_place.rglob("kept")
    for content in (b"", file.read_bytes()[:100]):
        file.write_bytes(content)
        run = compiler.compiled(module(), [X], "fast", origin="a model")
        np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3)), rtol=1e-5)
    assert len(uncompiled) == 3


def test_what_cannot_be_kept_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_inductor", lambda: lambda graph, given, options: graph)
    run = compiler.compiled(module(), [X], "fast", origin="a model")  # graphs have no save()
    np.testing.assert_allclose(run(X)[0].numpy(), computed(rows(3)), rtol=1e-5)


def test_a_place_that_the_user_has_named_stays(
    tmp_path: Path, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "mine"))
    compiler._keep_files()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "mine")
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "mine" / "triton")
    assert not cache_place.exists()


def test_a_graph_that_cannot_be_compiled_runs_as_it_is_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiler, "_inductor", lambda: fails)
    own = module()
    with pytest.warns(RuntimeWarning, match="RuntimeError: no C compiler found; a C comp") as said:
        assert compiler.compiled(own, [X], "full") is own
        assert compiler.compiled(own, [X], "fast") is own
    assert len(said) == 1


def test_code_that_fails_when_it_is_first_run_counts_as_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(*given: Any) -> None:
        raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(compiler, "_inductor", lambda: lambda *given, **more: made)
    own = module()
    with pytest.warns(RuntimeWarning, match="no kernel image"):
        assert compiler.compiled(own, [X], "full") is own


def test_want_of_memory_is_no_fault_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **more: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(compiler, "_inductor", lambda: full)
    with pytest.raises(torch.OutOfMemoryError):
        compiler.compiled(module(), [X], "full")


def test_every_option_is_one_that_the_compiler_knows() -> None:
    from torch._inductor import config

    for options in itertools.chain(*compiler._WAYS.values()):
        assert set(options) <= set(config.get_config_copy())


def test_whoever_wants_to_know_is_told_what_is_prepared() -> None:
    heard: list[str] = []
    with compiler.told(heard.append):
        program(dense()).plan(((2, 16),))
    program(dense()).plan(((3, 16),))
    assert heard == ["preparing inputs of [2, 16]"]
