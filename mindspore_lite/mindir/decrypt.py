"""Decrypts model files.

A file is a chain of blocks, each at most 64 MiB of the model, encrypted on their own:

    magic, [tag of 16 bytes], length of the rest, length of iv, iv, length of cipher, cipher

with 32-bit little-endian numbers; only AES-GCM has the tag. The oldest files have the magic of
AES-GCM whatever their mode, and no tag in either. So tags can be cut off a file, which then looks
like an old one: it is read with a warning, or refused where Key.authentic asks for tags.

Nothing of a key is written anywhere or shown in an error.
"""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mindspore_lite.core import checks
from mindspore_lite.core.budget import SECTION
from mindspore_lite.core.extras import pip_install
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.scan import Data, fields

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")
MAGIC = dict(zip(MODES, (0x7F3A5ED8, 0x7F3A5ED9, 0x7F3A5EDA), strict=True))
_STARTS = {struct.pack("<I", magic): mode for mode, magic in MAGIC.items()}
KEY_BYTES = {"AES-GCM": (16, 24, 32), "AES-CBC": (16, 24, 32), "SM4-CBC": (16,)}
MAX_BLOCKS = 100_000  # guess: each weight of a split model has its own, some ten thousand at most
_GRAPH = 7  # the field that every MindIR and ONNX file has
IV_BYTES, NONCE_BYTES = 16, 12  # of the stored iv, GCM uses the first 12
_TAG, _IV, _UNIT = 16, IV_BYTES, 16  # bytes


@dataclass(frozen=True)
class Key:
    """What decrypts a model; the key itself is left out of whatever prints this."""

    secret: bytes = field(repr=False)
    mode: str = MODES[0]
    threads: int = 0  # 0: as many as there are cores to use
    authentic: bool = field(default=False, repr=False)  # refuse what has no tags


def checked_key(key: object, mode: object, parallel: object) -> Key | None:
    """The key that a caller gives; None where there is none.

    Raises:
        TypeError, ValueError: It, its mode or its number of threads cannot be.
    """
    if not key:
        return None
    secret = checks.instance("dec_key", key, bytes)
    if not checks.string("dec_mode", mode):
        raise ValueError("dec_mode must not be empty string")
    how = checks.one_of(*MODES)("dec_mode", mode)
    threads = checks.integer("dec_num_parallel", parallel)
    if not 0 <= threads <= 64:
        raise ValueError(f"dec_num_parallel must be 0 to 64, but got {threads}.")
    return Key(secret, how, threads)


@dataclass(frozen=True)
class _Block:
    start: int  # of the cipher in the file
    size: int
    iv: bytes
    tag: bytes | None
    to: int = 0  # where its plaintext begins
    plain: int = 0  # how long that is


def encrypted_by(data: Data) -> str | None:
    """The mode in which a file is encrypted, None for a plain one."""
    return _STARTS.get(bytes(data[:4]))


def decrypted(data: memoryview, key: Key | None) -> memoryview:
    """The model inside an encrypted file; takes as much memory as the file."""
    mode = encrypted_by(data)
    if mode is None:
        raise _not_encrypted(data)
    if key is None:
        more = "" if mode == MODES[0] else f" and dec_mode={mode!r}"
        raise ModelFileError(f"the file is encrypted ({mode}); pass its key as dec_key{more}")
    tagless = mode == MODES[0] and _is_tagless(data)
    if key.mode != mode and not (tagless and key.mode == "AES-CBC"):
        raise ModelFileError(
            f"the file is encrypted with {mode}, but dec_mode is {key.mode!r}; "
            f"pass dec_mode={mode!r}"
        )
    if len(key.secret) not in KEY_BYTES[key.mode]:
        wanted = " or ".join(str(n) for n in KEY_BYTES[key.mode])
        raise ModelFileError(
            f"dec_key has {len(key.secret)} bytes, {key.mode} wants {wanted}; "
            "a key written in hexadecimal goes through bytes.fromhex() first"
        )
    _check_tags(key, mode == MODES[0] and not tagless)
    check_library()
    blocks = list(_placed(data, list(_blocks(data, tagless)), key))
    room = bytearray(blocks[-1].to + blocks[-1].plain + _UNIT)  # ciphers ask for a spare unit
    out = memoryview(room)
    threads = min(key.threads or len(os.sched_getaffinity(0)), len(blocks))
    if threads == 1:
        for block in blocks:
            _decrypt(data, block, key, out)
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda block: _decrypt(data, block, key, out), blocks))
    return out[: len(room) - _UNIT].toreadonly()


def _check_tags(key: Key, has_tags: bool) -> None:
    """Refuse a file without tags, or warn of one that should have some."""
    if has_tags:
        return
    if key.authentic:
        raise not_authentic("the file has no tags, without which anybody could have changed it")
    if key.mode == MODES[0]:
        warnings.warn(
            "the encrypted file has no tags, as the oldest ones have none: anybody could have "
            f"changed it, or cut its tags off; [{SECTION}] require_authenticated=on refuses such "
            "files",
            RuntimeWarning,
            stacklevel=3,
        )


def not_authentic(why: str) -> ModelFileError:
    """The error of a model that is not shown to be what the owner of the key has written."""
    return ModelFileError(
        f"{why}, and [{SECTION}] require_authenticated is on; encrypt the model with AES-GCM by a "
        "current converter, weights included, or set it to off"
    )


