"""Model repositories made by code: models whose answers say which version they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from support.onnx_graphs import F32, model, node
from support.served import Reply, Wire, floats, post

import mindspore_lite as mslite
from mindspore_lite.server.server import Server

ADMIN = "the administrator's own secret".replace(" ", "-")
AUTHORISED = f"Authorization: Bearer {ADMIN}"
ROW = 8  # values of a request


def scaled(path: Path, factor: float, rows: int | str = "n") -> Path:
    """A model that answers IN times a factor, as OUT; its weight is called `factor`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = model(
        [node("Mul", ["IN", "factor"], ["OUT"])],
        [("IN", F32, [rows])],
        [("OUT", F32, [rows])],
        factor=np.full(1, factor, np.float32),
    )
    part = path.with_name(f".{path.name}")
    onnx.save(made, part)
    os.replace(part, path)  # whoever reads it sees the one or the other
    return path


def paired(path: Path, factor: float) -> Path:
    """A model of two weights, `a` and `b`, that only together give a multiple of 1001."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = model(
        [node("Mul", ["IN", "a"], ["y"]), node("Add", ["y", "b"], ["OUT"])],
        [("IN", F32, ["n"])],
        [("OUT", F32, ["n"])],
        **pair(factor),
    )
    onnx.save(made, path)
    return path


def pair(factor: float) -> dict[str, np.ndarray]:
    """Its weights."""
    return {"a": np.full(1, factor, np.float32), "b": np.full(1, 1000 * factor, np.float32)}


def failing(path: Path) -> Path:
    """A good file of a model that no run of one value gets through."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = model(
        [node("Reshape", ["IN", "shape"], ["OUT"])],
        [("IN", F32, ["n"])],
        [("OUT", F32, [3])],
        shape=np.array([3]),
    )
    onnx.save(made, path)
    return path


def version(root: Path, name: str, number: int, factor: float) -> Path:
    """A version of a model in Triton's layout."""
    return scaled(root / name / str(number) / "model.onnx", factor)


@contextmanager
def serving(root: Path, **more: Any) -> Iterator[Server]:
    """A server of a repository, with an administrator; builds happen without a jail."""
    context = mslite.Context()
    context.parallel.workers_num = context.cpu.thread_num = 1
    more = {
        "control": "explicit", "load_models": ["*"], "sandbox": False, "http_port": 0,
        "context": context, "admin_tokens": [ADMIN], **more,
    }  # fmt: skip
    if more["control"] != "explicit":
        more["load_models"] = []
    with Server(root, **more) as server:
        yield server


def infer(name: str = "m", number: str = "", values: Sequence[float] = (1.0,)) -> bytes:
    """A request in binary form."""
    path = f"/v2/models/{name}/versions/{number}/infer" if number else f"/v2/models/{name}/infer"
    return post(path, floats(*values), "Inference-Header-Content-Length: 0")


def change(wire: Wire, name: str, what: str = "load", body: Any = b"") -> Reply:
    """Load or unload a model."""
    return wire.ask(post(f"/v2/repository/models/{name}/{what}", body, AUTHORISED))


def answer(reply: Reply) -> tuple[str, float]:
    """The version that answered, and the factor of which it is an answer."""
    assert reply.status == 200, (reply.status, reply.body)
    length = int(reply.headers.get("inference-header-content-length", 0))
    found = Reply(200, {}, reply.body[:length]).json
    values = np.frombuffer(reply.body[length:], np.float32)
    assert (values == values[0]).all()
    return found["model_version"], float(values[0])


def index(wire: Wire) -> dict[tuple[str, str], tuple[str, str]]:
    """State and reason by name and version."""
    rows = wire.ask(post("/v2/repository/index", b"")).json
    return {
        (row["name"], row.get("version", "")): (row.get("state", ""), row.get("reason", ""))
        for row in rows
    }
