"""model.py: predict and resize, of MindIR and ONNX files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.mindir_builder import Net, encode
from support.models import (
    DYN_BATCH,
    MINDIR,
    MIXED_TYPES,
    MOBILENET,
    ONNX,
    SWIN,
    TWO_IN_TWO_OUT,
    arrays,
    built,
    dense_net,
    dense_values,
    written,
)
from support.running import assert_close, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, EngineError, InputError, LiteError, ShapeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def dense(tmp_path: Path) -> mslite.Model:
    return built(written(tmp_path / "dense.mindir", dense_net()))


@pytest.fixture
def free(tmp_path: Path) -> mslite.Model:
    """The same with any number of rows."""
    return built(written(tmp_path / "free.mindir", dense_net(rows=-1)))


# --- ways to give inputs --------------------------------------------------------------------------


def test_the_models_own_inputs_can_be_filled_again_and_again(dense: mslite.Model) -> None:
    inputs = dense.get_inputs()
    for scale in (1, 2, 3):
        inputs[0].set_data_from_numpy(X * np.float32(scale))
        np.testing.assert_array_equal(arrays(dense.predict(inputs))[0], dense_values(X * scale))


def test_a_tensor_made_by_the_user_with_copied_attributes_is_taken(dense: mslite.Model) -> None:
    (source,) = dense.get_inputs()
    mine = mslite.Tensor()
    mine.dtype, mine.shape = source.dtype, source.shape
    mine.format, mine.name = source.format, source.name
    mine.set_data_from_numpy(X)
    np.testing.assert_array_equal(arrays(dense.predict([mine]))[0], dense_values(X))


GIVEN: dict[str, Callable[[], Any]] = {
    "a list of arrays": lambda: [X],
    "a tuple of arrays": lambda: (X,),
    "tensors without names": lambda: [mslite.Tensor(X)],
    "a dict of arrays": lambda: {"x": X},
    "a dict of tensors": lambda: {"x": mslite.Tensor(X)},
    "a flat array": lambda: [X.reshape(6)],
    "an array in Fortran order": lambda: [np.asfortranarray(X)],
    "an array of the other byte order": lambda: [X.astype(">f4")],
    "an array that cannot be written": lambda: [np.frombuffer(X.tobytes(), np.float32)],
}


@pytest.mark.parametrize("how", GIVEN)
def test_inputs_are_taken_as(dense: mslite.Model, how: str) -> None:
    np.testing.assert_array_equal(arrays(dense.predict(GIVEN[how]()))[0], dense_values(X))


def test_inputs_by_name_may_come_in_any_order() -> None:
    model = built(TWO_IN_TWO_OUT)
    (a, b), outputs = fixture_arrays(TWO_IN_TWO_OUT.with_suffix(".npz"))
    for got, want in zip(arrays(model.predict({"b": b, "a": a})), outputs, strict=True):
        assert_close(got, want)


def test_every_element_type_goes_in_and_comes_out() -> None:
    model = built(MIXED_TYPES)
    inputs, outputs = fixture_arrays(MIXED_TYPES.with_suffix(".npz"))
    kinds = [t.dtype for t in model.get_inputs()]
    assert kinds == [mslite.DataType.INT32, mslite.DataType.BOOL, mslite.DataType.FLOAT16]
    got = model.predict(list(inputs))
    assert [t.dtype for t in got] == [o.dtype for o in model.get_outputs()]
    for tensor, want in zip(got, outputs, strict=True):
        assert_close(tensor.get_data_to_numpy(), want)


# --- inputs that do not fit -----------------------------------------------------------------------

BAD: list[tuple[Any, type[Exception], str]] = [
    (X, TypeError, "inputs must be list"),
    ("x", TypeError, "inputs must be list"),
    (mslite.Tensor(X), TypeError, "inputs must be list"),
    (["input"], TypeError, "inputs element must be Tensor"),
    ([], InputError, "predict failed! model input len:1 not equal input len:0!"),
    ([X, X], InputError, "predict failed! model input len:1 not equal input len:2!"),
    (["a", "b"], InputError, "model input len:1 not equal input len:2!"),
    ([X.astype(np.float64)], InputError, "predict failed! data type not equal!"),
    ([np.zeros(5, np.float32)], InputError, "predict failed! data size not equal!"),
    ([np.zeros((3, 3), np.float32)], InputError, "predict failed! data size not equal!"),
    ([mslite.Tensor(X.astype(np.int32))], InputError, "predict failed! data type not equal!"),
    ({"y": X}, InputError, "missing ['x'], unknown ['y']"),
]


@pytest.mark.parametrize(("given", "kind", "words"), BAD, ids=[w for _, _, w in BAD])
def test_inputs_that_do_not_fit_are_refused_and_the_model_goes_on(
    dense: mslite.Model, given: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        dense.predict(given)
    assert words in str(caught.value)
    np.testing.assert_array_equal(arrays(dense.predict([X]))[0], dense_values(X))


def test_an_input_that_was_never_filled_is_named(dense: mslite.Model) -> None:
    with pytest.raises(RuntimeError, match="predict failed! input 'x' has no data; fill it"):
        dense.predict(dense.get_inputs())


def test_a_run_that_fails_inside_the_runtime_says_why(tmp_path: Path) -> None:
    """Row 9 of a table of 3."""
    net = Net()
    rows = net.input("rows", (1,), np.int64)
    y = net.call("Gather", net.weight("w", np.ones((3, 2), np.float32)), rows, net.constant(0))
    model = built(written(tmp_path / "gather.mindir", encode(net.model(y))))
    with pytest.raises(
        EngineError, match=r"predict failed! ONNX Runtime could not run .* idx=9"
    ) as got:
        model.predict([np.array([9])])
    assert got.value.__cause__ is not None
    assert arrays(model.predict([np.array([2])]))[0].tolist() == [[1, 1]]


def test_editing_a_declared_input_is_noticed_at_predict(dense: mslite.Model) -> None:
    """The Tensors are live, but the model goes by what it was built for."""
    (tensor,) = dense.get_inputs()
    tensor.shape = [4, 3]
    tensor.set_data_from_numpy(np.ones((4, 3), np.float32))
    with pytest.raises(
        InputError, match=r"got shape \[4, 3\], the model wants \[2, 3\]; call resize"
    ):
        dense.predict([tensor])
    tensor.shape, tensor.dtype = [2, 3], mslite.DataType.INT32
    tensor.set_data_from_numpy(np.ones((2, 3), np.int32))
    with pytest.raises(InputError, match="data type not equal!"):
        dense.predict([tensor])


# --- many threads ---------------------------------------------------------------------------------


def test_eight_threads_may_predict_at_once(free: mslite.Model) -> None:
    start = threading.Barrier(8)
    wrong: list[object] = []

    def work(number: int) -> None:
        x = np.full((number + 1, 3), number, np.float32)
        start.wait()
        for _ in range(50):
            try:
                (got,) = arrays(free.predict([x]))
                if not np.array_equal(got, dense_values(x)):
                    wrong.append((number, got))
            except Exception as exc:  # noqa: BLE001 - shown by the assertion below
                wrong.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- resize ---------------------------------------------------------------------------------------


def test_a_dynamic_model_is_resized_filled_and_run() -> None:
    model = built(DYN_BATCH)
    (x,), (want,) = fixture_arrays(DYN_BATCH.with_suffix(".npz"))
    inputs = model.get_inputs()
    assert -1 in inputs[0].shape
    assert model.get_outputs()[0].shape == [-1, 10]
    model.resize(inputs, [list(x.shape)])
    assert model.get_outputs()[0].shape == [len(x), 10]
    inputs[0].shape = list(x.shape)
    inputs[0].set_data_from_numpy(x)
    assert_close(arrays(model.predict(inputs))[0], want)


def test_a_dynamic_model_takes_any_batch_without_a_resize(free: mslite.Model) -> None:
    for rows in (1, 4):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(arrays(free.predict([x]))[0], dense_values(x))


def test_a_resized_model_wants_that_shape(free: mslite.Model) -> None:
    free.resize(free.get_inputs(), [[4, 3]])
    with pytest.raises(InputError, match=r"got shape \[2, 3\], the model wants \[4, 3\]"):
        free.predict([X])


def test_a_model_of_fixed_sizes_can_be_resized() -> None:
    model = built(MOBILENET)
    held = model.get_inputs()
    (x,), (want,) = fixture_arrays(MOBILENET.with_suffix(".npz"))
    before = arrays(model.predict([x]))[0]
    assert_close(before, want)
    model.resize(held, [[2, 3, 96, 96]])
    assert held[0].shape == [2, 3, 96, 96]  # the Tensor obtained before the call
    wide = np.zeros((2, 3, 96, 96), np.float32)
    wide[:, :, :64, :64] = x
    assert arrays(model.predict([wide]))[0].shape == (2, 10)
    model.resize(held, [[1, 3, 64, 64]])
    np.testing.assert_allclose(arrays(model.predict([x]))[0], before, rtol=1e-4, atol=1e-5)


def test_the_session_that_a_resize_replaced_is_closed(dense: mslite.Model) -> None:
    assert dense._service is not None
    old = dense._service.built.session
    dense.resize(dense.get_inputs(), [[4, 3]])
    with pytest.raises(ClosedError):
        old.run([X])


def test_a_resize_of_one_batch_gives_each_row_its_own_result() -> None:
    model = built(MOBILENET)
    (x,), (want,) = fixture_arrays(MOBILENET.with_suffix(".npz"))
    model.resize(model.get_inputs(), [[3, 3, 64, 64]])
    (got,) = arrays(model.predict([np.concatenate([x, x * 0, x])]))
    assert_close(got[:1], want)
    assert_close(got[2:], want)


def test_a_resize_drops_data_of_another_shape_only(free: mslite.Model) -> None:
    inputs = free.get_inputs()
    free.resize(inputs, [[2, 3]])
    inputs[0].set_data_from_numpy(X)
    free.resize(inputs, [[2, 3]])
    np.testing.assert_array_equal(arrays(free.predict(inputs))[0], dense_values(X))
    free.resize(inputs, [[4, 3]])
    assert inputs[0].shape == [4, 3]  # it followed, although it had been filled
    with pytest.raises(InputError, match="has no data"):
        free.predict(inputs)


def test_dims_may_be_tuples_and_numpy_integers(free: mslite.Model) -> None:
    free.resize(tuple(free.get_inputs()), ((np.int64(4), np.int32(3)),))
    assert free.get_inputs()[0].shape == [4, 3]


def test_two_inputs_are_resized_together() -> None:
    model = built(TWO_IN_TWO_OUT)
    model.resize(model.get_inputs(), [[5, 6], [6, 7]])
    assert [o.shape for o in model.get_outputs()] == [[5, 7], [5]]
    a, b = np.ones((5, 6), np.float32), np.ones((6, 7), np.float32)
    assert [v.shape for v in arrays(model.predict([a, b]))] == [(5, 7), (5,)]


def test_shapes_follow_their_tensors_in_any_order() -> None:
    model = built(TWO_IN_TWO_OUT)
    model.resize(model.get_inputs()[::-1], [[6, 7], [5, 6]])
    assert [i.shape for i in model.get_inputs()] == [[5, 6], [6, 7]]


def test_shapes_of_foreign_tensors_go_by_position() -> None:
    model = built(TWO_IN_TWO_OUT)
    model.resize([mslite.Tensor(), mslite.Tensor()], [[5, 6], [6, 7]])
    assert [i.shape for i in model.get_inputs()] == [[5, 6], [6, 7]]


BAD_RESIZE: list[tuple[Callable[[list[mslite.Tensor]], Any], Any, type[Exception], str]] = [
    (lambda i: i[0], [[1, 3]], TypeError, "inputs must be list or tuple of Lite Tensor"),
    (lambda i: [1, 2], [[1, 3]], TypeError, "inputs element must be Tensor, but got"),
    (lambda i: i, "1,3", TypeError, "dims must be list or tuple of shape"),
    (lambda i: i, ["1,3"], TypeError, "dims element must be list or tuple of int"),
    (lambda i: i, [3], TypeError, "dims element must be list or tuple of int"),
    (lambda i: i, [[1, "3"]], TypeError, "dims element's element must be int"),
    (lambda i: i, [[1, 3.0]], TypeError, "dims element's element must be int"),
    (lambda i: i, [[True, 3]], TypeError, "dims element's element must be int"),
    (lambda i: i, [[1, 3], [1, 3]], ValueError, "inputs' size does not match dims' size"),
    (lambda i: i, [], ValueError, "inputs' size does not match dims' size"),
    (lambda i: [], [], ShapeError, "resize failed! Error is 0 shapes were given for 1 inputs"),
    (lambda i: i * 2, [[1, 3]] * 2, ShapeError, "2 shapes were given for 1 inputs"),
    (lambda i: i, [[-1, 3]], ShapeError, "every dim must be 1 or more"),
    (lambda i: i, [[0, 3]], ShapeError, "every dim must be 1 or more"),
    (lambda i: i, [[2**31, 3]], ShapeError, "every dim must be"),
    (lambda i: i, [[3]], ShapeError, "resize failed! Error is input 'x' has 2 dims [2, 3]"),
    (lambda i: i, [[1, 2, 3]], ShapeError, "has 2 dims [2, 3], got [1, 2, 3]"),
    (lambda i: i, [[2, 5]], ShapeError, "resize failed! Error is the model cannot take the shapes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "dims", "kind", "words"), BAD_RESIZE, ids=[f"{d}" for _, d, _, _ in BAD_RESIZE]
)
def test_a_resize_that_fails_leaves_the_model_as_it_was(
    dense: mslite.Model, inputs: Callable[..., Any], dims: Any, kind: type[Exception], words: str
) -> None:
    held = dense.get_inputs()
    held[0].set_data_from_numpy(X)
    with pytest.raises(kind) as caught:
        dense.resize(inputs(held), dims)
    assert words in str(caught.value)
    assert (held[0].shape, dense.get_outputs()[0].shape) == ([2, 3], [2, 4])
    np.testing.assert_array_equal(arrays(dense.predict(held))[0], dense_values(X))


def test_sizes_fixed_inside_the_layers_are_refused_and_the_model_goes_on() -> None:
    model = built(SWIN)
    with pytest.raises(ShapeError, match="sizes that its layers fixed at export cannot change"):
        model.resize(model.get_inputs(), [[2, 3, 64, 64]])
    (x,), (want,) = fixture_arrays(SWIN.with_suffix(".npz"))
    assert_close(arrays(model.predict([x]))[0], want)


def test_a_file_exchanged_after_the_build_is_not_mixed_with_the_old_one(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mindir", dense_net())
    model = built(path)
    os.replace(written(tmp_path / "new", dense_net(factor=2)), path)
    with pytest.raises(LiteError, match=r"resize failed! .* changed since it was built"):
        model.resize(model.get_inputs(), [[4, 3]])
    np.testing.assert_array_equal(arrays(model.predict([X]))[0], dense_values(X))
    np.testing.assert_array_equal(arrays(built(path).predict([X]))[0], dense_values(X, 2))


# --- ONNX -----------------------------------------------------------------------------------------


def onnx_dense() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["product"]),
         helper.make_node("Add", ["product", "one"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(np.ones((3, 4), np.float32), "w"),
         numpy_helper.from_array(np.ones(4, np.float32), "one")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("is_external", [False, True])
def test_an_onnx_file_runs_and_is_resized(tmp_path: Path, is_external: bool) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_dense(), str(path), save_as_external_data=is_external, location="m.data",
              size_threshold=0)  # fmt: skip
    assert (tmp_path / "m.data").exists() == is_external
    model = built(path, ONNX)
    np.testing.assert_array_equal(arrays(model.predict([X]))[0], dense_values(X))
    model.resize(model.get_inputs(), [[4, 3]])
    assert model.get_outputs()[0].shape == [4, 4]
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(arrays(model.predict({"x": x}))[0], dense_values(x))


def test_a_data_file_exchanged_after_the_build_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_dense(), str(path), save_as_external_data=True, location="m.data",
              size_threshold=0)  # fmt: skip
    model = built(path, ONNX)
    data = (tmp_path / "m.data").read_bytes()
    (tmp_path / "new.data").write_bytes(data)
    (tmp_path / "new.data").replace(tmp_path / "m.data")
    with pytest.raises(LiteError, match=r"resize failed! .* changed since it was built"):
        model.resize(model.get_inputs(), [[4, 3]])


def test_an_onnx_file_whose_data_is_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_dense(), str(path), save_as_external_data=True, location="m.data",
              size_threshold=0)  # fmt: skip
    (tmp_path / "m.data").unlink()
    model = mslite.Model()
    with pytest.raises(RuntimeError, match=r"m\.data' is missing; put it beside the model"):
        model.build_from_file(str(path), ONNX)
    with pytest.raises(RuntimeError, match=r"pass ModelType\.ONNX"):
        model.build_from_file(str(path), MINDIR)
    onnx.save(onnx_dense(), str(path))
    model.build_from_file(str(path), ONNX)
