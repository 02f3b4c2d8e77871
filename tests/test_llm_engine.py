"""The classes of LLMEngine: the original's checks, and where a cluster would be needed."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mindspore_lite as mslite
from mindspore_lite.errors import EngineUnavailableError

PROMPT, DECODER = mslite.LLMRole.Prompt, mslite.LLMRole.Decoder


def request(**changed: Any) -> mslite.LLMReq:
    return mslite.LLMReq(**{"prompt_cluster_id": 1, "req_id": 2, "prompt_length": 3, **changed})


def test_a_request_holds_what_it_was_given() -> None:
    made = request()
    assert (made.prompt_cluster_id, made.req_id, made.prompt_length) == (1, 2, 3)
    assert (made.decoder_cluster_id, made.prefix_id, made.sequence_length) == (0, 0, 0)
    made.decoder_cluster_id = 2**64 - 1
    assert made.decoder_cluster_id == 2**64 - 1


def test_requests_are_counted() -> None:
    first = mslite.LLMReq.next_req_id()
    assert mslite.LLMReq.next_req_id() == first + 1


@pytest.mark.parametrize("name", ["prompt_cluster_id", "req_id", "prompt_length"])
def test_numbers_of_a_request_are_checked(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be int, but got"):
        request(**{name: "1"})
    for number in (-1, 2**64):
        with pytest.raises(ValueError, match=rf"{name} value should be in range \[0, UINT64_MAX\]"):
            request(**{name: number})


@pytest.mark.parametrize("name", ["decoder_cluster_id", "prefix_id", "sequence_length"])
def test_numbers_that_are_set_later_are_checked(name: str) -> None:
    made = request()
    with pytest.raises(TypeError, match=f"{name} must be int"):
        setattr(made, name, 1.0)
    with pytest.raises(ValueError, match=name):
        setattr(made, name, -1)


def test_a_cluster_has_addresses() -> None:
    cluster = mslite.LLMClusterInfo(DECODER, 4)
    cluster.append_local_ip_info(("192.168.1.1", 2222))
    cluster.append_remote_ip_info((1, 65535))
    cluster.append_remote_ip_info(("7", 0))
    number = int.from_bytes(socket.inet_aton("192.168.1.1"), sys.byteorder)
    assert cluster.local_ip_infos == ((number, 2222),)
    assert cluster.remote_ip_infos == ((1, 65535), (7, 0))
    assert (cluster.remote_role, cluster.remote_cluster_id) == (DECODER, 4)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("192.168.1.1:1", TypeError),
        (("192.168.1.1",), TypeError),
        (("192.168.1.1", "1"), TypeError),
        ((1.5, 1), TypeError),
        ((2**32, 1), ValueError),
        ((-1, 1), ValueError),
        ((str(2**32), 1), ValueError),
        (("1.2.3.400", 1), ValueError),
        (("host", 1), ValueError),
        ((1, 65536), ValueError),
        ((1, -1), ValueError),
    ],
)
def test_bad_addresses(address: Any, error: type[Exception]) -> None:
    cluster = mslite.LLMClusterInfo(PROMPT, 0)
    for add in (cluster.append_local_ip_info, cluster.append_remote_ip_info):
        with pytest.raises(error, match="address"):
            add(address)
    assert cluster.local_ip_infos == cluster.remote_ip_infos == ()


def test_clusters_are_checked() -> None:
    with pytest.raises(TypeError, match="remote_role must be LLMRole, but got"):
        mslite.LLMClusterInfo(0, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="remote_cluster_id must be int, but got"):
        mslite.LLMClusterInfo(PROMPT, "0")  # type: ignore[arg-type]
    cluster = mslite.LLMClusterInfo(PROMPT, 0)
    with pytest.raises(TypeError, match="remote_role must be LLMRole"):
        cluster.remote_role = 1  # type: ignore[assignment]


def test_an_engine_holds_what_it_was_given() -> None:
    engine = mslite.LLMEngine(PROMPT, 3, "manual")
    assert (engine.role, engine.cluster_id, engine.batch_mode) == (PROMPT, 3, "manual")
    assert mslite.LLMEngine(DECODER, 0).batch_mode == "auto"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 0), TypeError, "role must be LLMRole, but got"),
        ((PROMPT, "0"), TypeError, "cluster_id must be int, but got"),
        ((PROMPT, -1), ValueError, "cluster_id value should be in range"),
        ((PROMPT, 0, 1), TypeError, "batch_mode must be str"),
        ((PROMPT, 0, "both"), ValueError, "batch_mode should be str"),
    ],
)
def test_engines_are_checked(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        mslite.LLMEngine(*arguments)


@pytest.mark.parametrize(
    ("paths", "options", "more", "error", "words"),
    [
        ("m", {}, None, TypeError, "model_paths must be tuple/list of str, but got"),
        ([1], {}, None, TypeError, "model_paths element must be str, but got .* at index 0"),
        (["no"], {}, None, RuntimeError, "model_paths at index 0 does not exist!"),
        ([], [], None, TypeError, "options must be dict"),
        ([], {1: ""}, None, TypeError, "options key must be str"),
        ([], {"": 1}, None, TypeError, "options value must be str"),
        ([], {}, 1, TypeError, "postprocess_model_path must be None or str"),
        ([], {}, "no", RuntimeError, "postprocess_model_path 'no' does not exist!"),
    ],
)
def test_models_are_checked(
    paths: Any, options: Any, more: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        mslite.LLMEngine(PROMPT, 0).add_model(paths, options, more)


def test_a_model_needs_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "m").touch()
    with pytest.raises(EngineUnavailableError, match="needs an Ascend cluster") as caught:
        mslite.LLMEngine(PROMPT, 0).add_model([str(tmp_path / "m")], {"a": "b"})
    assert isinstance(caught.value, RuntimeError)


def test_without_models_there_is_nothing_to_start() -> None:
    with pytest.raises(RuntimeError, match="At least one group of models need to be added"):
        mslite.LLMEngine(PROMPT, 0).init({})


@pytest.mark.parametrize(
    "call",
    [
        lambda engine, model: engine.complete_request(request()),
        lambda engine, model: engine.fetch_status(),
        lambda engine, model: engine.link_clusters([]),
        lambda engine, model: engine.unlink_clusters([]),
        lambda engine, model: model.predict(request(), []),
        lambda engine, model: model.pull_kv(request()),
        lambda engine, model: model.merge_kv(request(), 0),
        lambda engine, model: model.preload_prompt_prefix(request(), []),
        lambda engine, model: model.release_prompt_prefix(request()),
    ],
)
def test_what_was_not_started_cannot_be_used(call: Callable[[Any, Any], None]) -> None:
    engine = mslite.LLMEngine(PROMPT, 0)
    with pytest.raises(RuntimeError, match="LLMEngine is not inited or init failed"):
        call(engine, mslite.LLMModel())
    engine.finalize()


def test_a_model_of_no_engine_has_no_inputs() -> None:
    with pytest.raises(RuntimeError, match="LLMModel is invalid"):
        mslite.LLMModel().get_inputs()


def test_a_status_shows_what_the_engine_counted() -> None:
    counted = SimpleNamespace(
        empty_max_prompt_kv=1, num_free_blocks=2, num_total_blocks=3, block_size=4
    )
    status = mslite.LLMEngineStatus(counted)
    found = (status.empty_max_prompt_kv, status.num_free_blocks, status.num_total_blocks)
    assert (*found, status.block_size) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (mslite.LLMException, "LLM_SUCCESS"),
        (mslite.LLMKVCacheNotExist, "LLM_KV_CACHE_NOT_EXIST"),
        (mslite.LLMWaitProcessTimeOut, "LLM_WAIT_PROC_TIMEOUT"),
        (mslite.LLMRepeatRequest, "LLM_REPEAT_REQUEST"),
        (mslite.LLMRequestAlreadyCompleted, "LLM_REQUEST_ALREADY_COMPLETED"),
        (mslite.LLMEngineFinalized, "LLM_ENGINE_FINALIZED"),
        (mslite.LLMParamInvalid, "LLM_PARAM_INVALID"),
        (mslite.LLMNotYetLink, "LLM_NOT_YET_LINK"),
        (mslite.LLMOutOfMemory, "LLM_DEVICE_OUT_OF_MEMORY"),
        (mslite.LLMPrefixAlreadyExist, "LLM_PREFIX_ALREADY_EXIST"),
        (mslite.LLMPrefixNotExist, "LLM_PREFIX_NOT_EXIST"),
        (mslite.LLMSeqLenOverLimit, "LLM_SEQ_LEN_OVER_LIMIT"),
        (mslite.LLMNoFreeBlocks, "LLM_NO_FREE_BLOCK"),
        (mslite.LLMBlockOutOfMemory, "LLM_BLOCKS_OUT_OF_MEMORY"),
    ],
)
def test_errors_have_their_codes(kind: type[mslite.LLMException], code: str) -> None:
    error = pickle.loads(pickle.dumps(kind("why")))
    assert isinstance(error, RuntimeError) and str(error) == "why"
    assert error.statusCode is error.StatusCode() is mslite.LLMStatusCode[code]
