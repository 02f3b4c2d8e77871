"""What a setting of a conversion is called by whoever asked: Converter, converter_lite or mslite.

An error names the attribute or flag that the user can change. A command says once who it is
(`asked_by`); what is raised meanwhile, however deep, asks `name_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PYTHON, CONVERTER_LITE, MSLITE = range(3)
# a setting: its name in Python, for converter_lite, for `mslite convert`
_NAMES = {
    "framework": ("fmk_type", "fmk", "--framework"),
    "model": ("model_file", "modelFile", "MODEL"),
    "weights": ("weight_file", "weight_file", "weight_file"),  # the original says so, too
    "output": ("output_file", "outputFile", "OUTPUT"),
    "shape": ("input_shape", "inputShape", "--shape"),
    "optimize": ("optimize", "optimize", "--optimize"),
    "input_format": ("input_format", "inputDataFormat", "--input-format"),
    "output_format": ("output_format", "outputDataFormat", "--output-format"),
    "input_type": ("input_data_type", "inputDataType", "--input-type"),
    "output_type": ("output_data_type", "outputDataType", "--output-type"),
    "save_type": ("save_type", "saveType", "save_type"),
    "decrypt_key": ("decrypt_key", "decryptKey", "--decrypt-key"),
    "decrypt_mode": ("decrypt_mode", "decryptMode", "--decrypt-mode"),
    "encrypt_key": ("encrypt_key", "encryptKey", "--encrypt-key"),
    "external_above": ("external_above", "external_above", "--external-above"),
    "trust_pickle": ("trust_pickle", "trustPickle", "--trust-pickle"),
}
_asker: ContextVar[int] = ContextVar("asker", default=PYTHON)


@contextmanager
def asked_by(asker: int) -> Iterator[None]:
    """Who asks for the conversion in this block."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


def name_of(setting: str) -> str:
    """What the user calls a setting."""
    return _NAMES[setting][_asker.get()]
