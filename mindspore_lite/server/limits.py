"""Every limit of the server, in one record. All are settings; what crosses one is refused before
memory is taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What clients may ask for. Numbers are guesses unless they say where they come from.

    Attributes:
        body_bytes: Of a request; also of what a compressed one inflates to.
        json_bytes: Of a JSON text: 150,528 floats in 1.5 MB hold the interpreter for 7 ms.
        head_bytes: Of request line and headers together.
        headers: How many a request may have.
        url_bytes: Of the request target.
        json_depth: Of arrays and objects in each other.
        chunks: Of a chunked body; as many as Triton takes.
        weights_bytes: Of a file of new weights for a model; it goes to the disk.
        inflate_ratio: Bytes that one compressed byte may become, beyond the first MiB.
        id_bytes: Of a request's id.
        connections: Open at once.
        flight_bytes: Bodies of all connections together, before they are answered.
        pipelined_bytes: Of one connection that wait until the request before is answered.
        head_s: Within which a head must be complete, from its first byte on.
        idle_s: For which a connection may stay open between requests.
        body_rate: Bytes a second that a client must send at least, after `body_grace_s`, and take.
        body_grace_s: For which a client may be slow.
        send_s: For which a client may take less of an answer.
        event_streams: Open at once, for dashboards.
        stream_bytes: That a dashboard may leave unread, before it is dropped.
        grpc_calls: Of models at once over gRPC; each holds a thread.
        grpc_streams: Open at once over gRPC; each holds two threads.
        grpc_fields: Of a gRPC request at its top: names, inputs, outputs, parameters.
        grpc_receive_s: Within which the message of a call must be there.
    """

    body_bytes: int = 64 * MIB
    json_bytes: int = 8 * MIB
    head_bytes: int = 16 * 1024
    headers: int = 100
    url_bytes: int = 8 * 1024
    json_depth: int = 32
    chunks: int = 65_536
    weights_bytes: int = 2048 * MIB
    inflate_ratio: int = 100
    id_bytes: int = 1024
    connections: int = 4096
    flight_bytes: int = 512 * MIB
    pipelined_bytes: int = 64 * 1024
    head_s: float = 10.0
    idle_s: float = 75.0
    body_rate: int = 16 * 1024
    body_grace_s: float = 10.0
    send_s: float = 30.0
    event_streams: int = 32
    stream_bytes: int = MIB
    grpc_calls: int = 128
    grpc_streams: int = 32
    grpc_fields: int = 4096
    grpc_receive_s: float = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"the limit {one.name} must be a number above 0, got {value!r}")
            if isinstance(one.default, int) and not isinstance(value, int):
                raise ValueError(f"the limit {one.name} must be a whole number, got {value!r}")


def limits_of(values: Mapping[str, Any]) -> Limits:
    """The limits, with other values for some of them.

    Raises:
        ValueError: There is no such limit, or a value makes no sense.
    """
    known = [one.name for one in fields(Limits)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(f"there are no limits {unknown}; there are {', '.join(known)}")
    return Limits(**values)
