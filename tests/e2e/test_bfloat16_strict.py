"""[common_context] bfloat16=strict: MindSpore's own bits, which rounds after each operator.

tests/data/bfloat16.zip: networks that MindSpore's CPU computes in bfloat16 itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.archives import cases_of
from support.mindir_builder import Net, encode, tensor_type
from support.models import MINDIR
from support.running import fixture_arrays
from support.updates import outputs

import mindspore_lite as mslite
from mindspore_lite.core.dtypes import BY_NAME

BF16 = BY_NAME["bfloat16"].numpy
ENGINES = ("onnxruntime", "openvino", "torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*runs step by step")


def built(model: Path | bytes, engine: str = "onnxruntime", **more: str) -> mslite.Model:
    made = mslite.Model()
    config = {"common_context": {"engine": engine, **more}}
    if isinstance(model, bytes):
        made.build_from_buffer(model, MINDIR, config_dict=config)
    else:
        made.build_from_file(str(model), MINDIR, config_dict=config)
    return made


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", cases_of("bfloat16"))
def test_results_are_mindspores_bit_for_bit(
    case: str, engine: str, case_path: Callable[[str], Path]
) -> None:
    path = case_path(case)
    inputs, wanted = fixture_arrays(path.with_suffix(".npz"))
    with built(path, engine, bfloat16="strict") as model:
        got = outputs(model, *(array.astype(BF16) for array in inputs))
    assert len(got) == len(wanted)
    for found, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(found.astype(want.dtype), want)


def test_the_default_keeps_float32_between_operators(case_path: Callable[[str], Path]) -> None:
    path = case_path("bfloat16/mixed")
    inputs, wanted = fixture_arrays(path.with_suffix(".npz"))
    given = [array.astype(BF16) for array in inputs]
    with built(path) as plain, built(path, bfloat16="float32") as said:
        first, second = outputs(plain, *given), outputs(said, *given)
    np.testing.assert_array_equal(first[0], second[0])
    assert (first[0] != wanted[0]).any()
    exact = sum(np.prod([g.astype(np.float64) for g in given], axis=0) for _ in range(2))
    np.testing.assert_allclose(first[0], exact, rtol=1e-6)


def test_what_one_setting_compiled_is_not_taken_for_the_other() -> None:
    net = Net()
    x = net.input("x", (1,), BF16)
    kind = tensor_type((1,), BF16)
    third = net.call("Mul", x, x, type=kind)
    data = encode(net.model(net.call("Mul", third, x, type=kind)))
    given = np.array([1.0078125], BF16)
    for _ in range(2):  # the second time from the cache
        with built(data) as plain, built(data, bfloat16="strict") as strict:
            once = (given * given).astype(BF16)
            np.testing.assert_array_equal(outputs(strict, given)[0], once * given)
            exact = (given.astype(np.float32) ** 3).astype(BF16)
            np.testing.assert_array_equal(outputs(plain, given)[0], exact)


def test_another_word_is_refused() -> None:
    net = Net()
    data = encode(net.model(net.call("Neg", net.input("x", (1,)))))
    with pytest.raises((RuntimeError, ValueError), match=r"bfloat16.*strict"):
        built(data, bfloat16="exact")
