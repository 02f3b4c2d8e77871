"""Whole files of converter_lite, from bytes to numbers: as the same network written plainly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.converted import Twins, mobile_net
from support.mindir_builder import Net, encode, tensor_type
from support.models import built, written
from support.running import assert_close, op_types, run

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.read import read_file

RNG = np.random.default_rng(7)


def read_back(path: Path, model: r.Model) -> r.Model:
    return read_file(written(path / "model.mindir", encode(model)))


def images(net: Twins) -> np.ndarray:
    return RNG.random(net.x[2], dtype=np.float32)


def test_a_converted_cnn_computes_what_the_plain_one_does(tmp_path: Path) -> None:
    net = mobile_net()
    plain, lite = net.models(net.result)  # type: ignore[attr-defined]
    x = images(net)
    (wanted,) = run(plain, x)
    (got,) = run(read_back(tmp_path, lite), np.moveaxis(x, 1, -1))
    assert_close(got, wanted)


def test_a_converted_cnn_runs_through_the_public_interface(tmp_path: Path) -> None:
    net = mobile_net()
    plain, lite = net.models(net.result)  # type: ignore[attr-defined]
    x = images(net)
    model = built(written(tmp_path / "net.mindir", encode(lite)))
    (tensor,) = model.get_inputs()
    assert (tensor.name, tensor.shape) == ("images", [2, 32, 32, 3])
    tensor.set_data_from_numpy(np.ascontiguousarray(np.moveaxis(x, 1, -1)))
    (found,) = model.predict([tensor])
    assert_close(found.get_data_to_numpy(), run(plain, x)[0])


def test_a_converted_cnn_takes_other_sizes() -> None:
    net = mobile_net(batch=1)
    plain, lite = net.models(net.result)  # type: ignore[attr-defined]
    del plain
    larger = RNG.random((1, 48, 40, 3), dtype=np.float32)
    (got,) = run(lite, larger, input_shapes={"images": larger.shape})
    assert got.shape == (1, 10)


def test_the_engine_leaves_few_transposes_of_the_many_that_the_layout_asks_for(
    tmp_path: Path,
) -> None:
    """No pass of ours removes them: were ONNX Runtime to stop doing it, this would say so."""
    net = mobile_net(batch=1)
    graph = from_mindir(net.models(net.result)[1])  # type: ignore[attr-defined]
    assert op_types(graph).count("Transpose") > 40
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    data = ir.to_proto(graph).SerializeToString()
    ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    left = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert left.count("Transpose") <= 3


# --- language -------------------------------------------------------------------------------------


def normal(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    found: np.ndarray = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b
    return found


def test_a_converted_encoder_layer_computes_what_numpy_does(tmp_path: Path) -> None:
    def weight(*shape: int) -> np.ndarray:
        return (RNG.standard_normal(shape) * 0.3).astype(np.float32)

    table, wq, wk, wv, wo = weight(11, 8), *(weight(8, 8) for _ in range(4))
    w1, b1, w2, b2, g, b = weight(16, 8), weight(16), weight(8, 16), weight(8), weight(8), weight(8)
    net = Net("lite")
    ids = net.input("ids", (2, 5), np.int32, given_name="input_ids")

    def call(op: str, *inputs: str, shape: Any = (2, 5, 8), **attributes: Any) -> str:
        return net.call(op, *inputs, type=tensor_type(shape), scope=f"Default/{op}", **attributes)

    def dense(x: str, w: np.ndarray, *more: str, shape: Any = (2, 5, 8), act: int = 0) -> str:
        name = net.weight(f"w{net.count}", w)
        return call("MatMulFusion", x, name, *more, shape=shape, transpose_b=True,
                    activation_type=act)  # fmt: skip

    def int32(*values: int) -> str:
        return net.constant(np.array(values, np.int32))

    def heads(x: str) -> str:
        split = call("Reshape", x, int32(0, -1, 2, 4), shape=(2, 5, 2, 4))
        return call("Transpose", split, int32(0, 2, 1, 3), shape=(2, 2, 5, 4))

    x = call("Gather", net.weight("table", table), ids, net.constant(np.array(0, np.int32)))
    q, k, v = (heads(dense(x, w)) for w in (wq, wk, wv))
    scores = call("MatMulFusion", q, k, shape=(2, 2, 5, 5), transpose_b=True)
    scores = call("DivFusion", scores, net.constant(np.array(2, np.float32)), shape=(2, 2, 5, 5))
    mixed = call("MatMulFusion", call("Softmax", scores, shape=(2, 2, 5, 5), axis=[-1]), v,
                 shape=(2, 2, 5, 4))  # fmt: skip
    joined = call("Reshape", call("Transpose", mixed, int32(0, 2, 1, 3), shape=(2, 5, 2, 4)),
                  int32(2, 5, 8))  # fmt: skip
    x = call("AddFusion", x, dense(joined, wo))
    gamma, beta = net.weight("gamma", g), net.weight("beta", b)
    y = call("LayerNormFusion", x, gamma, beta, begin_norm_axis=-1, begin_params_axis=-1,
             epsilon=1e-5, elementwise_affine=True)  # fmt: skip
    inner = dense(y, w1, net.weight("b1", b1), shape=(2, 5, 16))
    inner = call("Activation", inner, shape=(2, 5, 16), activation_type=19, approximate=True)
    y = call("AddFusion", y, dense(inner, w2, net.weight("b2", b2)))
    y = call("ReduceFusion", y, int32(1), shape=(2, 8), mode=0, keep_dims=False)

    tokens = RNG.integers(0, 11, (2, 5)).astype(np.int32)
    e = table[tokens]
    parts = [(e @ w.T).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for w in (wq, wk, wv)]
    weights = np.exp(parts[0] @ parts[1].transpose(0, 1, 3, 2) / 2)
    weights /= weights.sum(-1, keepdims=True)
    e = e + (weights @ parts[2]).transpose(0, 2, 1, 3).reshape(2, 5, 8) @ wo.T
    e = normal(e, g, b)
    hidden = e @ w1.T + b1
    hidden *= (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3))) / 2
    wanted = (e + hidden @ w2.T + b2).mean(1)

    (got,) = run(read_back(tmp_path, net.model(y)), tokens)
    assert_close(got, wanted.astype(np.float32))


# --- quantised files ------------------------------------------------------------------------------


def record(scale: float, zero: int) -> dict[str, list[Any]]:
    return {"scale_list": [scale], "zero_point_list": [zero], "num_bit_list": [8]}


def quantised_net(kernel: np.ndarray) -> Net:
    """Float in, int8 between, float out."""
    net = Net("lite")
    x = net.input("x", (1, 6, 6, 3))

    def call(op: str, *inputs: str, shape: Any, dtype: Any = np.int8, **attributes: Any) -> str:
        return net.call(op, *inputs, type=tensor_type(shape, dtype), scope=f"Default/{op}",
                        quant_type=5, **attributes)  # fmt: skip

    q = call("QuantDTypeCast", x, shape=(1, 6, 6, 3), src_t=43, dst_t=32,
             quant_param=[record(0.02, -3)])  # fmt: skip
    y = call("Conv2DFusion", q, net.weight("w", kernel), shape=(1, 4, 4, 4), stride=[1, 1],
             dilation=[1, 1], pad_mode=2, pad_list=[0] * 4, group=1, format=1, activation_type=1,
             quant_param=[record(0.05, -128)])  # fmt: skip
    z = call("Reshape", y, net.constant(np.array([1, -1], np.int32)), shape=(1, 64),
             quant_param=[record(0.05, -128)])  # fmt: skip
    net.result = call("QuantDTypeCast", z, shape=(1, 64), dtype=np.float32, src_t=32, dst_t=43)
    return net


def rounded(x: np.ndarray, scale: float, zero: int) -> np.ndarray:
    """x as it is after being stored in int8."""
    stored = np.clip(np.round(x / np.float32(scale)) + zero, -128, 127)
    found: np.ndarray = ((stored - zero) * np.float32(scale)).astype(np.float32)
    return found


def test_a_fully_quantised_file_rounds_where_it_says(tmp_path: Path) -> None:
    kernel = (RNG.standard_normal((4, 3, 3, 3)) * 0.3).astype(np.float32)
    net = quantised_net(kernel)
    x = RNG.uniform(-2, 2, (1, 6, 6, 3)).astype(np.float32)
    (got,) = run(read_back(tmp_path, net.model(net.result)), x)
    q = rounded(x, 0.02, -3)
    patches = np.lib.stride_tricks.sliding_window_view(q, (3, 3), (1, 2))  # n, h, w, c, kh, kw
    real = np.maximum(np.einsum("nhwcij,oijc->nhwo", patches, kernel), 0)
    wanted = rounded(real, 0.05, -128).reshape(1, -1)
    assert np.abs(got - wanted).max() <= 0.05 + 1e-6  # one step, where a sum lies between two
    assert (np.abs(got - wanted) > 1e-6).sum() <= 1


def test_a_quantised_file_that_lost_its_scales_is_refused() -> None:
    net = Net("lite")
    x = net.input("x", (2,), np.int8)
    y = net.call("ReLU", x, type=tensor_type((2,), np.int8), quant_type=5)
    with pytest.raises(UnsupportedOpError, match="'x' is quantised, and its scale is not known"):
        from_mindir(net.model(y))


# --- what cannot be translated --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words"),
    [("ACL", "compiled for Ascend when it was converted"), ("MyOp", "of type 'MyOp'")],
)
def test_a_custom_operator_is_refused_by_its_type(kind: str, words: str) -> None:
    net = Net("lite")
    inputs = (net.input("x", (2,)), net.weight("om", np.zeros(4, np.uint8)))
    net.nodes.append(r.Call("lite:custom", r.Primitive("Custom", {"type": kind}), inputs))
    with pytest.raises(UnsupportedOpError, match=words):
        from_mindir(net.model("lite:custom"))
