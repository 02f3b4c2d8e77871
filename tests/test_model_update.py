"""model.py: update_weights, what it changes, what it leaves alone, and what it refuses."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S
from support.models import ONNX, written
from support.onnx_updates import dense, some
from support.running import DATA
from support.updates import (
    SIDE,
    assert_same_bits,
    changeable,
    filled,
    named,
    outputs,
    telling_net,
    told,
    update,
    versions,
)

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, EngineError, InputError, ModelFileError
from mindspore_lite.serving import build as building

A_AND_B = ("a", "b")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net())


@pytest.fixture
def model(path: Path) -> mslite.Model:
    return changeable(path, *A_AND_B)


def version(model: Any) -> str:
    return str(model.get_model_info("weights_version"))


# --- what an update does --------------------------------------------------------------------------


def test_a_named_tensor_takes_the_place_of_its_weight(model: mslite.Model) -> None:
    assert told(model) == 0
    update(model, versions(3))
    assert told(model) == 3


def test_tensors_without_names_go_by_their_place_in_the_list(model: mslite.Model) -> None:
    model.update_weights([[mslite.Tensor(filled(1)), mslite.Tensor(filled(2))]])
    (y,) = outputs(model, np.ones((2, SIDE), np.float32))
    np.testing.assert_array_equal(y, np.repeat([[1, 2]] * 2, SIDE, 1))


def test_the_list_decides_the_order(path: Path) -> None:
    model = changeable(path, "b", "a")
    model.update_weights([[mslite.Tensor(filled(1)), mslite.Tensor(filled(2))]])
    (y,) = outputs(model, np.ones((2, SIDE), np.float32))
    np.testing.assert_array_equal(y, np.repeat([[2, 1]] * 2, SIDE, 1))


def test_a_weight_that_is_not_given_stays_as_the_last_update_left_it(model: mslite.Model) -> None:
    update(model, {"a": filled(4)})
    update(model, {"b": filled(4)})
    assert told(model) == 4


def test_a_program_may_go_to_another_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with changeable(Path(path.name), *A_AND_B) as model:
        monkeypatch.chdir("/")
        update(model, versions(1))
        model.resize(model.get_inputs(), [[5, SIDE]])
        assert told(model, 5) == 1


def test_of_several_lists_the_last_one_counts(model: mslite.Model) -> None:
    lists = [[named(n, filled(v)) for n in A_AND_B] for v in (1, 2)]
    model.update_weights(lists)
    assert told(model) == 2
    assert version(model) == "1"


def test_no_lists_restore_the_weights_of_the_file(model: mslite.Model) -> None:
    update(model, versions(3))
    model.update_weights([])
    assert told(model) == 0


def test_every_update_counts_restoring_too(model: mslite.Model) -> None:
    seen = [version(model)]
    for weights in ([[named("a", filled(1))]], [[named("a", filled(1))]], [], []):
        model.update_weights(weights)
        seen.append(version(model))
    assert seen == ["0", "1", "2", "3", "4"]


def test_a_model_whose_weights_are_fixed_is_version_0_and_an_unbuilt_one_has_none(
    path: Path,
) -> None:
    assert version(changeable(path)) == "0"
    assert version(mslite.Model()) == ""


def test_in_mode_delta_what_is_given_is_added_to_the_first_weights() -> None:
    made = dense()
    weight = some(8, 4)
    (first,) = [t for t in made.graph.initializer if t.name == "w"]
    base = np.frombuffer(first.raw_data, np.float32).reshape(8, 4)
    model = changeable(made.SerializeToString(), "w", kind=ONNX, mode="delta")
    fixed = changeable(made.SerializeToString(), "w", kind=ONNX)
    x = some(2, 8)
    for delta in (weight, weight * 2, np.zeros_like(weight)):  # each counts from the first ones
        update(model, {"w": delta})
        update(fixed, {"w": base + delta})
        assert_same_bits(outputs(model, x), outputs(fixed, x))


def test_another_build_of_the_object_begins_at_version_0(path: Path, model: mslite.Model) -> None:
    update(model, versions(3))
    model.close()
    settings = {"ascend_context": {"variable_weights_list": "a"}}
    model.build_from_file(str(path), mslite.ModelType.MINDIR, config_dict=settings)
    assert (version(model), told(model)) == ("0", 0)


# --- the caller's memory --------------------------------------------------------------------------


def test_arrays_may_change_after_the_update(model: mslite.Model) -> None:
    weights = versions(3)
    update(model, weights)
    for array in weights.values():
        array[:] = 9
    assert told(model) == 3
    model.resize(model.get_inputs(), [[5, SIDE]])  # which reads the weights once more
    assert told(model, 5) == 3


def test_arrays_and_tensors_are_only_read(model: mslite.Model) -> None:
    weights = versions(3)
    for array in weights.values():
        array.flags.writeable = False
    tensors = [named(name, array) for name, array in weights.items()]
    model.update_weights([tensors])
    assert [t.name for t in tensors] == list(A_AND_B)
    for tensor, array in zip(tensors, weights.values(), strict=True):
        np.testing.assert_array_equal(tensor.get_data_to_numpy(), array)
    assert told(model) == 3


def test_arrays_of_any_layout_are_taken(model: mslite.Model) -> None:
    wide = np.zeros((SIDE, 2 * SIDE), np.float32)
    wide[:, ::2] = filled(3)
    update(model, {"a": wide[:, ::2], "b": np.asfortranarray(filled(3))})
    assert told(model) == 3


# --- refusals: nothing changes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (named("c", filled(2)), "no weight 'c' may change"),
        (named("b", filled(2)[:3]), r"weight 'b' has shape \[8, 8\], but got \[3, 8\]"),
        (named("b", filled(2).T.reshape(-1)), r"weight 'b' has shape \[8, 8\], but got \[64\]"),
        (named("b", filled(2).astype(np.float16)), "weight 'b' is of type float32, but got float1"),
        (named("a", filled(2)), "weight 'a' is given twice"),
        (mslite.Tensor(shape=[8, 8], dtype=mslite.DataType.FLOAT32), "weight '' holds no data"),
    ],
)
def test_one_tensor_that_does_not_fit_leaves_all_weights_as_they_are(
    model: mslite.Model, bad: mslite.Tensor, text: str
) -> None:
    update(model, versions(1))
    with pytest.raises(InputError, match=f"^update weight failed! Error is .*{text}"):
        model.update_weights([[named("a", filled(2)), bad]])
    assert (told(model), version(model)) == (1, "1")
    with pytest.raises(InputError, match=text):
        model.update_weights([[named(n, filled(2)) for n in A_AND_B], [named("a", filled(2)), bad]])
    assert (told(model), version(model)) == (1, "1")


def test_a_tensor_too_many_is_refused(model: mslite.Model) -> None:
    with pytest.raises(InputError, match=r"at place 2 has no name, .* ends at place 1"):
        model.update_weights([[mslite.Tensor(filled(2))] * 3])
    assert (told(model), version(model)) == (0, "0")


def test_all_that_does_not_fit_is_told_at_once(model: mslite.Model) -> None:
    with pytest.raises(InputError) as caught:
        update(model, {"c": filled(1), "b": filled(1)[0]})
    assert str(caught.value) == (
        "update weight failed! Error is no weight 'c' may change; weight 'b' has shape [8, 8], "
        "but got [8]. The weights that may change are 'a', 'b'"
    )


def test_an_empty_list_is_refused_for_it_could_mean_two_things(model: mslite.Model) -> None:
    with pytest.raises(InputError, match="list 0 is empty; leave it out"):
        model.update_weights([[]])


def test_an_engine_that_fails_leaves_the_model_as_it_was(
    model: mslite.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise EngineError("no memory")

    monkeypatch.setattr(building, "_reopened", fails)
    with pytest.raises(EngineError, match=r"^update weight failed! Error is no memory"):
        update(model, versions(1))
    assert (told(model), version(model)) == (0, "0")


def test_an_unbuilt_model_says_so_in_the_words_of_the_original() -> None:
    with pytest.raises(EngineError, match=r"^update weight failed! Error is Session is null, pl"):
        mslite.Model().update_weights([])


def test_a_closed_model_says_so(model: mslite.Model) -> None:
    model.close()
    for weights in ([], [[named("a", filled(1))]]):
        with pytest.raises(ClosedError, match=r"^update weight failed! Error is .*was closed"):
            model.update_weights(weights)


# --- other sizes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, -1])
def test_new_weights_outlive_a_resize_and_come_to_a_resized_model(
    tmp_path: Path, rows: int
) -> None:
    model = changeable(written(tmp_path / "m.mindir", telling_net(rows)), *A_AND_B)
    update(model, versions(1))
    model.resize(model.get_inputs(), [[5, SIDE]])
    assert (told(model, 5), version(model)) == (1, "1")
    update(model, versions(2))
    assert (told(model, 5), version(model)) == (2, "2")
    model.resize(model.get_inputs(), [[2, SIDE]])
    assert told(model) == 2
    model.update_weights([])
    assert told(model) == 0
    assert model.get_inputs()[0].shape == [2, SIDE]


def test_inputs_keep_their_data_over_an_update(model: mslite.Model) -> None:
    (x,) = model.get_inputs()
    x.set_data_from_numpy(np.ones((2, SIDE), np.float32))
    update(model, versions(2))
    assert model.get_inputs() == [x]
    (y,) = model.predict([x])
    assert np.unique(y.get_data_to_numpy()) == 2


# --- which weights may change ---------------------------------------------------------------------


def test_names_come_from_a_file_beside_the_configuration_in_quotes_or_not(
    path: Path, tmp_path: Path
) -> None:
    names = written(tmp_path / "names.txt", b"# both\na\n\nb,Default/b-Dense\n")
    assert names.exists()
    for place in ('"names.txt"', "names.txt", f'"{names}"', str(names)):
        for section in ("ascend_context", "common_context"):
            text = f"[{section}]\nvariable_weights_file={place}\n"
            config = written(tmp_path / "config.ini", text.encode())
            model = mslite.Model()
            model.build_from_file(str(path), mslite.ModelType.MINDIR, None, str(config))
            update(model, {"a": filled(1), "Default/b-Dense": filled(1)})
            assert told(model) == 1


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            "no_such",
            "1 of 1 names of weights that may change do not fit the model: 'no_such': the ",
        ),
        ("a,no_such", "1 of 2 names of weights"),
        ("x", "'x': the model has no weight, node or tensor 'x'"),
        ("Default", "'Default': could be any of 'a', 'b'; name one of them"),
    ],
)
def test_names_that_do_not_fit_fail_the_build(path: Path, names: str, text: str) -> None:
    with pytest.raises(EngineError) as caught:
        changeable(path, *names.split(","))
    assert str(caught.value).startswith("build_from_file failed! Error is ")
    assert text in str(caught.value)


def test_a_file_of_names_that_is_not_there_fails_the_build(path: Path) -> None:
    settings = {"ascend_context": {"variable_weights_file": "gone.txt"}}
    with pytest.raises(
        ModelFileError, match=r"variable weight name list is not exists: 'gone.txt'"
    ):
        mslite.Model().build_from_file(
            str(path), mslite.ModelType.MINDIR, None, config_dict=settings
        )


def test_the_weights_of_a_model_of_any_rank_cannot_change() -> None:
    with pytest.raises(EngineError, match="open, and the weights of such a model cannot change"):
        changeable(DATA / "nets/dyn_rank.mindir", "any")


# --- many threads ---------------------------------------------------------------------------------


def test_every_run_sees_one_version_and_none_older_than_the_last_update(
    model: mslite.Model,
) -> None:
    last, updates = 0, 30  # last: the version of the last update that returned
    end = threading.Event()
    problems: list[str] = []

    def predicts() -> None:
        before = 0.0
        while not end.is_set():
            least = last
            try:
                found = told(model)
            except Exception as exc:  # noqa: BLE001 - told below
                problems.append(repr(exc))
                return
            if found < max(least, before):
                problems.append(f"{found} after {least} and {before}")
            before = found

    threads = [threading.Thread(target=predicts) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, updates + 1):
        update(model, versions(number))
        last = number
    end.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert problems == []
    assert (told(model), version(model)) == (updates, str(updates))


def test_updates_of_many_threads_come_one_after_the_other(model: mslite.Model) -> None:
    """Each changes one weight of its own; none is lost."""
    barrier = threading.Barrier(2)

    def change(name: str) -> None:
        barrier.wait(LIMIT_S)
        for number in range(1, 11):
            update(model, {name: filled(number)})

    threads = [threading.Thread(target=change, args=(name,)) for name in A_AND_B]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert (told(model), version(model)) == (10, "20")


def test_a_model_closed_beside_an_update_is_closed(model: mslite.Model) -> None:
    began, may_go_on = threading.Event(), threading.Event()
    original = building._reopened

    def slow(*args: Any) -> Any:
        began.set()
        assert may_go_on.wait(LIMIT_S)
        return original(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_reopened", slow)
        changing = threading.Thread(target=update, args=(model, versions(1)))
        changing.start()
        assert began.wait(LIMIT_S)
        assert told(model) == 0  # requests are answered meanwhile
        closing = threading.Thread(target=model.close)
        closing.start()
        may_go_on.set()
        changing.join(LIMIT_S)
        closing.join(LIMIT_S)
    with pytest.raises(ClosedError):
        told(model)
