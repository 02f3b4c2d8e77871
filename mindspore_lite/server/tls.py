"""TLS for the server's ports."""

from __future__ import annotations

import ssl
from pathlib import Path

from mindspore_lite.core.files import open_file
from mindspore_lite.errors import ModelFileError


def server_context(cert: str, key: str = "", client_ca: str = "") -> ssl.SSLContext | None:
    """What a port needs for TLS 1.2 and later; None without a certificate.

    With authorities in `client_ca`, clients must show a certificate of one of them.

    Raises:
        ValueError: The files do not fit, or are missing.
    """
    if not cert:
        if key or client_ca:
            raise ValueError("TLS needs a certificate; give tls_cert as well")
        return None
    _check_readable(tls_cert=cert, tls_key=key, tls_client_ca=client_ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key or None)
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (ssl.SSLError, OSError) as exc:
        raise ValueError(
            f"the TLS files cannot be used: {getattr(exc, 'reason', None) or exc}; wanted PEM files"
            " with a certificate and its key"
        ) from exc
    return context


def _check_readable(**paths: str) -> None:
    """Name the file that is missing: the library does not."""
    for name, path in paths.items():
        try:
            if path:
                open_file(Path(path))
        except ModelFileError as exc:
            raise ValueError(f"{name}: {exc}; wanted a PEM file") from exc
