"""Encrypts as MindSpore does, block by block, and as its oldest releases did."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

MAGIC = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}


def encrypt(
    data: bytes | Sequence[bytes],
    key: bytes,
    mode: str = "AES-GCM",
    *,
    block: int = 64 << 20,
    tagless: bool = False,
) -> bytes:
    """The file; several pieces are encrypted by calls of their own, as weights are."""
    pieces = [data] if isinstance(data, bytes) else data
    out, count = b"", 0
    for piece in pieces:
        for at in range(0, len(piece), block):
            count += 1
            out += _block(piece[at : at + block], key, mode, count, tagless)
    return out


def _block(data: bytes, key: bytes, mode: str, count: int, tagless: bool) -> bytes:
    iv = bytes((count * 7 + i) % 256 for i in range(16))
    algorithm = algorithms.SM4 if mode == "SM4-CBC" else algorithms.AES
    tag = b""
    if mode == "AES-GCM":
        encryptor = Cipher(algorithm(key), modes.GCM(iv[:12])).encryptor()
        cipher = encryptor.update(data) + encryptor.finalize()
        tag = encryptor.tag
    else:
        fill = 16 - len(data) % 16
        encryptor = Cipher(algorithm(key), modes.CBC(iv)).encryptor()
        cipher = encryptor.update(data + bytes([fill]) * fill) + encryptor.finalize()
    magic = MAGIC["AES-GCM"] if tagless else MAGIC[mode]
    rest = struct.pack("<I", 16) + iv + struct.pack("<I", len(cipher)) + cipher
    return (
        struct.pack("<I", magic) + (b"" if tagless else tag) + struct.pack("<I", len(rest)) + rest
    )
