"""Small model files for tests of the public API."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.mindir_builder import Net, encode
from support.running import DATA

import mindspore_lite as mslite
from mindspore_lite.errors import InputError

MINDIR, ONNX = mslite.ModelType.MINDIR, mslite.ModelType.ONNX
MOBILENET = DATA / "models/mobilenet_v3_mini.mindir"
SWIN = DATA / "models/swin_mini.mindir"
DYN_BATCH = DATA / "nets/dyn_batch.mindir"
TWO_IN_TWO_OUT = DATA / "nets/io_two_in_two_out.mindir"
MIXED_TYPES = DATA / "nets/io_mixed_types.mindir"
DIGITS = Path(mslite.__file__).parent / "cli/data/digits.mindir"


REFUSED_OUTPUTS = [  # what dense_net's predict() is given, raises and says
    ("x", TypeError, "outputs must be list"),
    ([1], TypeError, "outputs element must be Tensor, but got .* at index 0"),
    ([], InputError, "predict failed! 0 outputs were given, the model has 1"),
]


def dense_net(rows: int = 2, factor: float = 1.0) -> bytes:
    """y = x @ (factor * ones(3, 4)) + 1 for x of shape (rows, 3); rows -1 is any number."""
    net = Net()
    x = net.input("x", (rows, 3))
    product = net.call("MatMulExt", x, net.weight("w", np.full((3, 4), factor, np.float32)))
    return encode(net.model(net.call("Add", product, net.constant(np.ones(4, np.float32)))))


def dense_values(x: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """What dense_net computes."""
    return np.repeat(x.sum(1, keepdims=True) * np.float32(factor) + 1, 4, 1)


def small_unet(rows: int) -> bytes:
    """The inputs of Stable Diffusion's UNet, smaller; every row counts for itself."""
    net = Net()
    sample = net.input("sample", (rows, 4, 8, 8))
    timestep = net.input("timestep", (1,))
    states = net.input("encoder_hidden_states", (rows, 7, 16))
    weight = np.random.default_rng(3).standard_normal((16, 8), np.float32)
    mixed = net.call("MatMulExt", states, net.weight("w", weight))
    mean = net.call("ReduceMean", mixed, net.constant((1,)), keep_dims=True)
    text = net.call("Reshape", mean, net.constant((rows, 1, 1, 8)))
    return encode(net.model(net.call("Add", net.call("Mul", sample, timestep), text)))


def conv_onnx(path: Path, shape: tuple[int, ...] = (1, 3, 8, 8)) -> Path:
    """An ONNX file: a convolution with weights for 3 channels, on pictures as NCHW; -1 is open."""

    def tensor(name: str, dims: list[int | str]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    dims: list[int | str] = [f"d{at}" if dim < 0 else dim for at, dim in enumerate(shape)]
    weights = np.random.default_rng(5).standard_normal((2, 3, 1, 1), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="stem")],
        "conv",
        [tensor("x", dims)],
        [tensor("y", ["n", 2, "h", "w_"])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, path)
    return path


def arrays(outputs: list[mslite.Tensor]) -> list[np.ndarray]:
    """The data of tensors."""
    return [output.get_data_to_numpy() for output in outputs]


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def built(
    path: Path,
    kind: mslite.ModelType = MINDIR,
    context: mslite.Context | None = None,
) -> mslite.Model:
    """A Model from a file; one thread unless the context says otherwise."""
    if context is None:
        context = mslite.Context()
        context.cpu.thread_num = 1
    model = mslite.Model()
    model.build_from_file(str(path), kind, context)
    return model


def built_runner(path: Path | str, **parallel: object) -> mslite.ModelParallelRunner:
    """A runner of one thread per worker; keyword arguments are settings of context.parallel."""
    context = mslite.Context()
    context.cpu.thread_num = 1
    for name, value in parallel.items():
        assert hasattr(type(context.parallel), name), name
        setattr(context.parallel, name, value)
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(path), context)
    return runner


ENDLESS = np.array(2**62)  # how often the loop of a looping model turns, for a run that never ends


def looping(path: Path, turns: int | None = None) -> Path:
    """An ONNX file: n and x in, x out after n turns of a loop, which can be told to stop.

    With turns, only x goes in: a build that warms up runs as long.
    """

    def tensor(name: str, kind: int, shape: list[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Mul", ["s", "one"], ["s_next"]),
            helper.make_node("Identity", ["c"], ["c_next"]),
        ],
        "body",
        [
            tensor("i", TensorProto.INT64, []),
            tensor("c", TensorProto.BOOL, []),
            tensor("s", TensorProto.FLOAT, [2]),
        ],
        [tensor("c_next", TensorProto.BOOL, []), tensor("s_next", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.ones(2, np.float32), "one")],
    )
    inputs = [tensor("n", TensorProto.INT64, []), tensor("x", TensorProto.FLOAT, [2])]
    constants = [] if turns is None else [numpy_helper.from_array(np.array(turns), "n")]
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        "graph",
        inputs[len(constants) :],
        [tensor("y", TensorProto.FLOAT, [2])],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path
