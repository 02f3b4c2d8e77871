"""How the gRPC port is opened; apart, so that a server can be described before gRPC is loaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GrpcOptions:
    """How to open the port.

    Attributes:
        host: The address to listen on.
        port: 0 is any.
        reflection: Whether clients may ask which methods there are.
        tls_cert: A PEM file with the certificate chain; "" is without TLS.
        tls_key: Its key; "" if it is in the same file.
        tls_client_ca: A PEM file of authorities; clients need a certificate of one of them.
        logs: Write the access log.
    """

    host: str = "127.0.0.1"
    port: int = 0
    reflection: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    logs: bool = False
