"""The files exported by MindSpore in tests/data: their keys, and how their outputs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support.running import assert_close

# What draws random numbers is compared by shape and type alone.
RANDOM = {"act_RReLU", "rand", "std_normal"}
# Outputs that MindSpore itself leaves undefined, and the part of them that is compared.
# mha_mask: its second item masks every key, and MindSpore returns memory that it never wrote.
UNDEFINED = {"mha_mask": np.s_[:1]}
# Files that are encrypted: their keys and modes.
KEYS = {
    "enc_gcm": (b"0123456789ABCDEF", "AES-GCM"),
    "enc_cbc": (b"0123456789ABCDEF01234567", "AES-CBC"),
    "gcm_24": (b"0123456789abcdefghijklmn", "AES-GCM"),
    "gcm_32": (b"0123456789abcdefghijklmnopqrstuv", "AES-GCM"),
    "cbc_16": (b"0123456789abcdef", "AES-CBC"),
    "cbc_32": (b"0123456789abcdefghijklmnopqrstuv", "AES-CBC"),
    "sm4": (b"0123456789abcdef", "SM4-CBC"),
    "split_gcm_graph": (b"0123456789abcdef", "AES-GCM"),
    "split_cbc_graph": (b"0123456789abcdef", "AES-CBC"),
    "split_sm4_graph": (b"0123456789abcdef", "SM4-CBC"),
}


def compare_outputs(
    path: Path, outputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
) -> None:
    """Assert that the outputs of a file are those that MindSpore computed."""
    assert len(outputs) == len(wanted)
    for got, want in zip(outputs, wanted, strict=True):
        if got.dtype.name == "bfloat16":  # which no .npz can hold: it is stored as float32
            want = want.astype(got.dtype)
        if path.stem in RANDOM or path.parent.name == "random_numbers":
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
        else:
            part = UNDEFINED.get(path.stem, np.s_[:] if got.ndim else ())
            assert got.shape == want.shape
            assert_close(got[part], want[part], path.stem)
