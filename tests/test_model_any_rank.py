"""Model: inputs whose number of dims the file leaves open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.mindir_builder import Net, encode
from support.models import built, written
from support.running import DATA

import mindspore_lite as mslite

DYN_RANK = DATA / "nets/dyn_rank.mindir"


def wanted(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + 1


def test_the_shape_is_minus_two_until_resize() -> None:
    with built(DYN_RANK) as model:
        (tensor,) = model.get_inputs()
        assert (tensor.shape, tensor.element_num) == ([-2], 0)
        assert [o.shape for o in model.get_outputs()] == [[-2]]
        assert model.get_model_info("input_shape") == "x:[-2]"
        model.resize([tensor], [[2, 3]])
        assert (tensor.shape, model.get_outputs()[0].shape) == ([2, 3], [2, 3])
        model.resize([tensor], [[4, 1, 2]])
        assert (tensor.shape, model.get_outputs()[0].shape) == ([4, 1, 2], [4, 1, 2])
        tensor.set_data_from_numpy(np.full((4, 1, 2), 2, np.float32))
        (output,) = model.predict([tensor])
        assert output.get_data_to_numpy().tolist() == [[[3, 3]]] * 4


def test_predict_takes_the_shape_of_the_array() -> None:
    with built(DYN_RANK) as model:
        for shape in [(3,), (2, 3), (), (1, 2, 1, 2), (5,)]:
            x = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
            (output,) = model.predict([x])
            np.testing.assert_array_equal(output.get_data_to_numpy(), wanted(x))
        assert model.get_inputs()[0].shape == [-2]


def test_an_unfilled_tensor_of_any_rank_asks_for_resize() -> None:
    with built(DYN_RANK) as model:
        (tensor,) = model.get_inputs()
        with pytest.raises(RuntimeError, match=r"call Model\.resize\(\)"):
            tensor.set_data_from_numpy(np.zeros(3, np.float32))


def test_fixed_inputs_beside_it_stay_fixed(tmp_path: Path) -> None:
    net = Net()
    x, y = net.input("x", None), net.input("y", (2,))
    path = written(tmp_path / "net.mindir", encode(net.model(net.call("Add", x, y))))
    with built(path) as model:
        assert [i.shape for i in model.get_inputs()] == [[-2], [2]]
        (output,) = model.predict([np.ones((3, 2), np.float32), np.ones(2, np.float32)])
        assert output.shape == [3, 2]
        with pytest.raises(RuntimeError, match="data size not equal"):
            model.predict([np.ones((3, 2), np.float32), np.ones(3, np.float32)])
        with pytest.raises(RuntimeError, match="has 1 dims"):
            model.resize(model.get_inputs(), [[3, 2], [1, 2]])


def test_a_file_that_changed_is_not_mixed_with_the_old_one(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", DYN_RANK.read_bytes())
    with built(path) as model:
        model.predict([np.ones(3, np.float32)])
        path.write_bytes(b"something else")
        model.predict([np.ones(2, np.float32)])
        with pytest.raises(RuntimeError, match="changed since it was built"):
            model.predict([np.ones((2, 2), np.float32)])


def test_a_closed_model_says_so() -> None:
    model = built(DYN_RANK)
    model.predict([np.ones(3, np.float32)])
    model.close()
    with pytest.raises(RuntimeError, match="closed"):
        model.predict([np.ones(3, np.float32)])


def test_user_info_is_there_before_any_rank_is_known(tmp_path: Path) -> None:
    net = Net()
    records = net.model(net.call("Neg", net.input("x", None)), user_info={"a": "b"})
    with built(written(tmp_path / "net.mindir", encode(records))) as model:
        assert model.get_model_info("user_info") == '{"a": "b"}'
        assert model.get_outputs()[0].dtype is mslite.DataType.FLOAT32
