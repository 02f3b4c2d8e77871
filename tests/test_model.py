"""model.py: building, information, closing; running and resizing are in test_model_predict.py."""

from __future__ import annotations

import gc
import json
import os
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode
from support.models import MINDIR, ONNX, TWO_IN_TWO_OUT, built, dense_net, written

import mindspore_lite as mslite
from mindspore_lite.engines.cache import store
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    EngineUnavailableError,
    ModelFileError,
    UnsupportedOpError,
)

X = np.ones((2, 3), np.float32)


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


def refused(
    kind: type[Exception], words: str, *args: Any, model: mslite.Model | None = None, **more: Any
) -> Exception:
    with pytest.raises(kind) as caught:
        (model or mslite.Model()).build_from_file(*args, **more)
    assert words in str(caught.value)
    return caught.value


# --- build_from_file: what comes first ------------------------------------------------------------


def test_a_model_shows_its_path() -> None:
    assert str(mslite.Model()) == "model_path: ."


def test_types_are_checked_before_any_file_is_looked_for() -> None:
    refused(TypeError, "model_path must be str", 1, MINDIR)
    refused(TypeError, "model_path must be str", b"gone", MINDIR)
    refused(TypeError, "model_type must be ModelType", "gone", "MINDIR")
    refused(TypeError, "model_type must be ModelType", "gone", 0)
    refused(TypeError, "context must be Context", "gone", MINDIR, mslite.Context().cpu)
    refused(TypeError, "context must be Context", "gone", MINDIR, "cpu")
    refused(TypeError, "config_path must be str", "gone", MINDIR, config_path=1)


def test_the_checks_come_in_the_documented_order(dense: Path, tmp_path: Path) -> None:
    """Each call has everything after its own mistake wrong, too."""
    wrong: dict[str, Any] = {"config_dict": "x", "dec_key": 1}
    gone = str(tmp_path / "gone")
    refused(TypeError, "model_path must be", 1, "no type", "no context", 1, **wrong)
    refused(TypeError, "model_type must be", gone, "no type", "no context", 1, **wrong)
    refused(TypeError, "context must be", gone, MINDIR, "no context", 1, **wrong)
    refused(TypeError, "config_path must be", gone, MINDIR, None, 1, **wrong)
    refused(ModelFileError, "model_path does not exist", gone, MINDIR, None, gone, **wrong)
    refused(ModelFileError, "config_path does not exist", str(dense), MINDIR, None, gone, **wrong)
    refused(TypeError, "config_dict must be dict", str(dense), MINDIR, None, "", **wrong)
    refused(TypeError, "dec_key must be bytes", str(dense), MINDIR, dec_key=1)


def test_a_missing_file_is_a_runtime_error_with_its_name() -> None:
    words = "build_from_file failed, model_path does not exist"
    error = refused(RuntimeError, words, "gone.mindir", MINDIR)
    assert "'gone.mindir'" in str(error)
    assert isinstance(error, ModelFileError)


def test_arguments_have_the_documented_names_and_order(dense: Path) -> None:
    model = mslite.Model()
    model.build_from_file(
        model_path=str(dense), model_type=MINDIR, context=None, config_path="", config_dict=None,
        dec_key=None, dec_mode="AES-GCM", dec_num_parallel=0,
    )  # fmt: skip
    mslite.Model().build_from_file(str(dense), MINDIR, mslite.Context(), "", {})


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("x", "config_dict must be dict"),
        ({5: {}}, "config_dict_key must be str"),
        ({"5": "6"}, "config_dict_value must be dict"),
        ({"5": {3: "2"}}, "config_dict_value_key must be str"),
        ({"5": {"1": 2}}, "config_dict_value_value must be str"),
    ],
)
def test_a_config_dict_of_the_wrong_types_is_refused(dense: Path, given: Any, words: str) -> None:
    refused(TypeError, words, str(dense), MINDIR, config_dict=given)


def test_a_config_dict_is_only_read(dense: Path) -> None:
    given = {"ascend_context": {"provider": "ge"}}
    model = mslite.Model()
    model.build_from_file(str(dense), MINDIR, config_dict=given)
    assert given == {"ascend_context": {"provider": "ge"}}


