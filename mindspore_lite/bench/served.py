"""The side of `mslite bench --url`: a model on a server, asked over the network."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.http_client import HttpClient
from mindspore_lite.bench.oip import Client, ServedTensor, Url
from mindspore_lite.bench.sides import Desk, Feed, threaded
from mindspore_lite.errors import EngineUnavailableError, InputError, QueueFullError

_CALLERS = 256  # requests of an open loop on their way at once: a thread and a socket each; guess


def client_of(url: Url, token: str = "") -> Client:
    """The client for a URL.

    Raises:
        EngineUnavailableError: It is gRPC, which is not installed.
    """
    if url.scheme == "http":
        return HttpClient(url, token)
    if importlib.util.find_spec("grpc") is None:
        raise EngineUnavailableError(f"{url} needs grpcio: pip install 'mslite[serve]'")
    from mindspore_lite.bench.grpc_client import GrpcClient

    return GrpcClient(url, token)


class Served:
    """A model on a server; tables call it as its URL begins, http or grpc."""

    def __init__(self, url: Url, model: str, token: str = "") -> None:
        """Ask the server what the model takes; without a name, it is the server's only one.

        Raises:
            LiteError: There is no server, no such model, or no access.
        """
        self.name = url.scheme
        self._url = url
        self._client = client_of(url, token)
        try:
            self._model = self._client.describe(model or self._only())
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> str:
        """Its name on the server."""
        return self._model.name

    @property
    def inputs(self) -> tuple[ServedTensor, ...]:
        """As the server describes them."""
        return self._model.inputs

    def probe(self, feed: Feed) -> None:
        """Send one request; that the server is busy is no error.

        Raises:
            LiteError: It does not take the request.
        """
        wanted = {one.name for one in self.inputs}
        if set(feed) != wanted:
            raise InputError(
                f"model {self.model!r} of {self._url} has the inputs {sorted(wanted)}, the request "
                f"has {sorted(feed)}; --model NAME chooses another one"
            )
        with suppress(QueueFullError):  # measured as any other refusal
            self._client.infer(self._client.request(self.model, feed))

    @contextmanager
    def desk(self, load: Load, feed: Feed) -> Iterator[Desk]:
        """Clients keep their connections over the rounds of a load."""
        client, request = self._client, self._client.request(self.model, feed)
        try:
            with threaded(lambda: client.infer(request), _CALLERS) as waiting:

                def drop() -> None:
                    waiting.drop()
                    client.hang_up()

                yield replace(waiting, drop=drop)
        finally:
            client.hang_up()

    def close(self) -> None:
        """Close the connections."""
        self._client.hang_up()

    def _only(self) -> str:
        names = self._client.names()
        if names is None:
            raise InputError(f"{self._url} does not list its models; choose one with --model NAME")
        if len(names) != 1:
            raise InputError(
                f"{self._url} has the models {names}; choose one with --model NAME"
                if names
                else f"{self._url} has no model"
            )
        return names[0]