def _is_tagless(data: memoryview) -> bool:
    """Whether the first block is of the oldest form: its lengths fit without a tag before them."""
    if len(data) < 32:
        return False
    length, iv = struct.unpack_from("<II", data, 4)
    (cipher,) = struct.unpack_from("<I", data, 28)
    return bool(iv == _IV and length == 8 + _IV + cipher)


def _blocks(data: memoryview, tagless: bool) -> Iterator[_Block]:
    at, count, first = 0, 0, bytes(data[:4])
    with_tag = _STARTS[first] == MODES[0] and not tagless
    head = 4 + (_TAG if with_tag else 0) + 4 + 4 + _IV + 4
    while at < len(data):
        if bytes(data[at : at + 4]) != first:
            raise ModelFileError(f"the encrypted file is damaged: no block begins at byte {at}")
        if at + head > len(data):
            raise ModelFileError(f"the encrypted file is cut off in the block at byte {at}")
        tag = bytes(data[at + 4 : at + 4 + _TAG]) if with_tag else None
        place = at + 4 + (_TAG if with_tag else 0)
        length, iv_length = struct.unpack_from("<II", data, place)
        iv = bytes(data[place + 8 : place + 8 + _IV])
        (size,) = struct.unpack_from("<I", data, place + 8 + _IV)
        if iv_length != _IV or length != 8 + _IV + size:
            raise ModelFileError(
                f"the encrypted file is damaged: the lengths in the block at byte {at} contradict "
                "each other"
            )
        if at + head + size > len(data):
            raise ModelFileError(
                f"the encrypted file is cut off: the block at byte {at} claims {size} bytes, "
                f"{len(data) - at - head} are left"
            )
        yield _Block(at + head, size, iv, tag)
        at, count = at + head + size, count + 1
        if count > MAX_BLOCKS:
            raise ModelFileError(f"the encrypted file has more than {MAX_BLOCKS} blocks")


def _placed(data: memoryview, blocks: list[_Block], key: Key) -> Iterator[_Block]:
    """Each block with the place of its plaintext.

    CBC fills the last unit up, and says in it by how much: that one is decrypted here.
    """
    to = 0
    for block in blocks:
        plain = block.size
        if key.mode.endswith("CBC"):
            plain = block.size - _padding(data, block, key)
        yield _Block(block.start, block.size, block.iv, block.tag, to, plain)
        to += plain


def _padding(data: memoryview, block: _Block, key: Key) -> int:
    if block.size == 0 or block.size % _UNIT:
        raise ModelFileError(
            f"the encrypted file is damaged: a block has {block.size} bytes, wanted a multiple "
            f"of {_UNIT}"
        )
    end = block.start + block.size  # what stands before a unit in the file is its iv
    iv = block.iv if block.size == _UNIT else bytes(data[end - 2 * _UNIT : end - _UNIT])
    last = _decryptor(key, iv, None).update(data[end - _UNIT : end])
    count = last[-1]
    if not 1 <= count <= _UNIT or last[-count:] != bytes([count]) * count:
        raise _wrong_key(key)
    return count


def _decrypt(data: memoryview, block: _Block, key: Key, out: memoryview) -> None:
    """Put the plaintext of a block into its place, and touch nothing around it."""
    end = block.start + block.size
    body = block.size - (_UNIT if key.mode.endswith("CBC") else 0)
    decryptor = _decryptor(key, block.iv, block.tag)
    decryptor.update_into(data[block.start : block.start + body], out[block.to :])
    if body < block.size:  # the last unit of CBC is longer than its place
        last = decryptor.update(data[block.start + body : end])
        out[block.to + body : block.to + block.plain] = last[: block.plain - body]
    if block.tag is not None:
        from cryptography.exceptions import InvalidTag

        try:
            decryptor.finalize()
        except InvalidTag:
            raise _wrong_key(key) from None


def _decryptor(key: Key, iv: bytes, tag: bytes | None) -> CipherContext:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    algorithm = algorithms.SM4 if key.mode == "SM4-CBC" else algorithms.AES
    if key.mode != MODES[0]:
        mode: Any = modes.CBC(iv)
    elif tag is not None:
        mode = modes.GCM(iv[:NONCE_BYTES], tag)
    else:  # without a tag, what remains of GCM is a counter that begins at 2
        mode = modes.CTR(iv[:NONCE_BYTES] + b"\0\0\0\2")
    try:
        return Cipher(algorithm(key.secret), mode).decryptor()
    except UnsupportedAlgorithm as exc:
        raise lacking(key.mode) from exc


def lacking(mode: str) -> ModelFileError:
    """The error of a cipher that is not there."""
    return ModelFileError(f"the OpenSSL that the package cryptography uses here has no {mode}")


def _not_encrypted(data: memoryview) -> ModelFileError:
    try:
        plain = any(f.number == _GRAPH and f.is_bytes for f in fields(data, 0, len(data)))
    except ModelFileError:
        plain = False
    if plain:
        return ModelFileError("dec_key was given, but the file is not encrypted; leave dec_key out")
    return ModelFileError(
        f"dec_key was given, but the file is not encrypted by {', '.join(MODES)}. What a function "
        "of your own did to it as enc_mode cannot be undone here: decrypt it with the function's "
        "counterpart and pass the bytes to build_from_buffer()"
    )


def _wrong_key(key: Key) -> ModelFileError:
    return ModelFileError(
        f"the file cannot be decrypted with this dec_key and {key.mode}: the key is wrong, or the "
        "file is damaged"
    )


def check_library() -> None:
    """Raise the error that names the extra, where it is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError as exc:
        raise ModelFileError(
            f"encrypted models need the package cryptography: {pip_install('crypto')}"
        ) from exc
