"""Who may do what: the one gate that every request of HTTP and gRPC passes before anything else.

    gate.check(Need.USE, authorization)     raises RequestError unless the caller may

It denies by default: a route that declares nothing needs a token, and so does a path that leads
nowhere, so that strangers learn nothing about either. Tokens are read from files, one a line, and
compared in constant time, as digests.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from mindspore_lite.core import checks
from mindspore_lite.core.files import open_file
from mindspore_lite.server.errors import Kind, RequestError

_SCHEME = "bearer "
_TOKEN = re.compile(r"[\x21-\x7e]+")
_LEAST_CHARACTERS = 16  # of a token; shorter ones can be guessed
_MOST_BYTES = 1 << 20  # of a file of tokens


class Need(Enum):
    """What a request needs."""

    OPEN = "anybody may"  # probes of an orchestrator
    USE = "a client's token"
    ADMIN = "the administrator's token"


class Gate:
    """Checks tokens. Without client tokens everybody may use; without admin tokens nobody may
    administer.

    Raises:
        TypeError: The tokens are no list of texts; a single text would be a list of its letters.
        ValueError: One is too short, or cannot be sent in a header.
    """

    def __init__(self, tokens: Sequence[str] = (), admin_tokens: Sequence[str] = ()) -> None:
        self._tokens = [_digest(token) for token in _checked("tokens", tokens)]
        self._admin = [_digest(token) for token in _checked("admin_tokens", admin_tokens)]

    @property
    def is_open(self) -> bool:
        """Whether models can be used without a token."""
        return not self._tokens

    def check(self, need: Need, authorization: str | None) -> None:
        """Let a request pass.

        Args:
            need: What it needs.
            authorization: The header of that name; None if there is none.

        Raises:
            RequestError: UNAUTHENTICATED without a token that we know, FORBIDDEN with one that
                does not suffice.
        """
        if need is Need.OPEN or (need is Need.USE and not self._tokens):
            return
        digest = _given(authorization)
        is_admin, is_client = _among(self._admin, digest), _among(self._tokens, digest)
        if is_admin or (is_client and need is Need.USE):
            return
        if need is Need.ADMIN and not self._admin:
            raise RequestError(
                Kind.FORBIDDEN, "administration is off; start the server with --admin-token-file"
            )
        if is_client:
            raise RequestError(Kind.FORBIDDEN, "this takes the administrator's token")
        raise RequestError(
            Kind.UNAUTHENTICATED, "a token is needed; send the header Authorization: Bearer TOKEN"
        )


def read_tokens(path: Path) -> list[str]:
    """The tokens of a file, one a line; empty lines and those that begin with # do not count.

    Raises:
        ValueError: There is none, or one is too short, or not printable ASCII.
        ModelFileError: The file cannot be read.
    """
    file = open_file(path)
    if file.size > _MOST_BYTES:
        raise ValueError(f"the file of tokens has {file.size} bytes, at most {_MOST_BYTES} go")
    try:
        text = bytes(file.load()).decode("utf-8-sig")  # some editors put a mark in front
    except UnicodeDecodeError:
        raise ValueError("the file of tokens is no text; put one on each line") from None
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise ValueError("the file of tokens holds none; put one on each line")
    return _checked("tokens", found)


def _checked(name: str, tokens: object) -> list[str]:
    found = checks.instances(name, tokens, str)
    for number, token in enumerate(found, start=1):
        if len(token) < _LEAST_CHARACTERS or not _TOKEN.fullmatch(token):
            raise ValueError(
                f"token {number} of {name} must be {_LEAST_CHARACTERS} or more printable ASCII "
                "characters without spaces; make one with: openssl rand -hex 32"
            )
    return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _given(authorization: str | None) -> bytes:
    """The digest of the token that a caller sent; of none, bytes that no digest equals."""
    if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return b""
    return _digest(authorization[len(_SCHEME) :].strip())


def _among(known: Sequence[bytes], digest: bytes) -> bool:
    found = False
    for one in known:  # all of them, so that the time tells nothing
        found |= hmac.compare_digest(one, digest)
    return found
