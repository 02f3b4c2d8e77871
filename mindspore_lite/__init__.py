"""mslite: MindSpore Lite's cloud-side inference API on today's runtimes."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - a sentence, not whatever fails first
    raise ImportError(
        "mslite needs Python 3.11 or newer, this is {}.{}: make an environment with a newer one, "
        "such as python3.12 -m venv .venv".format(*sys.version_info)
    )

from mindspore_lite.context import Context
from mindspore_lite.converter import Converter, FmkType
from mindspore_lite.lite_infer import LiteInfer
from mindspore_lite.llm_engine import (
    LLMBlockOutOfMemory,
    LLMClusterInfo,
    LLMEngine,
    LLMEngineFinalized,
    LLMEngineStatus,
    LLMException,
    LLMKVCacheNotExist,
    LLMModel,
    LLMNoFreeBlocks,
    LLMNotYetLink,
    LLMOutOfMemory,
    LLMParamInvalid,
    LLMPrefixAlreadyExist,
    LLMPrefixNotExist,
    LLMRepeatRequest,
    LLMReq,
    LLMRequestAlreadyCompleted,
    LLMRole,
    LLMSeqLenOverLimit,
    LLMStatusCode,
    LLMWaitProcessTimeOut,
)
from mindspore_lite.model import Model, ModelParallelRunner, ModelType
from mindspore_lite.model_group import ModelGroup, ModelGroupFlag
from mindspore_lite.multi_device import MultiDeviceRunner
from mindspore_lite.server.server import Server
from mindspore_lite.tensor import DataType, Format, Tensor, TensorMeta
from mindspore_lite.version import __version__
from mindspore_lite.weight_files import load_lora, load_weights
from mindspore_lite.worker import Worker, WorkerRunner, connect

__all__ = [
    "Context",
    "Converter",
    "DataType",
    "FmkType",
    "Format",
    "LLMBlockOutOfMemory",
    "LLMClusterInfo",
    "LLMEngine",
    "LLMEngineFinalized",
    "LLMEngineStatus",
    "LLMException",
    "LLMKVCacheNotExist",
    "LLMModel",
    "LLMNoFreeBlocks",
    "LLMNotYetLink",
    "LLMOutOfMemory",
    "LLMParamInvalid",
    "LLMPrefixAlreadyExist",
    "LLMPrefixNotExist",
    "LLMRepeatRequest",
    "LLMReq",
    "LLMRequestAlreadyCompleted",
    "LLMRole",
    "LLMSeqLenOverLimit",
    "LLMStatusCode",
    "LLMWaitProcessTimeOut",
    "LiteInfer",
    "Model",
    "ModelGroup",
    "ModelGroupFlag",
    "ModelParallelRunner",
    "ModelType",
    "MultiDeviceRunner",
    "Server",
    "Tensor",
    "TensorMeta",
    "Worker",
    "WorkerRunner",
    "__version__",
    "connect",
    "load_lora",
    "load_weights",
]

for _name in __all__:  # tracebacks, pickles and docs show the path that users import
    if _name != "__version__":
        globals()[_name].__module__ = "mindspore_lite"
del _name, sys


def __dir__() -> list[str]:
    """The public names alone: modules next to them are internal, or imported by their own name."""
    return sorted(__all__)
