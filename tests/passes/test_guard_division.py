from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from support.running import run_graph

from mindspore_lite.passes.guard_division import guard_division


def model_of(op: str, kind: str, divisor: str = "") -> ir.Model:
    weights = f"<{kind}[1] b = {{{divisor}}}>" if divisor else ""
    ends = f"({kind}[N] x{'' if divisor else f', {kind}[N] b'}) => ({kind}[N] y)"
    text = f'<ir_version: 10, opset_import: ["": 21]> g {ends} {weights} {{ y = {op} (x, b) }}'
    return ir.from_proto(onnx.parser.parse_model(text))


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_numbers_stay_what_they_are_and_the_least_one_does_no_harm(op: str, kind: str) -> None:
    model = model_of(op, kind)
    assert guard_division(model) == 1
    dtype = np.dtype(kind)
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).min, 7, -7, 7, 0], dtype)
    b = np.array([-1, 2, -1, 3, -3, -1], dtype)
    (y,) = run_graph(model, x, b)
    least = np.iinfo(dtype).min
    wanted = {"Div": [least, least // 2, -7, -2, -2, 0], "Mod": [0, 0, 0, 2, -2, 0]}[op]
    np.testing.assert_array_equal(y, np.array(wanted, dtype))


@pytest.mark.parametrize(
    ("op", "kind", "divisor", "count"),
    [
        ("Div", "int64", "2", 0),
        ("Div", "int64", "-1", 1),
        ("Div", "float", "", 0),
        ("Mod", "uint8", "", 0),
        ("Add", "int64", "", 0),
    ],
)
def test_only_what_may_be_divided_by_minus_one_is_changed(
    op: str, kind: str, divisor: str, count: int
) -> None:
    assert guard_division(model_of(op, kind, divisor)) == count


LEAST = """
import sys
import numpy as np, onnx.parser
import mindspore_lite as mslite
for op in ("Div", "Mod"):
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> '
        f'g (int64[1] x, int64[1] b) => (int64[1] y) {{ y = {op} (x, b) }}'
    )
    found = mslite.Model()
    settings = {"common_context": {"engine": sys.argv[1]}}
    found.build_from_buffer(model.SerializeToString(), mslite.ModelType.ONNX, config_dict=settings)
    found.predict([np.array([-(2**63)]), np.array([-1])])
    print(op, "alive", flush=True)
"""


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "torch"])
def test_a_request_cannot_end_the_process(engine: str) -> None:
    command = [sys.executable, "-c", LEAST, engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Div alive\nMod alive\n"), done.stderr
