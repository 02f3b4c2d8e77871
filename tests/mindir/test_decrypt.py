"""mindir/decrypt.py: every mode and form, and an error of its own for everything wrong."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.encryption import encrypt
from support.mindir_builder import Net, encode

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import decrypt
from mindspore_lite.mindir.decrypt import MODES, Key, decrypted, encrypted_by

SECRET = b"A very secret k."
PLAIN = bytes(range(256)) * 5 + b"end"


def opened(data: bytes, mode: str = "AES-GCM", secret: bytes = SECRET, threads: int = 0) -> bytes:
    return bytes(decrypted(memoryview(data), Key(secret, mode, threads)))


# --- good -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 1283])
def test_every_mode_opens_what_it_closed(mode: str, size: int) -> None:
    closed = encrypt(PLAIN[:size], SECRET, mode)
    assert encrypted_by(memoryview(closed)) == mode
    assert opened(closed, mode) == PLAIN[:size]


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
@pytest.mark.parametrize("length", [16, 24, 32])
def test_the_length_of_the_key_chooses_the_cipher(mode: str, length: int) -> None:
    secret = bytes(range(length))
    assert opened(encrypt(PLAIN, secret, mode), mode, secret) == PLAIN


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [0, 1, 2, 5, 64])
def test_blocks_are_put_together_in_order_by_any_number_of_threads(mode: str, threads: int) -> None:
    for block in (1, 16, 100, 257):
        assert opened(encrypt(PLAIN, SECRET, mode, block=block), mode, threads=threads) == PLAIN


def test_pieces_of_different_lengths_are_put_together() -> None:
    pieces = [b"a" * 64, b"b" * 7, b"c" * 200, b"d"]
    for mode in MODES:
        assert opened(encrypt(pieces, SECRET, mode, block=50), mode) == b"".join(pieces)


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_the_oldest_form_has_no_tag_and_one_magic(mode: str, block: int) -> None:
    closed = encrypt(PLAIN, SECRET, mode, block=block, tagless=True)
    assert closed[:4] == b"\xd8\x5e\x3a\x7f"
    with untagged(mode):
        assert opened(closed, mode) == PLAIN


def untagged(mode: str) -> AbstractContextManager[Any]:
    """What is warned of a file without tags: nothing where its mode has none."""
    if mode != "AES-GCM":
        return nullcontext()
    return pytest.warns(RuntimeWarning, match=r"anybody could .* require_authenticated=on refuses")


def test_tags_that_were_cut_off_are_warned_of_and_can_be_refused() -> None:
    closed = encrypt(PLAIN, SECRET)
    cut = memoryview(closed[:4] + closed[20:])
    with pytest.warns(RuntimeWarning, match="the encrypted file has no tags"):
        assert decrypted(cut, Key(SECRET)) == PLAIN
    authentic = Key(SECRET, authentic=True)
    assert decrypted(memoryview(closed), authentic) == PLAIN
    with pytest.raises(ModelFileError, match=r"has no tags, .* require_authenticated is on"):
        decrypted(cut, authentic)


@pytest.mark.parametrize("mode", ["AES-CBC", "SM4-CBC"])
def test_modes_without_tags_can_be_refused(mode: str) -> None:
    with pytest.raises(ModelFileError, match=r"has no tags, .* require_authenticated is on"):
        decrypted(memoryview(encrypt(PLAIN, SECRET, mode)), Key(SECRET, mode, authentic=True))


def test_what_comes_out_cannot_be_changed() -> None:
    assert decrypted(memoryview(encrypt(PLAIN, SECRET)), Key(SECRET)).readonly


@pytest.mark.parametrize("mode", MODES)
def test_memory_grows_by_the_size_of_the_file_and_no_more(mode: str) -> None:
    closed = memoryview(encrypt(bytes(8 << 20), SECRET, mode, block=1 << 20))
    decrypted(closed, Key(SECRET, mode))  # imports
    tracemalloc.start()
    try:
        decrypted(closed, Key(SECRET, mode))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * len(closed)


# --- wrong ------------------------------------------------------------------------------------


def refused(data: bytes, key: Key | None) -> str:
    with pytest.raises(ModelFileError) as caught:
        decrypted(memoryview(data), key)
    text = f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {key!r}"
    if key is not None:
        for shown in (key.secret, key.secret.hex().encode(), repr(key.secret).encode()):
            assert shown not in text.encode()
    return str(caught.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_key_is_told(mode: str) -> None:
    closed = encrypt(PLAIN, SECRET, mode, block=300)
    words = f"cannot be decrypted with this dec_key and {mode}: the key is wrong, or the file is"
    assert words in refused(closed, Key(b"Another secret k", mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_key_is_told_with_the_mode(mode: str) -> None:
    words = refused(encrypt(PLAIN, SECRET, mode), None)
    assert f"the file is encrypted ({mode}); pass its key as dec_key" in words
    assert ("dec_mode" in words) == (mode != "AES-GCM")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", MODES)
def test_a_wrong_mode_is_told_with_the_right_one(mode: str, wrong: str) -> None:
    if mode != wrong:
        words = refused(encrypt(PLAIN, SECRET, mode), Key(SECRET, wrong))
        assert f"encrypted with {mode}, but dec_mode is {wrong!r}; pass dec_mode={mode!r}" in words


@pytest.mark.parametrize(
    ("mode", "length", "words"),
    [
        ("AES-GCM", 15, "dec_key has 15 bytes, AES-GCM wants 16 or 24 or 32"),
        ("AES-CBC", 33, "dec_key has 33 bytes, AES-CBC wants 16 or 24 or 32"),
        ("SM4-CBC", 24, "dec_key has 24 bytes, SM4-CBC wants 16"),
        ("AES-GCM", 64, "bytes.fromhex()"),
    ],
)
def test_a_key_of_the_wrong_length_is_told(mode: str, length: int, words: str) -> None:
    assert words in refused(encrypt(PLAIN, SECRET, mode), Key((b"xyz!" * 17)[:length], mode))


def test_a_plain_file_needs_no_key() -> None:
    net = Net()
    data = encode(net.model(net.call("Neg", net.input("x", (2,)))))
    assert "the file is not encrypted; leave dec_key out" in refused(data, Key(SECRET))


@pytest.mark.parametrize("data", [b"", b"\x01\x02", bytes(255 - b for b in PLAIN)])
def test_what_a_function_encrypted_cannot_be_undone(data: bytes) -> None:
    words = refused(data, Key(SECRET))
    assert "not encrypted by AES-GCM, AES-CBC, SM4-CBC" in words
    assert "function" in words
    assert "build_from_buffer()" in words


@pytest.mark.parametrize("mode", MODES)
def test_a_file_cut_off_anywhere_is_refused(mode: str) -> None:
    closed = encrypt(PLAIN[:200], SECRET, mode, block=100)
    whole = len(closed) // 2
    for length in range(4, len(closed)):
        words = refused(closed[:length], Key(SECRET, mode)) if length != whole else "cut off"
        assert "cut off" in words or "no block begins at" in words


def test_a_block_that_begins_with_something_else_is_refused() -> None:
    closed = encrypt(PLAIN, SECRET) + encrypt(PLAIN, SECRET, "AES-CBC")
    assert f"no block begins at byte {len(encrypt(PLAIN, SECRET))}" in refused(closed, Key(SECRET))
    assert "no block begins at byte" in refused(encrypt(PLAIN, SECRET) + b"tail", Key(SECRET))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (20, 2**32 - 1, "contradict each other"),
        (24, 12, "contradict each other"),
        (24, 2**31, "contradict each other"),
        (44, 2**32 - 1, "contradict each other"),
        (44, 0, "contradict each other"),
    ],
)
def test_lengths_that_contradict_each_other_are_refused(place: int, value: int, words: str) -> None:
    closed = bytearray(encrypt(PLAIN, SECRET))
    struct.pack_into("<I", closed, place, value)
    assert words in refused(bytes(closed), Key(SECRET))


def test_a_block_that_claims_more_than_there_is_is_refused() -> None:
    closed = bytearray(encrypt(PLAIN, SECRET))
    struct.pack_into("<I", closed, 20, 24 + 2**31)
    struct.pack_into("<I", closed, 44, 2**31)
    words = f"the block at byte 0 claims {2**31} bytes, {len(PLAIN)} are left"
    assert words in refused(bytes(closed), Key(SECRET))


def test_blocks_beyond_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decrypt, "MAX_BLOCKS", 10)
    assert opened(encrypt(PLAIN[:100], SECRET, block=10)) == PLAIN[:100]
    assert "more than 10 blocks" in refused(encrypt(PLAIN[:101], SECRET, block=10), Key(SECRET))


def test_a_block_of_cbc_that_is_no_multiple_of_16_is_refused() -> None:
    closed = bytearray(encrypt(PLAIN, SECRET, "AES-CBC"))[:-1]
    size = struct.unpack_from("<I", closed, 28)[0]
    struct.pack_into("<I", closed, 4, 24 + size - 1)
    struct.pack_into("<I", closed, 28, size - 1)
    assert "wanted a multiple of 16" in refused(bytes(closed), Key(SECRET, "AES-CBC"))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(0, 255), st.sampled_from(MODES))
def test_a_changed_byte_ends_in_our_error_or_in_other_bytes(at: int, byte: int, mode: str) -> None:
    closed = bytearray(encrypt(PLAIN, SECRET, mode, block=500))
    changed = closed[at % len(closed)] != byte
    closed[at % len(closed)] = byte
    try:
        found = opened(bytes(closed), mode)
    except ModelFileError:
        return
    spare = 40 <= at % len(closed) % 548 < 44  # the last bytes of the iv, which GCM has no use for
    assert not changed or mode != "AES-GCM" or spare
    assert len(found) <= len(closed)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    words = refused(encrypt(PLAIN, SECRET), Key(SECRET))
    assert "pip install 'mslite[crypto]'" in words


def test_a_cipher_that_openssl_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import ciphers

    def lacking(*_: object) -> None:
        raise UnsupportedAlgorithm("no SM4 here")

    closed = encrypt(PLAIN, SECRET, "SM4-CBC")
    monkeypatch.setattr(ciphers, "Cipher", lacking)
    assert "uses here has no SM4-CBC" in refused(closed, Key(SECRET, "SM4-CBC"))


def test_the_key_is_left_out_of_what_prints_it() -> None:
    assert repr(Key(SECRET, "AES-CBC", 3)) == "Key(mode='AES-CBC', threads=3)"
    assert "secret" not in str(decrypt.Key(SECRET))
