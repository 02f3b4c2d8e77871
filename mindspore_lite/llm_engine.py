"""The classes of the original's LLMEngine: names, values and checks; a cluster is not there.

The original's LLMEngine splits the prompt and the decoding of a large language model over Ascend
cards of several machines. Programs that use it can be imported, and their arguments are checked
here. `LLMEngine.add_model`, the first step that needs such a cluster, says that there is none.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NoReturn

from mindspore_lite.core import checks
from mindspore_lite.core.attributes import Setting
from mindspore_lite.errors import EngineError, EngineUnavailableError, ModelFileError
from mindspore_lite.tensor import Tensor

_NO_CLUSTER = (
    "LLMEngine needs an Ascend cluster and the LLM engine of CANN, which mslite does not have; on "
    "one machine use Model or ModelParallelRunner, and a server for language models such as vLLM "
    "(with vllm-ascend) where the work is split over several"
)
_NOT_READY = "LLMEngine is not inited or init failed"
_MODES = ("auto", "manual")
_ADDRESS = "address must be in format of ('xxx.xxx.xxx.xxx', xxx) or (xxx, xxx), but got "


class LLMRole(Enum):
    """What a node does: the first run over a prompt, or the runs that add a token each."""

    Prompt = 0
    Decoder = 1


class LLMStatusCode(Enum):
    """Why a call failed; the numbers are those of the C++ API's StatusCode."""

    LLM_SUCCESS = 0
    LLM_PARAM_INVALID = -3
    LLM_WAIT_PROC_TIMEOUT = -103
    LLM_KV_CACHE_NOT_EXIST = -104
    LLM_REPEAT_REQUEST = -105
    LLM_REQUEST_ALREADY_COMPLETED = -106
    LLM_ENGINE_FINALIZED = -107
    LLM_NOT_YET_LINK = -108
    LLM_ALREADY_LINK = -109
    LLM_LINK_FAILED = -110
    LLM_UNLINK_FAILED = -111
    LLM_NOTIFY_PROMPT_UNLINK_FAILED = -112
    LLM_CLUSTER_NUM_EXCEED_LIMIT = -113
    LLM_PROCESSING_LINK = -114
    LLM_DEVICE_OUT_OF_MEMORY = -115
    LLM_PREFIX_ALREADY_EXIST = -116
    LLM_PREFIX_NOT_EXIST = -117
    LLM_SEQ_LEN_OVER_LIMIT = -118
    LLM_NO_FREE_BLOCK = -119
    LLM_BLOCKS_OUT_OF_MEMORY = -120


class LLMException(RuntimeError):
    """Root of what an LLMEngine raises."""

    _code: ClassVar[LLMStatusCode] = LLMStatusCode.LLM_SUCCESS

    @property
    def statusCode(self) -> LLMStatusCode:
        """Why the call failed."""
        return self._code

    def StatusCode(self) -> LLMStatusCode:
        """The same, as a method."""
        return self._code


class LLMKVCacheNotExist(LLMException):
    """The cache of a request is not, or no longer, in its prompt cluster."""

    _code = LLMStatusCode.LLM_KV_CACHE_NOT_EXIST


class LLMWaitProcessTimeOut(LLMException):
    """A request waited too long."""

    _code = LLMStatusCode.LLM_WAIT_PROC_TIMEOUT


class LLMRepeatRequest(LLMException):
    """A request was sent twice."""

    _code = LLMStatusCode.LLM_REPEAT_REQUEST


class LLMRequestAlreadyCompleted(LLMException):
    """A request has ended already."""

    _code = LLMStatusCode.LLM_REQUEST_ALREADY_COMPLETED


class LLMEngineFinalized(LLMException):
    """The engine was finalised."""

    _code = LLMStatusCode.LLM_ENGINE_FINALIZED


class LLMParamInvalid(LLMException):
    """An argument makes no sense to the engine."""

    _code = LLMStatusCode.LLM_PARAM_INVALID


class LLMNotYetLink(LLMException):
    """The decoder is not linked with the prompt cluster."""

    _code = LLMStatusCode.LLM_NOT_YET_LINK


class LLMOutOfMemory(LLMException):
    """The device has no memory left."""

    _code = LLMStatusCode.LLM_DEVICE_OUT_OF_MEMORY


class LLMPrefixAlreadyExist(LLMException):
    """A prefix of this number is there already."""

    _code = LLMStatusCode.LLM_PREFIX_ALREADY_EXIST


class LLMPrefixNotExist(LLMException):
    """There is no prefix of this number."""

    _code = LLMStatusCode.LLM_PREFIX_NOT_EXIST


class LLMSeqLenOverLimit(LLMException):
    """A sequence is too long."""

    _code = LLMStatusCode.LLM_SEQ_LEN_OVER_LIMIT


class LLMNoFreeBlocks(LLMException):
    """No block of the cache is free."""

    _code = LLMStatusCode.LLM_NO_FREE_BLOCK


