"""`mslite serve`: models over HTTP, until a signal ends it."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mindspore_lite.cli.console import complain, fail
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.context import Context
from mindspore_lite.core import checks, jail
from mindspore_lite.core.byte_size import size_of
from mindspore_lite.core.environment import variables
from mindspore_lite.errors import ClosedError
from mindspore_lite.server.allocator import limit_arenas
from mindspore_lite.server.server import GRACE_S, Server

SERVICE_NAME = "INFERENCE_SERVICE_NAME"
_MOST_FILES = 65_536
_FLAG = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """How to serve.

    Attributes
    ----------
    demo
        Serve the embedded model of handwritten digits, as `digits`.
    model_name
        The name to serve the model under, where there is one.
    host
        The address to listen on; others than the loopback's are open to the network.
    http_port
        The port of HTTP; 0 is any.
    grpc_port
        The port of gRPC; 0 is any. It is the next after that of HTTP if it is not given.
    grpc
        Serve gRPC as well.
    workers
        How many requests of a model run at the same time; 0 decides by the machine.
    threads
        Number of threads of each; 0 decides by the machine.
    target
        Where the models run.
    config
        A configuration file with settings for the models.
    sandbox
        Build the models in a jailed process, as is done on the CPU unless it is switched off.
    control
        Which models are loaded: "none" all at the start, "explicit" those of --load-model and what
        administrators ask for, "poll" all, and what changes.
    load_model
        A model to load at the start with --control explicit; "*" is all; may be repeated.
    poll_s
        Look for changed files every so many seconds; this is --control poll.
    token_file
        A file of tokens, one a line: clients must send one of them.
    admin_token_file
        The same for administrators.
    tls_cert
        A PEM file with the certificate chain, for HTTPS.
    tls_key
        Its key, if it is in another file.
    tls_client_ca
        A PEM file of authorities: clients need a certificate of one of them.
    allow_host
        A name that requests may be for, in the Host header; may be repeated.
    allow_origin
        The origin of pages in browsers that may use the server; may be repeated.
    limit
        Another limit, as NAME=NUMBER, such as body_bytes=1000000; may be repeated.
    access_log
        Write a line of JSON to stderr for each request.
    grpc_reflection
        Let clients ask which gRPC methods there are.
    allow_client_shm
        Let clients on this machine pass tensors in shared memory.
    shm_owner
        The number of a user whose shared memory counts, beside the server's own; may be repeated.
    isolation
        Where models run: "thread" in this process, "process" each in one of its own, which is
        started again when it ends; NAME=process for one model; may be repeated.
    cache
        Keep answers of a model for equal requests, in so many bytes: NAME=64M; may be repeated.
    memory_quota
        Bytes of memory, such as 4G: beyond them, idle models that allow it are closed.
    retry
        Compute requests once more that were lost with such a process.
    metrics_port
        A port of its own for /metrics, without a token; 0 is any.
    share
        NAME=NUMBER: how much of the cores a model may use next to others that are busy, compared
        with their shares, which are 1 unless they are given; may be repeated.
    grace_s
        For how long requests under way may go on after SIGTERM; a second signal ends at once.
    """

    demo: Annotated[bool, _FLAG] = False
    model_name: str = ""
    host: str = "127.0.0.1"
    http_port: int = 8000
    grpc_port: int | None = None
    grpc: bool = True
    workers: int = 0
    threads: int = 0
    target: Literal["cpu", "gpu", "ascend"] = "cpu"
    config: Path | None = None
    sandbox: bool | None = None
    control: Literal["none", "explicit", "poll"] = "none"
    load_model: tuple[str, ...] = ()
    poll_s: float = 0.0
    token_file: Path | None = None
    admin_token_file: Path | None = None
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    access_log: Annotated[bool, _FLAG] = False
    grpc_reflection: Annotated[bool, _FLAG] = False
    allow_client_shm: Annotated[bool, _FLAG] = False
    shm_owner: tuple[int, ...] = ()
    isolation: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()
    memory_quota: str = "0"
    retry: Annotated[bool, _FLAG] = False
    metrics_port: int | None = None
    share: tuple[str, ...] = ()
    grace_s: float = GRACE_S


def serve(*models: str, options: Options | None = None) -> None:
    """Serve models with the Open Inference Protocol (KServe v2, Triton's extensions).

    Parameters
    ----------
    models
        Model files, each served under its name without the suffix; or NAME=FILE; or a folder: a
        model repository in Triton's layout, model files, or both.
    options
        How to serve.
    """
    options = options or Options()
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    if options.access_log:
        _log_access()
    if options.demo:
        models = (*models, f"digits={DIGITS_MODEL}")
    if not models:
        fail("serve wants models, or --demo (see mslite serve --help)", code=2)
    checks.seconds("grace_s", options.grace_s)  # now, not when the server is to end
    limit_arenas()
    server = _server(models, options)
    _raise_file_limit()
    ending = _caught_signals(server)
    _warn_of_network(server, options)
    if options.control == "explicit" and options.admin_token_file is None:
        complain("nobody can load models while it runs: that takes --admin-token-file")
    try:
        server.start()
    except ClosedError:
        if not ending.is_set():
            raise
    else:
        print(_ready_line(server, options), flush=True)  # noqa: T201
        ending.wait()
    if not server.drain(options.grace_s):
        complain(f"some requests were not answered within {options.grace_s:g} s, and were cut off")
    if server.is_loading:  # its thread must not meet an interpreter that ends
        sys.stdout.flush()
        os._exit(0)


def _server(models: tuple[str, ...], options: Options) -> Server:
    from mindspore_lite.server.access import read_tokens  # when it is sure to be needed

    given = _given(_one_named(models, options.model_name))
    return Server(
        given,
        host=options.host,
        http_port=options.http_port,
        grpc_port=options.grpc_port,
        grpc=options.grpc,
        context=_context(options),
        tokens=read_tokens(options.token_file) if options.token_file else (),
        admin_tokens=read_tokens(options.admin_token_file) if options.admin_token_file else (),
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        tls_client_ca=options.tls_client_ca,
        allow_hosts=options.allow_host or None,
        allow_origins=options.allow_origin,
        limits=_limits(options.limit),
        access_log=options.access_log,
        grpc_reflection=options.grpc_reflection,
        allow_client_shm=options.allow_client_shm,
        shm_owners=options.shm_owner,
        isolation=_isolation(options.isolation),
        cache=_cache(options.cache),
        memory_quota=_quota(options.memory_quota),
        retry=options.retry,
        metrics_port=options.metrics_port,
        control="poll" if options.poll_s and options.control == "none" else options.control,
        load_models=options.load_model,
        poll_s=options.poll_s,
        sandbox=_sandbox(options),
        shares=_shares(options.share),
    )


def _given(models: tuple[str, ...]) -> list[tuple[str, str]]:
    """NAME=FILE, FILE, or FOLDER, whose models have names of their own."""
    found: list[tuple[str, str]] = []
    for text in models:
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text):
            name, path = "", text
        if name and name in dict(found):
            fail(f"two models are called {name!r}; give one as NAME={path}", code=2)
        found.append((name, path))
    return found


def _one_named(models: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The one model under the name that --model-name, or KServe, gives it."""
    if name and len(models) != 1:
        fail(f"--model-name is for one model, got {len(models)}; give them as NAME=FILE", code=2)
    if not name and len(models) == 1:
        name = _name_of_mount(Path(models[0]))
    return (f"{name}={models[0]}",) if name else models


def _name_of_mount(path: Path) -> str:
    """What KServe calls the model of a folder that holds one, right in it and not in a folder.

    Its clients ask for that name, whatever the file is called.
    """
    name = variables.get(SERVICE_NAME, "")
    if not name or not path.is_dir():
        return ""
    from mindspore_lite.server.repository.read import read_repository

    entries = list(read_repository(path).values())
    root = path.absolute()
    mains = [main for one in entries for main in one.versions.values()]
    is_bare = all(root in (main.parent, main.parent.parent) for main in mains)
    return name if len(entries) == 1 and is_bare else ""


def _isolation(texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=HOW for a model, or HOW for all others, which are named ""."""
    found = [text.rpartition("=") for text in texts]
    by_name = {name: how for name, equals, how in found if equals}
    usual = [how for _, equals, how in found if not equals]
    return {"": usual[-1], **by_name} if usual else by_name


def _cache(texts: tuple[str, ...]) -> dict[str, int]:
    """NAME=BYTES, with K, M or G behind it if need be."""
    found = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        try:
            found[name] = size_of(size)
        except ValueError:
            fail(f"--cache {text}: wanted NAME=BYTES, such as digits=64M", code=2)
    return found


def _quota(text: str) -> int:
    try:
        return size_of(text)
    except ValueError as exc:
        fail(f"--memory-quota is {exc}", code=2)


def _sandbox(options: Options) -> bool:
    """On, unless it cannot be had where the user wants the models to run, which is said."""
    if options.sandbox is None and options.target != "cpu":
        complain(f"models are built without a sandbox, for there is none on {options.target}")
        return False
    if options.sandbox is False:
        return False
    if lacks := jail.missing():
        complain(f"models are built in a sandbox that is not whole: {lacks}")
    return True


def _shares(texts: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            fail(f"--share {text}: wanted a number, such as {name or 'NAME'}=2", code=2)
    return found


def _context(options: Options) -> Context:
    context = Context()
    context.target = [options.target]
    context.parallel.workers_num, context.cpu.thread_num = options.workers, options.threads
    if options.config is not None:
        context.parallel.config_path = str(options.config)
    return context


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    from mindspore_lite.server.limits import Limits

    known = {one.name: one.type for one in fields(Limits)}
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            fail(f"there is no limit {name!r}; there are {', '.join(known)}", code=2)
        try:
            found[name] = int(value) if known[name] == "int" else float(value)
        except ValueError:
            fail(f"--limit {text}: wanted a number, such as {name}=100", code=2)
    return found


def _warn_of_network(server: Server, options: Options) -> None:
    """Say what it means that an address is open to the network."""
    if server.is_local:
        return
    missing = [
        text
        for text, given in (
            ("anybody who reaches it can use the models (--token-file)", options.token_file),
            ("what is sent can be read on the way (--tls-cert)", options.tls_cert),
        )
        if not given
    ]
    if options.metrics_port is not None and options.token_file:
        missing.append("anybody who reaches it can read the metrics (--metrics-port)")
    if missing:
        complain(f"the server is open to the network: {'; '.join(missing)}")


def _ready_line(server: Server, options: Options) -> str:
    shown = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "https" if options.tls_cert else "http"
    grpc = f"grpc://{shown}:{server.grpc_port} " if server.grpc_port else ""
    metrics = f" {scheme}://{shown}:{server.metrics_port}/metrics" if server.metrics_port else ""
    state = "ready" if server.is_ready else "not ready"  # a folder's model may have failed
    return f"{state}: {grpc}{scheme}://{shown}:{server.http_port}{metrics}"


def _raise_file_limit() -> None:
    """Every connection takes a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _caught_signals(server: Server) -> threading.Event:
    """Set by the first signal that asks the process to end; a second one ends it, loaded or not."""
    read, write = socket.socketpair()
    write.setblocking(False)
    signal.set_wakeup_fd(write.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    ending = threading.Event()

    def watch() -> None:
        read.recv(1)
        ending.set()
        server.stop_loading()
        read.recv(1)
        os._exit(1)

    threading.Thread(target=watch, name="mslite-signals", daemon=True).start()
    return ending


def _log_access() -> None:
    log = logging.getLogger("mindspore_lite.server.access")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
