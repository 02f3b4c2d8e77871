"""Encrypts model files.

The counterpart of decrypt.py, which describes the form. Every block has an iv of its own, fresh
from the operating system: with AES-GCM, two blocks under one key and nonce would give both away.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.decrypt import (
    IV_BYTES,
    KEY_BYTES,
    MAGIC,
    MODES,
    NONCE_BYTES,
    check_library,
    lacking,
)

BLOCK_BYTES = 64 << 20  # of the model in one block; MindSpore reads no larger ones

Data = bytes | bytearray | memoryview


def encrypted(data: Data | Iterable[Data], key: bytes, mode: str = MODES[0]) -> Iterator[bytes]:
    """Pieces of the encrypted file, in order; at most one block is held in memory.

    Everything is checked before the first piece is asked for.
    """
    if mode not in MODES:
        raise ModelFileError(f"a model cannot be encrypted with {mode!r}, wanted one of {MODES}")
    if len(key) not in KEY_BYTES[mode]:
        wanted = " or ".join(str(n) for n in KEY_BYTES[mode])
        raise ModelFileError(
            f"the key has {len(key)} bytes, {mode} wants {wanted}; "
            "a key written in hexadecimal goes through bytes.fromhex() first"
        )
    check_library()
    _encryptor(key, mode, bytes(IV_BYTES))  # does OpenSSL have the cipher?
    pieces = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
    return (part for block in _blocks(pieces) for part in _sealed(block, key, mode))


def _blocks(pieces: Iterable[Data]) -> Iterator[bytearray]:
    """The bytes of all pieces, cut anew: full blocks and what is left at the end."""
    block = bytearray()
    for piece in pieces:
        view = memoryview(piece).cast("B")
        at = 0
        while at < len(view):
            taken = view[at : at + BLOCK_BYTES - len(block)]
            block += taken
            at += len(taken)
            if len(block) == BLOCK_BYTES:
                yield block
                block = bytearray()
    if block:
        yield block


def _sealed(plain: bytearray, key: bytes, mode: str) -> Iterator[bytes]:
    iv = os.urandom(IV_BYTES)
    encryptor = _encryptor(key, mode, iv)
    if mode.endswith("CBC"):  # fills the last unit up, and says by how much
        fill = 16 - len(plain) % 16
        plain += bytes([fill]) * fill
    cipher = encryptor.update(plain)
    encryptor.finalize()
    tag = encryptor.tag if mode == MODES[0] else b""
    length = struct.pack("<III", 8 + IV_BYTES + len(cipher), IV_BYTES, len(cipher))
    yield struct.pack("<I", MAGIC[mode]) + tag + length[:8] + iv + length[8:]
    yield cipher


def _encryptor(key: bytes, mode: str, iv: bytes) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    algorithm = algorithms.SM4 if mode == "SM4-CBC" else algorithms.AES
    how: Any = modes.GCM(iv[:NONCE_BYTES]) if mode == MODES[0] else modes.CBC(iv)
    try:
        return Cipher(algorithm(key), how).encryptor()
    except UnsupportedAlgorithm as exc:
        raise lacking(mode) from exc
