"""The gate of the gRPC port: every call passes it before it is routed, known or not.

A call that is refused is answered at once, on a thread of its own kind and without its message,
which is never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import grpc

from mindspore_lite.server.access import Need
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Answer, Kind, RequestError, answer_to
from mindspore_lite.server.grpc.threads import Threads
from mindspore_lite.server.grpc.watch import Watch

Continuation = Callable[[Any], Any]
_MOST_PATH = 200  # characters of a method that is not ours


def abort(context: Any, answer: Answer) -> NoReturn:
    """End a call with an error."""
    context.abort(grpc.StatusCode[answer.kind.code], answer.text)
    raise AssertionError  # abort raises


class GateInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Asks the server's one gate, then whether there is a thread for the call."""

    def __init__(
        self,
        core: Core,
        needs: Mapping[str, Need],
        pools: Mapping[str, Threads],
        refusing: Threads,
        *,
        logs: bool = False,
    ) -> None:
        """Guard a port.

        Args:
            core: The server.
            needs: What each method needs, by its path; one that is missing needs a token.
            pools: Whose threads a method runs on, where they are limited.
            refusing: Whose threads refuse.
            logs: Whether there is an access log.
        """
        self._core = core
        self._needs = needs
        self._pools = pools
        self._refusing = refusing
        self._logs = logs

    def intercept_service(self, continuation: Continuation, details: Any) -> Any:
        """What answers a call: its own handler, or one that refuses."""
        method = details.method
        try:
            need = self._needs.get(method, Need.USE)
            self._core.gate.check(need, _authorization(details.invocation_metadata))
            handler = continuation(details)
            if handler is None:
                raise RequestError(Kind.UNSUPPORTED, f"this server does not offer {method[:200]}")
            pool = self._pools.get(method)
            if pool is not None and pool.is_full:
                raise RequestError(
                    Kind.UNAVAILABLE, f"{pool.size} calls are under way, and no more go; try again"
                )
        except RequestError as exc:
            return self._refuses(method, answer_to(exc))
        return handler

    def _refuses(self, method: str, answer: Answer) -> Any:
        watch = Watch(self._core, method[:_MOST_PATH], logs=self._logs)

        def refuse(requests: Any, context: Any) -> bytes:
            watch.refused(context, answer)
            abort(context, answer)

        refuse.experimental_thread_pool = self._refusing  # type: ignore[attr-defined]
        return grpc.stream_unary_rpc_method_handler(refuse)


def _authorization(metadata: Any) -> str | None:
    """The header of that name; two of them are none."""
    found = [value for key, value in metadata or () if key == "authorization"]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None
