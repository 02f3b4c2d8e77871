"""setting_names.py: errors name what the user can type."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from mindspore_lite.cli.convert import Options
from mindspore_lite.cli.converter_lite import FLAGS
from mindspore_lite.conversion.setting_names import (
    _NAMES,
    CONVERTER_LITE,
    MSLITE,
    PYTHON,
    asked_by,
    name_of,
)
from mindspore_lite.converter import Converter


def test_without_a_command_the_names_are_those_of_python() -> None:
    assert name_of("shape") == "input_shape"
    with asked_by(MSLITE):
        assert name_of("shape") == "--shape"
        with asked_by(CONVERTER_LITE):
            assert name_of("shape") == "inputShape"
        assert name_of("shape") == "--shape"
    assert name_of("shape") == "input_shape"


def test_a_name_is_given_back_after_an_error() -> None:
    with pytest.raises(ValueError), asked_by(MSLITE):
        raise ValueError
    assert name_of("framework") == "fmk_type"


def test_every_name_is_one_that_exists() -> None:
    options = {f"--{field.name.replace('_', '-')}" for field in fields(Options)}
    python = {*dir(Converter), *inspect.signature(Converter.convert).parameters}
    for names in _NAMES.values():
        if names[PYTHON] not in ("external_above", "output_format"):  # which Python does not have
            assert names[PYTHON] in python
        assert names[CONVERTER_LITE] in {*FLAGS, "external_above", "weight_file"}
        if names[MSLITE].startswith("--"):
            assert names[MSLITE] in options
