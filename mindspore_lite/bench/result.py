"""Records of what a measurement found, and their form as plain dicts.

The dict is what `mslite bench --json` writes and `page.page` draws; docs/measuring.md describes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Port:
    """An input of the model, with the shape that requests have."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelFacts:
    """Which model was measured."""

    file: str  # its name, without folders
    inputs: tuple[Port, ...]


@dataclass(frozen=True)
class Machine:
    """Where it was measured."""

    cpu: str
    cores: int
    python: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Settings:
    """How it was measured; 0 workers, threads and batch are automatic, automatic and none.

    Target and engine are empty where only a server was measured.
    """

    target: str
    engine: str
    workers: int
    threads: int
    batch: int
    duration_s: float
    warmup_s: float
    rounds: int
    url: str = ""  # of the server


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the (intended) start of a request to its answer; 0 without answers."""

    mean: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float


@dataclass(frozen=True)
class Histogram:
    """How many requests took how long."""

    edges_ms: tuple[float, ...]  # one more than counts
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Moment:
    """A part of the time of a run; parts without answers are left out."""

    at_s: float
    throughput: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Run:
    """One side under one load, all its rounds together; clients or rate is None."""

    side: str
    clients: int | None
    rate: float | None
    throughput: float
    latency_ms: Latency
    cpu_ms_per_request: float
    memory_mib: float
    requests: int
    errors: int
    first_error: str
    histogram: Histogram
    timeline: tuple[Moment, ...]
    refused: int = 0  # of the errors: those for which there was no room


@dataclass(frozen=True)
class Ratio:
    """Median and quartiles over the rounds; more than 1 is good for mslite.

    Of "throughput", ours / theirs; of "p99", theirs / ours.
    """

    clients: int | None
    rate: float | None
    peer: str
    of: str
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Apart:
    """How far an output of another model file lies from the model's, for the request measured."""

    peer: str
    output: str
    largest: float  # difference, as a share of the largest value
    cosine: float
    agreed: int  # rows with the same largest number
    rows: int  # 0: it does not look like classes


@dataclass(frozen=True)
class ResultPlace:
    """A worker, its threads, and the cores that it is bound to; () where it is not."""

    worker: int
    threads: int
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """One setting that the search measured."""

    engine: str
    workers: int
    threads: int
    batch: int
    clients: int
    throughput: float
    p99_ms: float
    on_front: bool = False  # no other point has more throughput and a lower p99
    chosen: bool = False
    requests: int = 0  # of the second try, and its rounds; 0 where there was none
    rounds: int = 0


@dataclass(frozen=True)
class Tune:
    """What the search found; the texts are empty when nothing keeps to the limit."""

    p99_limit_ms: float | None
    points: tuple[Point, ...]
    python: str
    ini: str
    not_remembered: str = ""  # why engine=auto will not take it; empty where it will


@dataclass(frozen=True)
class Result:
    """Everything."""

    model: ModelFacts
    machine: Machine
    settings: Settings
    runs: tuple[Run, ...]
    ratios: tuple[Ratio, ...]
    layout: tuple[ResultPlace, ...]
    tune: Tune | None = None
    apart: tuple[Apart, ...] = ()


def plain(result: Result) -> dict[str, Any]:
    """The same as dicts and lists, ready for json.dumps."""
    found: dict[str, Any] = _listed(asdict(result))
    return found


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_listed(inner) for inner in value]
    return value
