"""Models on Ray Serve: a deployment per model, and an ingress that speaks our server's protocols.

    import mindspore_lite.ray
    from ray import serve

    serve.run(mindspore_lite.ray.app("models", replicas=2))    HTTP on port 8000, gRPC on 8001
    mindspore_lite.ray.handle("resnet50").predict.remote([array]).result()

Needs the extra `ray`. The folder of models must be there on every node, under the same path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mindspore_lite.cluster.ingress import Ingress
from mindspore_lite.cluster.replica import Place, Replica
from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.errors import EngineError, EngineUnavailableError
from mindspore_lite.server.repository.apply import spec_of
from mindspore_lite.server.sources import Models, Sources
from mindspore_lite.settings.text import from_map, to_map

__all__ = ["app", "handle"]

INGRESS = "mslite-ingress"
_HEALTH_S, _HEALTH_LIMIT_S = 5, 30  # how often a replica is probed, and for how long
_DRAIN_S = 20  # for requests under way when a replica ends


def app(
    models: Models | str | os.PathLike[str],
    *,
    replicas: int | Sequence[int] = 1,
    cpus: int = 1,
    gpus: float = 0,
    context: Context | None = None,
    retry: bool | Mapping[str, bool] = True,
    queue: int = 1000,
    ingresses: int = 1,
    sandbox: bool = False,
    versions: Mapping[str, str] | None = None,
    weights: Mapping[str, str] | None = None,
    server: Mapping[str, Any] | None = None,
) -> Any:
    """Make a Ray Serve application of a model file, several, or a folder of them.

    Args:
        models: As for mindspore_lite.Server.
        replicas: Of each model; two numbers are the least and the most, between which Ray decides
            by how many requests wait.
        cpus: Of a replica: so many requests are computed at the same time, each on one thread,
            unless the context says otherwise.
        gpus: Of a replica.
        context: How the models run, as for ModelParallelRunner.
        retry: Whether a request that was lost with its replica is sent once more; or that by model.
        queue: How many requests of an ingress may wait for a model; more are refused with 503.
        ingresses: How many processes take requests, at most one on a node: they open the ports.
        sandbox: Whether models are built in a jailed process.
        versions: Which version to serve, by model, instead of the newest.
        weights: Files of weights to serve with, by model.
        server: More arguments of mindspore_lite.Server: host, ports, tokens, limits.

    Returns:
        What serve.run() takes.

    Raises:
        TypeError: An argument is of the wrong type.
        ValueError: A number or a name makes no sense, or there is nothing to serve.
        RuntimeError: Ray is not installed.
    """
    if context is not None:
        checks.instance("context", context, Context)
    retries = dict(retry) if isinstance(retry, Mapping) else {"": checks.flag("retry", retry)}
    origin: dict[str, Any] = {
        "models": _pairs(models),
        "replicas": _replicas(replicas),
        "cpus": checks.positive("cpus", cpus),
        "gpus": gpus,
        "context": _context(context, cpus),
        "retry": retries,
        "queue": checks.positive("queue", queue),
        "ingresses": checks.positive("ingresses", ingresses),
        "sandbox": checks.flag("sandbox", sandbox),
        "server": dict(server or {}),
    }
    return _application(origin, dict(versions or {}), dict(weights or {}))


def handle(model: str, *, name: str = "default") -> Any:
    """A DeploymentHandle of a model: `handle(model).predict.remote([array]).result()`.

    Args:
        model: Its name.
        name: Of the application.
    """
    return _serve().get_deployment_handle(model, name)


def _application(
    origin: Mapping[str, Any], versions: Mapping[str, str], weights: Mapping[str, str]
) -> Any:
    place = Place(tuple(map(tuple, origin["models"])), origin["context"], origin["sandbox"])
    entries = Sources(list(place.models)).checked()
    for what, given in (("versions", versions), ("weights", weights), ("retry", origin["retry"])):
        unknown = sorted(set(given) - set(entries) - {""})
        if unknown:
            raise ValueError(f"{what} names {unknown}, but the models are {sorted(entries)}")
    retries = {one: origin["retry"].get(one, origin["retry"].get("", True)) for one in entries}
    bound = {
        one: _deployment(
            origin, place, one, {"version": versions.get(one, ""), "weights": weights.get(one, "")}
        )
        for one in entries
    }
    made = (
        _serve()
        .deployment(Ingress)
        .options(
            name=INGRESS,
            num_replicas=origin["ingresses"],
            max_replicas_per_node=1 if origin["ingresses"] > 1 else None,
            ray_actor_options={"num_cpus": 0},
            max_ongoing_requests=100,
            graceful_shutdown_timeout_s=_DRAIN_S,
        )
    )
    return made.bind(place, retries, origin["server"], bound)


def _deployment(
    origin: Mapping[str, Any], place: Place, name: str, config: Mapping[str, str]
) -> Any:
    entry = place.entry(name)
    spec = spec_of(entry.config, from_map(place.context))
    least, most = origin["replicas"]
    how: dict[str, Any] = {"num_replicas": least}
    if most > least:
        how = {
            "autoscaling_config": {
                "min_replicas": least,
                "max_replicas": most,
                "target_ongoing_requests": 2 * origin["cpus"],  # one runs, one waits, on each core
            }
        }
    return (
        _serve()
        .deployment(Replica)
        .options(
            name=name,
            user_config=dict(config),
            max_ongoing_requests=spec.queue_size + origin["cpus"],
            max_queued_requests=origin["queue"],
            ray_actor_options={"num_cpus": origin["cpus"], "num_gpus": origin["gpus"]},
            health_check_period_s=_HEALTH_S,
            health_check_timeout_s=_HEALTH_LIMIT_S,
            graceful_shutdown_wait_loop_s=0.1,
            graceful_shutdown_timeout_s=_DRAIN_S,
            **how,
        )
        .bind(place, name)
    )


def _pairs(models: Any) -> list[list[str]]:
    """Names, or "", and absolute paths."""
    if isinstance(models, str | os.PathLike):
        models = [models]
    pairs = models.items() if isinstance(models, Mapping) else models
    found = [one if isinstance(one, tuple) else ("", one) for one in pairs]
    return [[name, os.path.abspath(os.fspath(path))] for name, path in found]


def _replicas(given: int | Sequence[int]) -> list[int]:
    least, most = (given, given) if isinstance(given, int) else tuple(given)
    checks.positive("replicas", least)
    if checks.positive("replicas", most) < least:
        raise ValueError(f"replicas must be the least and then the most, but got {given}.")
    return [least, most]


def _context(context: Context | None, cpus: int) -> dict[str, str]:
    """The context as text, with workers for the cores of a replica: a node has several."""
    found = Context() if context is None else context
    if found.parallel.config_info:
        raise EngineError("a cluster takes parallel.config_path, not config_info: write a file")
    texts = to_map(found)
    texts.setdefault("parallel.workers_num", str(cpus))
    texts.setdefault("cpu.thread_num", "1")
    return texts


def _serve() -> Any:
    try:
        from ray import serve
    except ImportError as exc:
        raise EngineUnavailableError("this needs Ray: pip install 'mslite[ray]'") from exc
    return serve
