"""What the ops refuse: never a wrong number, always words that say what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net
from support.op_case import Case, K, numbers
from support.refusal import Row, assert_refused, named
from support.running import run

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r
from mindspore_lite.ops.arguments import layout, pad_mode
from mindspore_lite.ops.table import OPS, bind, op

ROWS: list[Row] = [
    ("Add", [(2,), (2,), (2,)], {}, "Add has 3 inputs, wanted at most 2: Add(x, y)"),
    ("AvgPool", [(1, 1, 4, 4)], {}, "AvgPool lacks its argument 'kernel_size'"),
    ("Transpose", [(2, 3)], {}, "Transpose lacks its argument 'perm': Transpose(x, perm)"),
    ("Softmax", [(2, 3)], {"axis": (2,)}, "axis 2 does not exist in a tensor of 2 dims"),
    ("ReduceSum", [(2, 3), K((-3,))], {}, "axis -3 does not exist"),
    ("Transpose", [(2, 3), np.array([1, 0])], {}, "perm must be constant"),
    ("Cast", [(2,), K(999)], {}, "element type 999 cannot be used here"),
    ("Cast", [(2,), K("float32")], {}, "element type 'float32' cannot be used here"),
    ("BitwiseAnd", [(2,), (2,)], {}, "BitwiseAnd of float32 is not supported"),
    ("MaxPool", [(1, 1, 4, 4)],
     {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "pad"}, "pad_mode 'pad'"),
    ("MaxPool", [(1, 1, 4, 4)],
     {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "full"},
     "pad_mode 'full' is not supported"),
    ("BiasAdd", [(2, 3), (3,)], {"format": "NC4HW4"}, "format 'NC4HW4' is not supported"),
    ("Split", [(2, 3)], {"axis": 0, "output_num": 2**31}, "2147483648 results of one operator"),
    ("Reshape", [(2, 3), K((None, 2))], {}, "Reshape"),
    ("Add", [(2, 3), K("text")], {}, "Add"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_an_option_that_is_not_implemented_is_refused_in_words(row: Row) -> None:
    assert_refused(row)


@pytest.mark.parametrize(
    ("primitive", "shape", "arguments", "words"),
    [
        ("SplitTensor", (2**40,), (1, 0), "1099511627776 results of one operator"),
        ("Chunk", (2**40,), (2**40, 0), "1099511627776 results of one operator"),
        ("AdaptiveAvgPool2DExt", (1, 1, 2, 2), ((2**27, 2),), "268435456 weights of an adaptive"),
        ("OneHot", (2,), (2**29, 1.0, 0.0, -1), "536870912 classes"),
        ("GroupNorm", (2, 4, 3), (2**31, None, None, 1e-5), "2147483648 groups"),
    ],
)
def test_absurd_sizes_are_refused_before_any_work(
    primitive: str, shape: tuple[int, ...], arguments: tuple[Any, ...], words: str
) -> None:
    net = Net()
    x = net.input("x", shape)
    made = net.call(primitive, x, *(net.constant(a) for a in arguments))
    with pytest.raises(UnsupportedOpError, match=words):
        from_mindir(net.model(made))


def test_an_argument_of_absurdly_many_numbers_is_refused_before_any_work() -> None:
    net = Net()
    counts = net.input("counts", (2**31,), np.int64)
    with pytest.raises(UnsupportedOpError, match="2147483648 numbers in one argument"):
        from_mindir(net.model(net.call("Tile", net.input("x", (4,)), counts)))


UNKNOWN_SIZES = [
    Case("Chunk", [(6, 2), K(3), K(0)], lambda x: (x[:2], x[2:4], x[4:])),
    Case("SplitTensor", [(6, 2), K(2), K(0)], lambda x: (x[:2], x[2:4], x[4:])),
    Case("Unstack", [(6, 2)], lambda x: tuple(x), attributes={"axis": 0}),
]


@pytest.mark.parametrize("case", UNKNOWN_SIZES, ids=lambda c: c.primitive)
def test_an_op_that_needs_a_size_says_so_when_it_is_free(case: Case) -> None:
    model, _ = next(f.build() for _, f in Case(**{**vars_of(case), "dynamic": True}).forms()
                    if f.dynamic)  # fmt: skip
    with pytest.raises(UnsupportedOpError, match="needs a fixed size"):
        from_mindir(model)


def vars_of(case: Case) -> dict[str, Any]:
    names = ("primitive", "inputs", "wants", "init", "attributes")
    return {name: getattr(case, name) for name in names}


def test_an_unknown_rank_is_refused_by_an_op_that_needs_it() -> None:
    net = Net()
    x, bias = net.input("x", None), net.input("b", (3,))
    model = net.model(net.call("BiasAdd", x, bias))
    with pytest.raises(UnsupportedOpError, match="rank of 'x' is not known; export with a fixed"):
        from_mindir(model)


def test_an_unknown_rank_does_not_matter_to_an_op_that_does_not_ask() -> None:
    net = Net()
    model = net.model(net.call("ReLU", net.input("x", None)))
    (got,) = run(model, np.array([[-1, 2]], np.float32))
    np.testing.assert_array_equal(got, [[0, 2]])


def test_shapes_that_do_not_fit_are_refused_where_types_are_inferred() -> None:
    net = Net()
    product = net.call("MatMulExt", net.input("a", (2, 3)), net.input("b", (4, 5)))
    model = net.model(net.call("BiasAdd", product, net.input("c", (5,))))
    with pytest.raises(UnsupportedOpError, match="shapes or types do not fit"):
        from_mindir(model)


# --- the table itself -----------------------------------------------------------------------------


def test_a_primitive_can_be_registered_only_once() -> None:
    with pytest.raises(ValueError, match="'ReLU' is registered twice"):
        op("ReLU")(lambda t, x: x)


def test_a_signature_marks_init_arguments() -> None:
    assert OPS["AvgPool"].signature == (
        "AvgPool(x, kernel_size!, strides!, pad_mode!, data_format!)"
    )


def test_every_op_says_in_a_line_what_it_does() -> None:
    silent = [name for name, row in OPS.items() if not (row.meaning.__doc__ or "").strip()]
    assert silent == []


def test_an_input_counts_before_an_attribute_of_the_same_name() -> None:
    assert bind(OPS["Softmax"], ["x", 1], {"axis": 2}) == {"x": "x", "axis": 1}


def test_attributes_that_mean_nothing_are_ignored() -> None:
    found = bind(OPS["ReLU"], ["x"], {"input_names": ["x"], "is_load": True})
    assert found == {"x": "x"}


@pytest.mark.parametrize("old", [("data_format", "format"), ("transpose_b", "transpose_x2")])
def test_old_names_of_arguments_are_found(old: tuple[str, str]) -> None:
    new, name = old
    row = OPS["BiasAdd"] if new == "data_format" else OPS["MatMul"]
    assert bind(row, [1, 2], {name: "value"})[new] == "value"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(0, "pad"), (1, "same"), (2, "valid"), ("SAME", "same"), ("Valid", "valid"),
     ("CALCULATED", "pad")],
)  # fmt: skip
def test_pad_modes_come_as_numbers_and_words(given: int | str, wanted: str) -> None:
    assert pad_mode(given) == wanted


@pytest.mark.parametrize(("given", "wanted"), [(0, "NCHW"), (1, "NHWC"), (14, "NCDHW"),
                                               ("NHWC", "NHWC")])  # fmt: skip
def test_formats_come_as_numbers_and_words(given: int | str, wanted: str) -> None:
    assert layout(given) == wanted


def test_odd_arguments_do_not_end_in_a_traceback() -> None:
    """A file may hold anything: here the axis is a dict."""
    net = Net()
    x = net.input("x", (2, 3))
    model = net.model(net.call("ReduceSum", x, net.constant({"a": 1}), scope="Default/odd"))
    with pytest.raises(UnsupportedOpError, match="Default/odd"):
        from_mindir(model)


def test_monads_among_the_inputs_are_dropped() -> None:
    net = Net()
    x = net.input("x", (2,))
    model = net.model(net.call("ReLU", x, net.monad(), net.constant(r.Monad.IO)))
    (got,) = run(model, numbers(2))
    np.testing.assert_array_equal(got, np.maximum(numbers(2), 0))
