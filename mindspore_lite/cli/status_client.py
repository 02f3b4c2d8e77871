"""Asks a server for its numbers. Redirects are not followed: they would take the token along."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.text import harmless
from mindspore_lite.errors import EngineError, LiteError, WireError
from mindspore_lite.server.access import read_tokens

_PATH = "/dashboard/numbers"
_LIMIT_S = 10.0
_MOST_BYTES = 64 << 20  # of an answer
_PORTS = {"http": 8000, "https": 8000}
_NEEDED = {"ready", "models", "uptime_s", "version", "memory"}


class StatusClient:
    """A server, by its address.

    Raises:
        ValueError: The address, or the file of tokens, makes no sense.
    """

    def __init__(self, url: str, token_file: Path | None, ca_file: Path | None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        wanted = f"status got {url!r}, wanted an address such as http://localhost:8000"
        try:
            host, port = parts.hostname, parts.port
        except ValueError as exc:
            raise ValueError(f"{wanted}: {exc}") from None
        if parts.scheme == "grpc":
            raise ValueError(f"{wanted}; the numbers are on the port of HTTP")
        rest = parts.query or parts.fragment or parts.username
        if parts.scheme not in _PORTS or not host or rest or not url.isascii() or " " in url:
            raise ValueError(wanted)
        self._host, self._port = host, port or _PORTS[parts.scheme]
        self._base = parts.path.rstrip("/").removesuffix("/dashboard")
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{parts.scheme}://{shown}:{self._port}{self._base}"
        token = read_tokens(token_file)[0] if token_file is not None else ""
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)

    def numbers(self) -> dict[str, Any]:
        """All numbers at this moment.

        Raises:
            LiteError: The server cannot be reached, wants a token, or is no mslite server.
        """
        code, body = self._get(_PATH)
        if code in (401, 403):
            raise EngineError(f"{self.url} wants a token, give --token-file FILE: {_said(body)}")
        if code == 404:
            raise self._other()
        if code != 200:
            raise EngineError(f"{self.url} answers {code}: {_said(body)}")
        try:
            found = read_json(body)
        except ValueError as exc:
            raise self._other() from exc
        if not isinstance(found, dict) or not found.keys() >= _NEEDED:
            raise self._other()
        return found

    def _other(self) -> LiteError:
        """What to say of a server that has no numbers."""
        name = ""
        try:
            found = read_json(self._get("/v2")[1])
            name = f"; it is {found['name']} {found['version']}"
        except (LiteError, ValueError, KeyError, TypeError):
            pass  # it speaks another protocol
        return EngineError(f"{self.url} is no mslite server that has numbers{harmless(name)}")

    def _get(self, path: str) -> tuple[int, bytes]:
        address = (self._host, self._port)
        connection = (
            http.client.HTTPConnection(*address, timeout=_LIMIT_S)
            if self._tls is None
            else http.client.HTTPSConnection(*address, timeout=_LIMIT_S, context=self._tls)
        )
        try:
            connection.request("GET", self._base + path, headers=self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES)
        except TimeoutError as exc:
            raise WireError(f"{self.url} did not answer within {_LIMIT_S:g} s") from exc
        except ssl.SSLError as exc:
            raise WireError(
                f"no TLS with {self.url}: {exc.reason or exc}; give --ca-file FILE, or http://"
            ) from exc
        except http.client.HTTPException as exc:
            raise WireError(f"{self.url} does not speak HTTP; is this the port of gRPC?") from exc
        except OSError as exc:
            raise WireError(
                f"there is no server at {self.url} ({exc.strerror or exc}); start one, such as "
                "mslite serve MODEL"
            ) from exc
        finally:
            connection.close()


def _said(body: bytes) -> str:
    try:
        return str(read_json(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
