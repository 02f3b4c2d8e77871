"""The sides of gpu.py: a model and a precision go in, calls on a card come out.

Each call takes images that lie on the card, and has ended when it returns. Ours reads and writes
float32 and computes in the precision; the peers are the PyTorch module in that precision.

eager         the module as it is
max-autotune  torch.compile(mode="max-autotune") of the module, which replays CUDA graphs too
onnxruntime   the CUDA provider with graphs and channels last, where onnxruntime-gpu can be imported
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_models
import numpy as np
import torch

import mindspore_lite as mslite

Call = Callable[[], torch.Tensor]
TYPES = {"fp16": torch.float16, "fp32": torch.float32}  # the second with TF32
MODES = {"fp16": "preferred_fp16", "fp32": "enforce_fp32"}


def allow_tf32() -> None:
    """Let PyTorch round the operands of float32 products, in all that the peers do."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.fp32_precision = "tf32"  # Triton's convolutions do not heed allow_tf32


def images(batch: int) -> torch.Tensor:
    """Random images on the card."""
    torch.manual_seed(1)
    return torch.randn(batch, *gpu_models.SHAPE, device="cuda")


def built(path: Path, precision: str, batch: int) -> mslite.Model:
    """Our Model, prepared for one size of batch."""
    context = mslite.Context()
    context.target = ["gpu"]
    context.gpu.precision_mode = MODES[precision]
    model = mslite.Model()
    settings = {"gpu_context": {"batch_buckets": str(batch)}}
    model.build_from_file(str(path), mslite.ModelType.MINDIR, context, config_dict=settings)
    return model


def ours(path: Path, precision: str, batch: int) -> Call:
    """predict() of a Tensor on the card."""
    model = built(path, precision, batch)
    given = mslite.Tensor.from_dlpack(images(batch))

    def call() -> torch.Tensor:
        (output,) = model.predict([given])
        found: torch.Tensor = torch.from_dlpack(output)
        torch.cuda.synchronize()
        return found

    return call


def eager(name: str, precision: str, batch: int) -> Call:
    """The PyTorch module."""
    return _module(gpu_models.module(name).cuda().to(TYPES[precision]), precision, batch)


def max_autotune(name: str, precision: str, batch: int) -> Call:
    """The compiled PyTorch module."""
    torch._dynamo.reset()
    module = gpu_models.module(name).cuda().to(TYPES[precision])
    call = _module(torch.compile(module, mode="max-autotune"), precision, batch)
    for _ in range(3):  # compiles, warms up, records
        call()
    return call


def _module(module: Any, precision: str, batch: int) -> Call:
    given = images(batch).to(TYPES[precision])

    def call() -> torch.Tensor:
        with torch.no_grad():
            output = module(given)
        torch.cuda.synchronize()
        return output

    return call


def onnxruntime_cuda(path: Path, precision: str, batch: int) -> Call:
    """ONNX Runtime's CUDA provider on the ONNX file that the MindIR was made of.

    Raises:
        ImportError: There is no such build.
    """
    import onnxruntime as ort

    if "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ImportError(f"onnxruntime {ort.__version__} has no CUDA provider")
    session = _session(ort, str(_in_precision(path.with_suffix(".onnx"), precision)))
    if session.get_providers()[0] != "CUDAExecutionProvider":
        raise ImportError("onnxruntime could not load its CUDA provider")
    kind = np.float16 if precision == "fp16" else np.float32
    given = images(batch).to(TYPES[precision]).contiguous()
    output = torch.empty(batch, 1000, dtype=TYPES[precision], device="cuda")
    binding = session.io_binding()
    binding.bind_input("image", "cuda", 0, kind, list(given.shape), given.data_ptr())
    binding.bind_output("scores", "cuda", 0, kind, list(output.shape), output.data_ptr())

    def call() -> torch.Tensor:
        assert given.is_cuda  # it must live as long as the binding, which knows its address alone
        session.run_with_iobinding(binding)
        torch.cuda.synchronize()
        return output

    return call


def _session(ort: Any, path: str) -> Any:
    """With a graph, or without one where some operators have no kernel for the card."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # else a thread on each core spins, and slows all sides down
    options.log_severity_level = 4

    def opened(graph: str) -> Any:
        card = {"enable_cuda_graph": graph, "prefer_nhwc": "1", "use_tf32": "1"}
        return ort.InferenceSession(path, options, [("CUDAExecutionProvider", card)])

    try:
        return opened("1")
    except Exception as exc:  # noqa: BLE001 - of a class that onnxruntime does not export
        print(f"  onnxruntime without a graph: {exc}"[:200], flush=True)
    return opened("0")


def _in_precision(path: Path, precision: str) -> Path:
    """The file, or one beside it whose weights and values are float16."""
    if precision == "fp32":
        return path
    halved = path.with_name(f"{path.stem}_fp16.onnx")
    if not halved.exists():
        _halve(path, halved)
    return halved


def _halve(path: Path, target: Path) -> None:
    """Write a model whose floats are all float16."""
    import onnx
    from onnx import TensorProto, numpy_helper

    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.t.data_type == TensorProto.FLOAT:
                array = numpy_helper.to_array(attribute.t).astype(np.float16)
                attribute.t.CopyFrom(numpy_helper.from_array(array))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == 1:
                attribute.i = TensorProto.FLOAT16
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.value_info[:]
    onnx.save(model, target)