def test_a_config_file_with_a_dict_beside_it_is_read(dense: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.ini"
    config.write_text("[ascend_context]\nprovider=ge\n")
    mslite.Model().build_from_file(
        str(dense), MINDIR, config_path=str(config), config_dict={"other": {"a": "b"}}
    )


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_config_that_cannot_be_read_is_refused(
    dense: Path, tmp_path: Path, content: bytes | None
) -> None:
    config = tmp_path / "config"
    if content is None:
        config.mkdir()
    else:
        config.write_bytes(content)
    refused(RuntimeError, "load configuration failed! Error is", str(dense), MINDIR,
            config_path=str(config))  # fmt: skip


# --- decryption -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"dec_key": "text"}, TypeError, "dec_key must be bytes"),
        ({"dec_key": b"k" * 16, "dec_mode": 1}, TypeError, "dec_mode must be str"),
        ({"dec_key": b"k" * 16, "dec_mode": ""}, ValueError, "dec_mode must not be empty string"),
        (
            {"dec_key": b"k" * 16, "dec_num_parallel": "1"},
            TypeError,
            "dec_num_parallel must be int",
        ),
        ({"dec_key": b"k" * 16, "dec_num_parallel": 65}, ValueError, "must be 0 to 64"),
        (
            {"dec_key": b"k" * 16, "dec_mode": "aes-gcm"},
            ValueError,
            "dec_mode must be in [AES-GCM,",
        ),
        ({"dec_key": b"k" * 16, "dec_num_parallel": -1}, ValueError, "must be 0 to 64"),
        ({"dec_key": b"k" * 16}, ModelFileError, "the file is not encrypted; leave dec_key out"),
    ],
)
def test_arguments_of_decryption_are_checked(
    dense: Path, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    refused(kind, words, str(dense), MINDIR, **arguments)


def test_an_empty_key_is_no_key(dense: Path) -> None:
    mslite.Model().build_from_file(str(dense), MINDIR, dec_key=b"", dec_mode=1)  # type: ignore[arg-type]


# --- bad models -----------------------------------------------------------------------------------

GOOD = dense_net()


def _missing_op() -> bytes:
    net = Net()
    return encode(net.model(net.call("FancyOp", net.input("x", (2,)), scope="Default/fancy")))


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is an empty file"),
    "truncated": (GOOD[: len(GOOD) // 2], "truncated or damaged"),
    "text": (b"this is no model at all\n", "cannot be loaded as MindIR"),
    "a zero byte": (b"\0", "holds no protobuf field"),
    "zero bytes": (b"\0" * 4096, "holds no protobuf field"),
    "random bytes": (np.random.default_rng(0).bytes(5000), "cannot be loaded as MindIR"),
    "ONNX": (b"\x08\x0a\x12\x04onnx", "pass ModelType.ONNX"),
    "encrypted": (b"\xd8\x5e\x3a\x7f" * 20, "encrypted"),
    "an op we lack": (_missing_op(), "FancyOp (at Default/fancy)"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_refused_and_the_object_stays_usable(
    what: str, dense: Path, tmp_path: Path
) -> None:
    data, words = BAD_FILES[what]
    path = written(tmp_path / "bad.mindir", data)
    model = mslite.Model()
    error = refused(RuntimeError, "build_from_file failed! Error is ", str(path), MINDIR,
                    model=model)  # fmt: skip
    assert words in str(error)
    assert isinstance(error, UnsupportedOpError if what == "an op we lack" else ModelFileError)
    assert model._inputs == []
    assert str(model) == f"model_path: {path}."
    model.build_from_file(str(dense), MINDIR)
    assert model.predict([X])[0].shape == [2, 4]


def test_a_directory_is_refused_and_the_object_stays_usable(dense: Path, tmp_path: Path) -> None:
    model = mslite.Model()
    refused(ModelFileError, "is a directory, wanted a model file", str(tmp_path), MINDIR,
            model=model)  # fmt: skip
    model.build_from_file(str(dense), MINDIR)


def test_files_of_the_edge_runtime_are_refused(dense: Path) -> None:
    refused(ModelFileError, "convert the original model", str(dense), mslite.ModelType.MINDIR_LITE)


@pytest.mark.parametrize("target", ["gpu", "ascend"])
def test_a_target_that_is_not_there_is_refused(dense: Path, target: str) -> None:
    context = mslite.Context()
    context.target = [target]
    context.gpu.device_id = 4096  # which no machine has
    model = mslite.Model()
    words = f"target '{target}'"
    refused(EngineUnavailableError, words, str(dense), MINDIR, context, model=model)
    model.build_from_file(str(dense), MINDIR)


def test_a_second_target_is_warned_of_where_the_caller_stands(dense: Path) -> None:
    context = mslite.Context()
    context.target = ["cpu", "ascend"]
    with pytest.warns(UserWarning, match=r"\['ascend'\] is not used") as caught:
        mslite.Model().build_from_file(str(dense), MINDIR, context)
    assert caught[0].filename == __file__


def test_a_cache_that_cannot_be_used_does_not_stop_a_build(
    dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_WARNED", set())
    in_the_way = written(tmp_path / "file", b"")
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(in_the_way / "cache"))
    model = mslite.Model()
    with pytest.warns(RuntimeWarning, match="compiled model not kept.*set MSLITE_CACHE_DIR"):
        model.build_from_file(str(dense), MINDIR)
    assert model.predict([X])[0].shape == [2, 4]


def test_a_context_is_only_read_and_may_be_used_again(dense: Path) -> None:
    context = mslite.Context()
    before = str(context.cpu)
    built(dense, context=context)
    built(dense, context=context)
    assert str(context.cpu) == before


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_one_thread_runs_in_every_affinity_mode(dense: Path, mode: int) -> None:
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.cpu.thread_affinity_mode = mode
    before = os.sched_getaffinity(0)
    np.testing.assert_array_equal(
        built(dense, context=context).predict([X])[0].get_data_to_numpy(), np.full((2, 4), 4)
    )
    assert os.sched_getaffinity(0) == before


# --- information ----------------------------------------------------------------------------------


def test_inputs_are_the_same_tensors_in_every_call(dense: Path) -> None:
    model = built(dense)
    (first,), (again,) = model.get_inputs(), model.get_inputs()
    assert first is again
    assert (first.name, first.shape, first.dtype) == ("x", [2, 3], mslite.DataType.FLOAT32)
    assert first.format is mslite.Format.NCHW


def test_changing_the_list_of_inputs_does_not_change_the_model(dense: Path) -> None:
    model = built(dense)
    model.get_inputs().clear()
    assert len(model.get_inputs()) == 1


def test_outputs_are_described_before_a_run() -> None:
    first, second = built(TWO_IN_TWO_OUT).get_outputs()
    assert isinstance(first, mslite.TensorMeta)
    assert (first.shape, first.dtype, first.element_num, first.data_size) == (
        [2, 4], mslite.DataType.FLOAT32, 8, 32,
    )  # fmt: skip
    assert second.shape == [2]
    assert first.name and second.name


def test_an_unbuilt_model_has_no_inputs_and_outputs() -> None:
    for ask in (mslite.Model().get_inputs, mslite.Model().get_outputs):
        with pytest.warns(UserWarning, match=r"is empty: the model is not built; call build"):
            assert len(ask()) == 0


def test_model_info_is_text_and_unknown_keys_are_refused(tmp_path: Path) -> None:
    net = Net()
    proto = net.model(net.call("Neg", net.input("x", (-1, 3))), user_info={"author": "me"})
    model = built(written(tmp_path / "m.mindir", encode(proto)))
    assert json.loads(model.get_model_info("user_info")) == {"author": "me"}
    assert model.get_model_info("input_shape") == "x:[-1,3]"
    assert model.get_model_info("current_pid") == str(os.getpid())
    assert model.get_model_info("dynamic_dims") == ""
    known = (
        "current_pid, weights_version, shareable_weight_mem_handle, spec, user_info, input_shape, "
        "dynamic_dims"
    )
    with pytest.raises(
        ValueError, match=f"there is no model info 'colour', wanted one of {known}$"
    ):
        model.get_model_info("colour")


def test_model_info_follows_a_resize(tmp_path: Path) -> None:
    model = built(written(tmp_path / "m.mindir", dense_net(rows=-1)))
    model.resize(model.get_inputs(), [[5, 3]])
    assert model.get_model_info("input_shape") == "x:[5,3]"


def test_model_info_before_the_build_is_empty() -> None:
    assert mslite.Model().get_model_info("input_shape") == ""
    assert mslite.Model().get_model_info("user_info") == ""


@pytest.mark.parametrize("arguments", [(), (None,), (1,)])
def test_model_info_wants_a_key(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="key must be str, but got"):
        mslite.Model().get_model_info(*arguments)


# --- update_weights -------------------------------------------------------------------------------


def test_updating_the_weights_of_an_unbuilt_model_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Session is null, please build model first!"):
        mslite.Model().update_weights([[mslite.Tensor(X)]])


def test_a_model_without_variable_weights_refuses_an_update(dense: Path) -> None:
    with pytest.raises(RuntimeError, match=r"update weight failed! Error is no weight"):
        built(dense).update_weights([[mslite.Tensor(X)]])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("x", "weights must be list"),
        (["x"], "weight must be list"),
        ([[1]], "weights element must be Tensor"),
    ],
)
def test_weights_of_the_wrong_type_are_refused(weights: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        mslite.Model().update_weights(weights)


# --- a model's life -------------------------------------------------------------------------------


def test_a_second_build_is_refused_and_the_first_model_stays(dense: Path, tmp_path: Path) -> None:
    model = built(dense)
    other = written(tmp_path / "other.mindir", dense_net(factor=2))
    refused(EngineError, "is built from", str(other), MINDIR, model=model)
    assert str(model) == f"model_path: {dense}."
    np.testing.assert_array_equal(model.predict([X])[0].get_data_to_numpy(), np.full((2, 4), 4))


UNUSABLE: list[Callable[[mslite.Model], object]] = [
    lambda m: m.predict([X]),
    lambda m: m.predict([]),
    lambda m: m.resize([mslite.Tensor(X)], [[2, 3]]),
]


@pytest.mark.parametrize("use", UNUSABLE)
def test_an_unbuilt_model_says_that_it_is_not_built(use: Callable[[mslite.Model], object]) -> None:
    with pytest.raises(EngineError, match="not built; call build_from_file"):
        use(mslite.Model())


@pytest.mark.parametrize("use", UNUSABLE)
def test_a_closed_model_says_that_it_was_closed(
    dense: Path, use: Callable[[mslite.Model], object]
) -> None:
    model = built(dense)
    model.close()
    with pytest.raises(ClosedError, match="was closed; build it again"):
        use(model)
    for ask in (model.get_inputs, model.get_outputs):
        with pytest.warns(UserWarning, match=r"is empty: the model was closed"):
            assert len(ask()) == 0


def test_closing_twice_or_before_the_build_is_harmless(dense: Path) -> None:
    model = mslite.Model()
    model.close()
    with pytest.raises(EngineError, match="not built"):
        model.predict([X])
    model.build_from_file(str(dense), MINDIR)
    model.close()
    model.close()


def test_a_closed_model_can_be_built_again(dense: Path, tmp_path: Path) -> None:
    model = built(dense)
    model.close()
    model.build_from_file(str(written(tmp_path / "o.mindir", dense_net(factor=2))), MINDIR)
    np.testing.assert_array_equal(model.predict([X])[0].get_data_to_numpy(), np.full((2, 4), 7))


def test_with_closes_also_after_an_error(dense: Path) -> None:
    model = built(dense)
    with pytest.raises(ZeroDivisionError), model as entered:
        assert entered is model
        raise ZeroDivisionError
    with pytest.raises(ClosedError):
        model.predict([X])


def test_outputs_outlive_the_model(dense: Path) -> None:
    with built(dense) as model:
        (output,) = model.predict([X])
    del model
    gc.collect()
    np.testing.assert_array_equal(output.get_data_to_numpy(), np.full((2, 4), 4))


def test_a_forgotten_model_is_freed(dense: Path) -> None:
    model = built(dense)
    assert model._service is not None
    session = weakref.ref(model._service.built.session)
    gone = weakref.ref(model)
    model.predict([X])
    del model
    gc.collect()
    assert gone() is None
    assert session() is None


def test_a_model_cannot_be_pickled(dense: Path) -> None:
    with pytest.raises(TypeError, match="cannot be pickled; build it in the process that uses it"):
        pickle.dumps(built(dense))


def test_the_undocumented_attributes_are_there() -> None:
    model = mslite.Model()
    assert (model.model_path_, model.lora_name_map, model.provider) == ("", {}, "")


def test_onnx_files_are_a_model_type_of_their_own(dense: Path) -> None:
    refused(ModelFileError, "cannot be loaded as ONNX", str(dense), ONNX)