class LLMBlockOutOfMemory(LLMException):
    """There is no memory for more blocks of the cache."""

    _code = LLMStatusCode.LLM_BLOCKS_OUT_OF_MEMORY


def _uint64(name: str, value: object) -> int:
    number = checks.integer(name, value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{name} value should be in range [0, UINT64_MAX], but got {number}.")
    return number


def _role(name: str, value: object) -> LLMRole:
    return checks.instance(name, value, LLMRole)


class _Numbers:
    """Base of records whose attributes are checked."""

    _prefix: ClassVar[str] = ""


class LLMReq(_Numbers):
    """A request: the task of continuing one prompt, over several runs.

    Attributes:
        prompt_cluster_id, req_id, prompt_length: As given.
        decoder_cluster_id, prefix_id, sequence_length: 0 until they are set.

    Raises:
        TypeError: A value is no int.
        ValueError: A value does not fit into 64 bits without a sign.
    """

    prompt_cluster_id = Setting[int](_uint64, 0)
    req_id = Setting[int](_uint64, 0)
    prompt_length = Setting[int](_uint64, 0)
    decoder_cluster_id = Setting[int](_uint64, 0)
    prefix_id = Setting[int](_uint64, 0)
    sequence_length = Setting[int](_uint64, 0)

    _ids = itertools.count()

    def __init__(self, prompt_cluster_id: int, req_id: int, prompt_length: int) -> None:
        self.prompt_cluster_id = prompt_cluster_id
        self.req_id = req_id
        self.prompt_length = prompt_length

    @staticmethod
    def next_req_id() -> int:
        """A number that this process has not used yet."""
        return next(LLMReq._ids)


class LLMClusterInfo(_Numbers):
    """Another cluster to link with, and the addresses of both sides.

    Raises:
        TypeError: The role is no LLMRole, or the number no int.
        ValueError: The number does not fit into 64 bits without a sign.
    """

    remote_role = Setting[LLMRole](_role, LLMRole.Prompt)
    remote_cluster_id = Setting[int](_uint64, 0)

    def __init__(self, remote_role: LLMRole, remote_cluster_id: int) -> None:
        self.remote_cluster_id = remote_cluster_id
        self.remote_role = remote_role
        self._local: list[tuple[int, int]] = []
        self._remote: list[tuple[int, int]] = []

    def append_local_ip_info(self, address: tuple[str | int, int]) -> None:
        """Add an address of this side: (ip, port), the ip as text or as a number.

        Raises:
            TypeError: It is no such tuple.
            ValueError: The ip or the port does not exist.
        """
        self._local.append(_address(address))

    def append_remote_ip_info(self, address: tuple[str | int, int]) -> None:
        """Add an address of the other side, as append_local_ip_info() does."""
        self._remote.append(_address(address))

    @property
    def local_ip_infos(self) -> tuple[tuple[int, int], ...]:
        """The addresses of this side: ip as a number in the machine's byte order, and port."""
        return tuple(self._local)

    @property
    def remote_ip_infos(self) -> tuple[tuple[int, int], ...]:
        """The addresses of the other side."""
        return tuple(self._remote)


class LLMEngineStatus:
    """What an engine has left, as LLMEngine.fetch_status() would return it."""

    def __init__(self, status: Any) -> None:
        self.status_ = status

    @property
    def empty_max_prompt_kv(self) -> int:
        """How many caches of prompts are free."""
        return int(self.status_.empty_max_prompt_kv)

    @property
    def num_free_blocks(self) -> int:
        """Blocks of the cache that are free."""
        return int(self.status_.num_free_blocks)

    @property
    def num_total_blocks(self) -> int:
        """All blocks of the cache."""
        return int(self.status_.num_total_blocks)

    @property
    def block_size(self) -> int:
        """How large a block is."""
        return int(self.status_.block_size)


class LLMModel:
    """A model of an LLMEngine. LLMEngine.add_model() makes them, which needs a cluster.

    Raises:
        RuntimeError: From every method: the engine was never started.
    """

    def __init__(self, model_obj: Any = None, batch_mode: str = "auto") -> None:
        self.model_ = model_obj
        self.batch_mode_ = batch_mode

    def predict(self, llm_req: LLMReq | Sequence[LLMReq], inputs: Sequence[Tensor]) -> NoReturn:
        """Would run the model for a request, or for several in batch mode "manual"."""
        raise _not_ready()

    def pull_kv(self, llm_req: LLMReq) -> NoReturn:
        """Would fetch the cache of a request from its prompt cluster."""
        raise _not_ready()

    def merge_kv(self, llm_req: LLMReq, batch_index: int, batch_id: int = 0) -> NoReturn:
        """Would put the cache of a request at a place of a batch."""
        raise _not_ready()

    def preload_prompt_prefix(self, llm_req: LLMReq, inputs: Sequence[Tensor]) -> NoReturn:
        """Would compute the cache of a common prefix."""
        raise _not_ready()

    def release_prompt_prefix(self, llm_req: LLMReq) -> NoReturn:
        """Would release the cache of a common prefix."""
        raise _not_ready()

    def get_inputs(self) -> NoReturn:
        """Would return the inputs of the model."""
        raise EngineError(
            "LLMModel is invalid, please return LLMModel from LLMEngine.add_model. " + _NO_CLUSTER
        )


class LLMEngine:
    """An engine of a node in a cluster; its arguments are checked, and add_model() ends it.

    Args:
        role: What the node does.
        cluster_id: The number of its cluster.
        batch_mode: "auto" or "manual".

    Raises:
        TypeError: An argument is of the wrong type.
        ValueError: cluster_id or batch_mode has a value that it cannot have.
    """

    def __init__(self, role: LLMRole, cluster_id: int, batch_mode: str = "auto") -> None:
        self.role_ = _role("role", role)
        self.cluster_id_: int = _uint64("cluster_id", cluster_id)
        if checks.string("batch_mode", batch_mode) not in _MODES:
            raise ValueError(f'batch_mode should be str "auto" or "manual", but got {batch_mode!r}')
        self.batch_mode_ = batch_mode

    @property
    def cluster_id(self) -> int:
        """The number of the cluster."""
        return self.cluster_id_

    @property
    def role(self) -> LLMRole:
        """What the node does."""
        return self.role_

    @property
    def batch_mode(self) -> str:
        """Who makes batches: the engine ("auto") or the caller ("manual")."""
        return self.batch_mode_

    def add_model(
        self,
        model_paths: Sequence[str],
        options: Mapping[str, str],
        postprocess_model_path: str | None = None,
    ) -> NoReturn:
        """Check the arguments; then a cluster would be needed.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: A file does not exist; else EngineUnavailableError, always.
        """
        if not isinstance(model_paths, list | tuple):
            raise checks.wrong_type("model_paths", "tuple/list of str", model_paths)
        for at, path in enumerate(model_paths):
            if not isinstance(path, str):
                where = f" at index {at}"
                raise checks.wrong_type("model_paths element", "str", path, where)
            if not os.path.exists(path):
                raise ModelFileError(f"model_paths at index {at} does not exist! Got {path!r}")
        _options(options)
        if postprocess_model_path is not None:
            if not isinstance(postprocess_model_path, str):
                raise checks.wrong_type(
                    "postprocess_model_path", "None or str", postprocess_model_path
                )
            if not os.path.exists(postprocess_model_path):
                raise ModelFileError(
                    f"postprocess_model_path {postprocess_model_path!r} does not exist!"
                )
        raise EngineUnavailableError(f"Failed to add_model: {_NO_CLUSTER}")

    def init(self, options: Mapping[str, str]) -> NoReturn:
        """Would start the engine.

        Raises:
            RuntimeError: Always: no model could be added.
        """
        raise EngineError(
            "At least one group of models need to be added through LLMEngine.add_model before "
            f"call LLMEngine.init. {_NO_CLUSTER}"
        )

    def complete_request(self, llm_req: LLMReq) -> NoReturn:
        """Would release what a request holds."""
        raise _not_ready()

    def finalize(self) -> None:
        """Nothing: the engine was never started."""

    def fetch_status(self) -> NoReturn:
        """Would say what the engine has left, as an LLMEngineStatus."""
        raise _not_ready()

    def link_clusters(self, clusters: Sequence[LLMClusterInfo], timeout: int = -1) -> NoReturn:
        """Would link this cluster with others."""
        raise _not_ready()

    def unlink_clusters(self, clusters: Sequence[LLMClusterInfo], timeout: int = -1) -> NoReturn:
        """Would end the links with other clusters."""
        raise _not_ready()


def _not_ready() -> EngineError:
    return EngineError(f"{_NOT_READY}. {_NO_CLUSTER}")


def _options(options: object) -> None:
    for key, value in checks.instance("options", options, dict).items():
        checks.string("options key", key)
        checks.string("options value", value)


def _address(address: object) -> tuple[int, int]:
    """The ip as a number, as the network has its bytes, and the port."""
    if not isinstance(address, tuple) or len(address) != 2:
        raise TypeError(f"{_ADDRESS}{address}")
    ip, port = address
    if not isinstance(ip, str | int) or not isinstance(port, int):
        raise TypeError(f"{_ADDRESS}{address}")
    if isinstance(ip, str):
        ip = _ip_of(ip, address)
    if not 0 <= ip < 1 << 32:
        raise ValueError(f"address ip should in range [0,{(1 << 32) - 1}], but got {ip}")
    if not 0 <= port < 1 << 16:
        raise ValueError(f"address port should in range [0,65535], but got {port}")
    return ip, port


def _ip_of(text: str, address: object) -> int:
    try:
        if "." not in text:
            return int(text)
        return int.from_bytes(socket.inet_aton(text), byteorder=sys.byteorder)
    except (OSError, ValueError):
        raise ValueError(f"{_ADDRESS}{address}") from None
