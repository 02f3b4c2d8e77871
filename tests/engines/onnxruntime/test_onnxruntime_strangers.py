"""engines/onnxruntime/engine.py: what models and requests of strangers must not do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import pytest

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.onnxruntime import engine as engine_module
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine, readable
from mindspore_lite.errors import InputError

ENGINE = OnnxRuntimeEngine()


def test_bytes_are_never_taken_for_the_runtimes_own_format() -> None:
    """Which it would do if a name in the model put its mark at the fourth byte."""
    settings = engine_module._settings(Options(), {})
    assert settings.get_session_config_entry("session.load_model_format") == "ONNX"


def test_an_error_of_any_length_is_read_in_no_time() -> None:
    assert len(readable(ValueError("/" * 1_000_000))) <= 4000


def test_a_request_without_elements_is_refused_where_sizes_are_divided_by(
    source_of: Callable[[onnx.ModelProto], ModelSource],
) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 23]> g (float[1,H,2,4] q) => (float[1,H,2,4] y) '
        "{ y = Attention (q, q, q) }"
    )
    session = ENGINE.load(source_of(made), Options())
    with pytest.raises(InputError, match="an input has no elements"):
        session.run([np.zeros((1, 0, 2, 4), np.float32)])
