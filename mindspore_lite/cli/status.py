"""`mslite status`: what a server is doing, in a terminal, a pipe, or as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mindspore_lite.cli.console import fail, say
from mindspore_lite.cli.status_client import StatusClient
from mindspore_lite.cli.status_text import lines, screen
from mindspore_lite.core import checks
from mindspore_lite.errors import LiteError


def status(
    url: str,
    *,
    token_file: Path | None = None,
    ca_file: Path | None = None,
    watch: Annotated[bool | None, Parameter(negative="--once")] = None,
    every_s: float = 1.0,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Show what a server is doing: its models, their load, errors, latencies, queues and workers.

    Parameters
    ----------
    url
        The server's HTTP address, such as http://localhost:8000.
    token_file
        A file whose first token is sent to the server.
    ca_file
        A PEM file of authorities that may have signed the server's certificate.
    watch
        Show it anew until Ctrl-C, or once; without either flag, anew on a terminal.
    every_s
        Seconds between two looks.
    as_json
        Print the numbers as JSON, one line for each look.
    """
    if checks.seconds("every_s", every_s) <= 0:
        fail(f"--every-s got {every_s:g}, wanted a number above 0", code=2)
    client = StatusClient(url, token_file, ca_file)
    is_live = sys.stdout.isatty() and not as_json
    if watch is None:
        watch = is_live
    if not watch:
        found = client.numbers()
        _print(client.url, found, as_json)
        raise SystemExit(0 if found["ready"] else 1)
    if is_live:
        _live(client, every_s)
    while True:
        _print(client.url, client.numbers(), as_json)
        sys.stdout.flush()
        time.sleep(every_s)


def _print(url: str, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say(json.dumps(found))
        return
    for line in lines(url, found):
        say(line)


def _live(client: StatusClient, every_s: float) -> None:
    """A table that follows the server, also while it cannot be reached."""
    from rich.console import Console
    from rich.live import Live

    last, lost = client.numbers(), ""  # an error of the first look ends the command
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(client.url, last, lost), refresh=True)
            time.sleep(every_s)
            try:
                last, lost = client.numbers(), ""
            except LiteError as exc:
                lost = str(exc)
