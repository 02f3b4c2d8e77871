"""The OpenVINO engine: what it keeps, settings that reach it, changing weights, readable errors."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import BOOL, F32, I64, body, model, node
from support.quant_nets import mlp

from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.conversion.weight_quant import quantise_weights
from mindspore_lite.engines import sharing
from mindspore_lite.engines.base import Group, ModelSource, Options
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.openvino.engine import OpenVinoEngine
from mindspore_lite.errors import EngineError, RequestTimeoutError

ENGINE = OpenVinoEngine()
CACHES = pytest.mark.parametrize("cached", ["on", "off"])
MakeSource = Callable[[onnx.ModelProto], ModelSource]


def properties(session: Any, *names: str) -> list[Any]:
    return [session._native.compiled.get_property(name) for name in names]


def files(place: Path) -> set[str]:
    (folder,) = (p for p in place.iterdir() if len(p.name) == 64)
    return {p.name for p in folder.iterdir()}


# --- the cache ---


@CACHES
def test_session_describes_itself_and_computes(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    for _ in range(2):
        session = ENGINE.load(dense.source(), Options())
        (x,), (y,) = session.info.inputs, session.info.outputs
        assert (x.name, x.dtype, x.shape) == ("x", np.float32, (-1, 64))
        assert (y.name, y.dtype, y.shape) == ("y", np.float32, (-1, 64))
        assert session.info.metadata == {"author": "tests"}
        assert not session.info.mapped
        dense.check(session)
    assert dense.translations == (1 if cached == "on" else 2)
    assert len(session.skeleton()) < 2000


def test_what_is_kept_serves_any_number_of_streams(dense: Any, cache_place: Path) -> None:
    for options in (Options(), Options(streams=2), Options(threads=2)):
        dense.check(ENGINE.load(dense.source(), options))
    assert dense.translations == 1
    assert files(cache_place) == {
        artefact.BLOB, artefact.PORTS, artefact.SKELETON, artefact.META
    }  # fmt: skip


def test_a_damaged_blob_is_built_anew(dense: Any, cache_place: Path) -> None:
    ENGINE.load(dense.source(), Options())
    (blob,) = cache_place.glob(f"*/{artefact.BLOB}")
    blob.chmod(0o600)
    blob.write_bytes(b"damage")
    dense.check(ENGINE.load(dense.source(), Options()))
    assert dense.translations == 2


def test_precisions_are_kept_apart(dense: Any) -> None:
    known = {ENGINE.identity(dense.source(), Options(precision=p)).settings["precision"]
             for p in ("enforce_fp32", "preferred_fp16", "preferred_bf16")}  # fmt: skip
    assert len(known) == 3


def test_another_process_could_open_what_is_kept(dense: Any) -> None:
    session, share = sharing.load_shared(ENGINE, dense.source(), Options(), "cpu", (os.getpid(),))
    dense.check(session)
    share.close()
    folders: list[Path] = []
    ENGINE.load(dense.source(), Options(), lambda folder, identity: folders.append(folder))
    dense.check(ENGINE.open(folders[0], Options(streams=2)))


# --- settings ---


def test_streams_and_threads_reach_the_runtime(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options(streams=2))
    names = ("NUM_STREAMS", "INFERENCE_NUM_THREADS", "ENABLE_CPU_PINNING")
    cores = len(os.sched_getaffinity(0))
    assert properties(session, *names) == [min(2, cores), min(2, cores), False]


def test_float32_is_computed_in_float32_unless_asked_otherwise(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options())
    assert properties(session, "INFERENCE_PRECISION_HINT")[0].get_type_name() == "f32"
    for precision in ("preferred_fp16", "preferred_bf16"):
        session = ENGINE.load(dense.source(), Options(precision=precision))
        (y,) = session.run([dense.x])
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, dense.wanted, rtol=0.02)


def test_settings_that_cannot_be_are_refused(dense: Any) -> None:
    with pytest.raises(ValueError, match="precision is 'int8', wanted one of"):
        ENGINE.load(dense.source(), Options(precision="int8"))
    with pytest.raises(ValueError, match=r"cores \[4095\] may not be used"):
        ENGINE.load(dense.source(), Options(cores=(4095,)))


def test_a_group_is_told_that_it_shares_nothing(dense: Any) -> None:
    with pytest.warns(RuntimeWarning, match="shares neither weights nor scratch memory"):
        dense.check(ENGINE.load(dense.source(), Options(group=Group())))


def test_float64_is_warned_of(source_of: MakeSource) -> None:
    kind = onnx.TensorProto.DOUBLE
    made = model([node("Exp", ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])])
    with pytest.warns(RuntimeWarning, match="OpenVINO computes float64 in float32"):
        session = ENGINE.load(source_of(made), Options())
    (y,) = session.run([np.zeros(2)])
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [1, 1])


# --- weights that change ---


@CACHES
def test_weights_are_replaced_by_opening_another_session(
    cached: str, dense: Any, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    source = replace(dense.source(), variable=(("w", ""),))
    session = ENGINE.load(source, Options(streams=2))
    dense.check(session)
    (found,) = session.info.variables
    np.testing.assert_array_equal(found.first, dense.w)
    opener = session.opener()
    for changed in (
        ENGINE.load(replace(source, replaced={"w": dense.w * 2}), Options(streams=2)),
        opener({"w": dense.w * 2}),
    ):
        np.testing.assert_allclose(changed.run([dense.x])[0], 2 * dense.wanted - 1, rtol=1e-5)
    dense.check(opener({}))
    dense.check(session)  # which nobody changed
    dense.check(ENGINE.load(source, Options()))
    if cached == "on":
        assert dense.translations == 1
        assert artefact.BLOB not in files(cache_place)


@CACHES
def test_bfloat16_weights(
    cached: str, source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    cast = node("Cast", ["w"], ["w32"], to=F32)
    made = model(
        [cast, node("Add", ["x", "w32"], ["y"])], [("x", F32, [1024])], [("y", F32, [1024])]
    )
    made.graph.initializer.append(
        onnx.helper.make_tensor(
            "w", onnx.TensorProto.BFLOAT16, [1024], np.full(1024, 1.5, np.float32)
        )
    )
    (y,) = ENGINE.load(source_of(made), Options()).run([np.ones(1024, np.float32)])
    assert set(y) == {2.5}


# --- errors ---


@pytest.mark.filterwarnings("error")  # the cache is not to be blamed
@CACHES
@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("NoSuchOp", ["x"], ["y"])], "it has no operators NoSuchOp"),
        ([node("Det", ["x"], ["y"])], "it has no operators Det-21; use .*engine=onnxruntime"),
    ],
)
def test_operators_that_openvino_lacks_are_named(
    cached: str, nodes: list[Any], words: str, source_of: MakeSource,
    cache_place: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("MSLITE_CACHE", cached)
    made = model(nodes, [("x", F32, [2, 2])], [("y", F32, [])])
    with pytest.raises(EngineError, match=words) as caught:
        ENGINE.load(source_of(made), Options())
    assert "\n" not in str(caught.value)
    assert not list(cache_place.glob("build-*"))


def test_strings_are_refused(source_of: MakeSource) -> None:
    kind = onnx.TensorProto.STRING
    made = model([node("Identity", ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])])
    with pytest.raises(EngineError, match="input 'x' holds strings"):
        ENGINE.load(source_of(made), Options())


def test_ordinary_models_warn_of_nothing(dense: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ENGINE.load(dense.source(), Options(streams=2))


# --- memory ---


def own_bytes() -> int:
    """What this process has in memory that belongs to no file."""
    with open("/proc/self/smaps_rollup") as lines:
        (kib,) = (int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return kib * 1024


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two streams")
def test_a_further_stream_adds_no_weights(source_of: MakeSource) -> None:
    side, count = 1024, 8  # 32 MiB
    nodes = [node("MatMul", [f"v{at}", f"w{at}"], [f"v{at + 1}"]) for at in range(count)]
    weights = {f"w{at}": np.eye(side, dtype=np.float32) * (at + 1) for at in range(count)}
    made = model(nodes, [("v0", F32, [8, side])], [(f"v{count}", F32, [8, side])], **weights)
    source, x = source_of(made), np.ones((8, side), np.float32)
    first = ENGINE.load(source, Options())  # what is made once is made
    before = own_bytes()
    session = ENGINE.load(source, Options(streams=2))
    requests = [session._native.compiled.create_infer_request() for _ in range(2)]  # type: ignore[union-attr]
    for request in requests:  # both streams compute
        request.start_async([x], share_inputs=True)
    for request in requests:
        request.wait()
    assert own_bytes() - before < 1.5 * count * side * side * 4  # they pack the weights once
    first.close()


# --- the budget of a build ---


def test_a_compilation_that_does_not_come_back_is_given_up(
    dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr(
        "mindspore_lite.engines.openvino.reading.read", lambda *_: gate.wait(120) and None
    )
    monkeypatch.setattr("mindspore_lite.engines.time_limit.GRACE_S", 0.0)
    words = r"reading the model in OpenVINO did not end within 0.01 s"
    try:
        with pytest.raises(RequestTimeoutError, match=words):
            ENGINE.load(dense.source(), Options(max_seconds=0.01))
    finally:
        gate.set()


def test_branches_that_lie_too_deep_in_each_other_are_refused(source_of: MakeSource) -> None:
    """Each doubles the time: OpenVINO 2026.4 takes hours for 30 of them."""
    inner = body([node("Neg", ["x"], ["b0"])], [], [("b0", F32, None)])
    for level in range(1, 18):
        other = body([node("Abs", ["x"], [f"e{level}"])], [], [(f"e{level}", F32, None)])
        branch = node("If", ["c"], [f"b{level}"], then_branch=inner, else_branch=other)
        inner = body([branch], [], [(f"b{level}", F32, None)])
    proto = model(list(inner.node), [("x", F32, (2,)), ("c", BOOL, ())], ["b17"])
    with pytest.raises(EngineError, match=r"lie 17 deep in each other, and OpenVINO .* at most 16"):
        ENGINE.load(source_of(proto), Options())


def test_constants_of_unknown_size_are_refused(source_of: MakeSource) -> None:
    nodes = [
        node("Conv", ["image", "kernel"], ["c"]),
        node("Cast", ["c"], ["n"], to=I64),
        node("Reshape", ["n", "flat"], ["size"]),
        node("ConstantOfShape", ["size"], ["k"]),
        node("Add", ["x", "k"], ["y"]),
    ]
    ones = np.ones((1, 1, 1, 1), np.float32)
    proto = model(nodes, [("x", F32, (1,))], ["y"], image=ones, kernel=ones, flat=np.asarray([-1]))
    with pytest.raises(
        EngineError, match=r"would compute node .*\(ConstantOfShape\) ahead of time"
    ):
        ENGINE.load(source_of(proto), Options())


# --- quantised models ---


def test_products_are_computed_with_weights_that_were_quantised(
    source_of: MakeSource,
) -> None:
    net = mlp()
    quantise_weights(net, QuantSettings("WEIGHT_QUANT"))  # with its default, bias_correction
    session: Any = ENGINE.load(source_of(ir.to_proto(net)), Options())
    nodes = [node.get_rt_info() for node in session._native.compiled.get_runtime_model().get_ops()]
    products = [n for n in nodes if n["layerType"].astype(str) == "FullyConnected"]
    assert [n["runtimePrecision"].astype(str) for n in products] == ["i8", "i8"]
