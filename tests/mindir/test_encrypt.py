"""mindir/encrypt.py: what it writes decrypt.py reads, and no iv is used twice."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import encrypt
from mindspore_lite.mindir.decrypt import MODES, Key, decrypted, encrypted_by
from mindspore_lite.mindir.encrypt import BLOCK_BYTES, encrypted

SECRET = b"A very secret k."
PLAIN = bytes(range(256)) * 5 + b"end"


def closed(data: object, mode: str = "AES-GCM", key: bytes = SECRET) -> bytes:
    return b"".join(encrypted(data, key, mode))  # type: ignore[arg-type]


def opened(data: bytes, mode: str = "AES-GCM", key: bytes = SECRET) -> bytes:
    return bytes(decrypted(memoryview(data), Key(key, mode)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 1283])
def test_what_is_closed_can_be_opened(mode: str, size: int) -> None:
    found = closed(PLAIN[:size], mode)
    assert encrypted_by(memoryview(found)) == mode
    assert opened(found, mode) == PLAIN[:size]


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
@pytest.mark.parametrize("length", [16, 24, 32])
def test_the_length_of_the_key_chooses_the_cipher(mode: str, length: int) -> None:
    key = bytes(range(length))
    assert opened(closed(PLAIN, mode, key), mode, key) == PLAIN


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", [16, 100, 257, len(PLAIN), 4096])
def test_pieces_are_cut_anew_into_blocks(
    mode: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encrypt, "BLOCK_BYTES", block)
    pieces = [PLAIN[:7], b"", memoryview(PLAIN)[7:600], bytearray(PLAIN[600:])]
    found = closed(iter(pieces), mode)
    assert opened(found, mode) == PLAIN
    assert found.count(found[:4]) == -(-len(PLAIN) // block)


def test_blocks_have_the_size_that_mindspore_uses() -> None:
    assert BLOCK_BYTES == 64 * 1024 * 1024


def test_every_block_has_its_own_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encrypt, "BLOCK_BYTES", 16)
    found, nonces, at = closed(PLAIN) + closed(PLAIN), set(), 0
    while at < len(found):
        nonces.add(found[at + 28 : at + 40])
        (length,) = struct.unpack_from("<I", found, at + 20)
        at += 24 + length
    assert len(nonces) == 2 * -(-len(PLAIN) // 16)


def test_only_one_block_is_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encrypt, "BLOCK_BYTES", 1 << 20)
    closed(PLAIN)  # imports

    def pieces() -> Iterator[bytes]:
        for _ in range(32):
            yield bytes(1 << 20)

    tracemalloc.start()
    try:
        size = sum(len(part) for part in encrypted(pieces(), SECRET))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 32 << 20
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("mode", "length", "words"),
    [
        ("AES-GCM", 15, "the key has 15 bytes, AES-GCM wants 16 or 24 or 32"),
        ("SM4-CBC", 24, "the key has 24 bytes, SM4-CBC wants 16"),
        ("AES-GCM", 64, "bytes.fromhex()"),
        ("ROT13", 16, "'ROT13', wanted one of ('AES-GCM', 'AES-CBC', 'SM4-CBC')"),
    ],
)
def test_a_wrong_key_or_mode_is_told_at_once(mode: str, length: int, words: str) -> None:
    key = (b"xyz!" * 17)[:length]
    with pytest.raises(ModelFileError) as caught:
        encrypted(PLAIN, key, mode)  # nothing is asked for yet
    assert words in str(caught.value)
    assert key not in str(caught.value).encode()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ModelFileError, match=r"pip install 'mslite\[crypto\]'"):
        encrypted(PLAIN, SECRET)


def test_a_cipher_that_openssl_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import ciphers

    def lacking(*_: object) -> None:
        raise UnsupportedAlgorithm("no SM4 here")

    monkeypatch.setattr(ciphers, "Cipher", lacking)
    with pytest.raises(ModelFileError, match="uses here has no SM4-CBC"):
        encrypted(PLAIN, SECRET, "SM4-CBC")
