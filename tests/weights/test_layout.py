"""weights/layout.py: an array of an update lies as the graph has it, or as the framework has it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from mindspore_lite.errors import InputError
from mindspore_lite.graph.parameters import Parameter
from mindspore_lite.weights.change import changed
from mindspore_lite.weights.records import Variable


def variable(
    shape: tuple[int, ...], transposed: bool | None, name: str = "onnx::MatMul_1"
) -> Variable:
    first = np.zeros(shape, np.float32)
    first.flags.writeable = False
    aliases = ("/enc/fc/MatMul", "/enc/fc", "mine")
    return Variable(
        name, aliases, first.dtype, shape, first, Parameter("enc.fc.weight", transposed)
    )


def given(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def update(one: Variable, name: str, array: np.ndarray, layout: str = "graph") -> np.ndarray:
    (found,) = changed([one], [[(name, array)]], "replace", {}, layout).values()
    assert found.flags.c_contiguous
    return found


WIDE = variable((2, 3), True)
SQUARE = variable((3, 3), True)
NAMES = [
    "enc.fc.weight",
    "base_model.model.enc.fc.lora_A.weight",
    "fc.weight",
    "lora_unet_enc_fc.alpha",
]


@pytest.mark.parametrize("layout", ["graph", "framework"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("transposed", [True, None])
def test_the_shape_tells_if_it_is_not_square(
    layout: str, name: str, transposed: bool | None
) -> None:
    one = variable((2, 3), transposed)
    np.testing.assert_array_equal(update(one, name, given(3, 2), layout), given(3, 2).T)
    np.testing.assert_array_equal(update(one, name, given(2, 3), layout), given(2, 3))


@pytest.mark.parametrize("name", ["onnx::MatMul_1", "/enc/fc/MatMul", "/enc/fc", "mine", ""])
def test_under_a_name_of_the_graph_the_reversed_shape_is_an_error(name: str) -> None:
    with pytest.raises(InputError, match=r"has shape \[2, 3\], but got \[3, 2\]: transposed\?"):
        update(WIDE, name, given(3, 2))
    np.testing.assert_array_equal(update(WIDE, name, given(3, 2), "framework"), given(3, 2).T)


@pytest.mark.parametrize("name", ["enc.fc.weight", "fc.weight"])
def test_a_weight_that_lies_as_the_parameter_is_never_turned(name: str) -> None:
    with pytest.raises(InputError, match=r"\[3, 2\]: transposed\?"):
        update(variable((2, 3), False), name, given(3, 2))
    for layout in ("graph", "framework"):
        one = variable((3, 3), False)
        np.testing.assert_array_equal(update(one, name, given(3, 3), layout), given(3, 3))


def test_other_shapes_are_no_question_of_layout() -> None:
    with pytest.raises(InputError, match=r"but got \[3, 3\]\. The weights"):
        update(WIDE, "enc.fc.weight", given(3, 3))
    with pytest.raises(InputError, match=r"a factor of a LoRA\? mslite\.load_lora\(\) reads"):
        update(WIDE, "enc.fc.lora_A.weight", given(1, 3))


@pytest.mark.parametrize("name", NAMES)
def test_a_square_weight_lies_as_the_setting_says(name: str) -> None:
    with pytest.warns(UserWarning, match="variable_weights_layout=framework") as caught:
        found = update(SQUARE, name, given(3, 3))
    np.testing.assert_array_equal(found, given(3, 3))
    assert len(caught) == 1
    assert repr(name) in str(caught[0].message)
    np.testing.assert_array_equal(update(SQUARE, name, given(3, 3), "framework"), given(3, 3).T)


def test_one_warning_tells_of_all_weights() -> None:
    other = Variable(
        "w2", (), SQUARE.dtype, SQUARE.shape, SQUARE.first, Parameter("enc.gc.weight", None)
    )
    group = [("enc.fc.weight", given(3, 3)), ("enc.gc.weight", given(3, 3))]
    with pytest.warns(UserWarning, match=r"'enc\.fc\.weight' and 1 more is square") as caught:
        changed([SQUARE, other], [group], "replace", {})
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["onnx::MatMul_1", "/enc/fc/MatMul", "/enc/fc", "mine", ""])
def test_under_a_name_of_the_graph_nobody_is_warned(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(update(SQUARE, name, given(3, 3)), given(3, 3))


def test_a_square_weight_of_unknown_layout_cannot_be_given_as_the_framework_has_it() -> None:
    one = variable((3, 3), None)
    with pytest.raises(InputError, match="nothing in the model tells how it lies"):
        update(one, "enc.fc.weight", given(3, 3), "framework")
    np.testing.assert_array_equal(update(one, one.name, given(3, 3), "framework"), given(3, 3))


def test_a_single_number_has_no_layout() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        update(variable((1, 1), True), "enc.fc.weight", given(1, 1))


# --- LoRAs ----------------------------------------------------------------------------------------

DELTA = "enc.fc.lora_delta.weight"


@pytest.mark.parametrize("mode", ["replace", "delta"])
@pytest.mark.parametrize("layout", ["graph", "framework"])
@pytest.mark.parametrize("one", [SQUARE, WIDE])
def test_the_product_of_a_lora_needs_no_setting(mode: str, layout: str, one: Variable) -> None:
    array = given(*one.shape[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = changed([one], [[(DELTA, array)]], mode, {}, layout).values()
    np.testing.assert_array_equal(found, one.first + array.T)


def test_a_product_is_added_in_float32_and_rounded_once() -> None:
    first = np.full((2, 3), 2048, np.float16)
    one = Variable("w", (), first.dtype, first.shape, first, Parameter("enc.fc.weight", False))
    (found,) = changed([one], [[(DELTA, np.full((2, 3), 1.5, "f"))]], "replace", {}).values()
    assert found.dtype == np.float16
    assert (found == 2050).all()
    with pytest.raises(InputError, match="is of type float16, but got int32"):
        changed([one], [[(DELTA, np.ones((2, 3), np.int32))]], "replace", {})
    whole = np.ones((2, 3), np.int32)
    one = Variable("w", (), whole.dtype, whole.shape, whole, Parameter("enc.fc.weight", False))
    with pytest.raises(InputError, match="to which no delta can be added"):
        changed([one], [[(DELTA, np.ones((2, 3), "f"))]], "replace", {})


@pytest.mark.parametrize(("shape", "array"), [((2, 3, 1, 1), (2, 3)), ((2, 3), (2, 3, 1, 1))])
def test_a_product_fits_a_convolution_of_size_1_and_a_linear(shape: Any, array: Any) -> None:
    found = update(variable(shape, False), DELTA, given(*array))
    np.testing.assert_array_equal(found, given(*shape))


def test_products_of_one_list_are_added_up() -> None:
    group = [(DELTA, given(3, 2)), ("lora_unet_enc_fc.lora_delta.weight", given(3, 2) + 1)]
    (found,) = changed([WIDE], [group], "replace", {}).values()
    np.testing.assert_array_equal(found, (2 * given(3, 2) + 1).T)
    with pytest.raises(InputError, match="is given twice"):
        changed([WIDE], [[(DELTA, given(3, 2)), ("enc.fc.weight", given(3, 2))]], "replace", {})


def test_a_list_of_products_alone_leaves_nothing_of_the_lora_before() -> None:
    other = Variable("w2", (), WIDE.dtype, WIDE.shape, WIDE.first, Parameter("enc.gc.weight", True))
    present = {"w2": given(2, 3)}
    found = changed([WIDE, other], [[(DELTA, given(3, 2))]], "replace", present)
    assert found.keys() == {WIDE.name}
    mixed = [(DELTA, given(3, 2)), ("w2", given(2, 3) + 1)]
    assert changed([WIDE, other], [mixed], "replace", present).keys() == {WIDE.name, "w2"}
    groups = [[("w2", given(2, 3))], [(DELTA, given(3, 2))]]
    assert changed([WIDE, other], groups, "replace", {}).keys() == {WIDE.name}


# --- names ----------------------------------------------------------------------------------------


def test_the_end_of_a_name_will_do_where_no_other_weight_of_the_model_has_it() -> None:
    inner = Variable(
        "w", (), WIDE.dtype, WIDE.shape, WIDE.first, Parameter("unet.enc.fc.weight", True), least=2
    )
    assert update(inner, "enc.fc.weight", given(2, 3)) is not None
    assert update(inner, "lora_unet_enc_fc.lora_up.weight", given(2, 3)) is not None
    with pytest.raises(InputError, match=r"no weight 'fc\.weight' may change, but"):
        update(inner, "fc.weight", given(2, 3))


def test_an_error_about_many_names_fits_on_a_screen() -> None:
    group = [
        (f"lora_unet_{'down_blocks_0_attentions_' * 8}{i}.alpha", given(2, 3)) for i in range(900)
    ]
    with pytest.raises(InputError) as caught:
        changed([WIDE], [group], "replace", {})
    assert len(str(caught.value)) < 80 * 24


def test_a_parameter_in_two_weights_changes_in_both_or_not_at_all() -> None:
    both = [variable((3, 2), False, "enc.fc.weight"), variable((2, 3), True)]
    array = given(3, 2)
    with pytest.raises(InputError, match=r"is in several weights, give 'onnx::MatMul_1'"):
        changed(both, [[("enc.fc.weight", array)]], "replace", {})
    found = changed(both, [[("enc.fc.weight", array), ("onnx::MatMul_1", array.T)]], "replace", {})
    assert found.keys() == {"enc.fc.weight", "onnx::MatMul_1"}
    assert changed(both, [[("onnx::MatMul_1", array.T)]], "replace", {}).keys() == {
        "onnx::MatMul_1"
    }
