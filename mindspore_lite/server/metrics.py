"""The text of /metrics: Prometheus' format 0.0.4, or OpenMetrics 1.0.

    metrics_parts(core, openmetrics=False)

It says what numbers.py says. All of it is one template for the models that are served at the
moment, and one list of values: a scrape of 50 models takes less than a millisecond, on the event
loop (benchmarks/metrics.py). Label values come from the index of models, never from a request.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter

from mindspore_lite.server import numbers
from mindspore_lite.server.core import Core
from mindspore_lite.server.families import (
    BUILD,
    COUNTER,
    EVENTS,
    EXPOSED_MS,
    LOAD_FAILURE,
    MODEL,
    REFUSED,
    ROW_BOUNDS,
    SERVER,
    SLOT_STATES,
    Family,
    Sample,
)
from mindspore_lite.server.meter import BOUNDS_MS, Counts
from mindspore_lite.server.models import ServedModel
from mindspore_lite.server.process_memory import memory_of
from mindspore_lite.version import __version__

TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_NS = 10**9
_MOST_REASON = 200  # characters
# in a label; % stands for a value in the line
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "%": "%%"})
OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"
# of the finer steps that the meter counts, those that are exposed; the last has no bound
_EXPOSED = itemgetter(*(BOUNDS_MS.index(bound) for bound in EXPOSED_MS), len(BOUNDS_MS))


def metrics_parts(core: Core, *, openmetrics: bool = False) -> list[bytes]:
    """All metrics of a server at this moment, as parts of one text. For any thread."""
    models = core.models.all()
    form = core.observer.forms.get(openmetrics)
    if not isinstance(form, _Form) or form.models != models:
        form = core.observer.forms[openmetrics] = _Form(models, openmetrics)
    values = _server_values(core, models)
    for model in models:
        values += _model_values(core, model)
    refused = {str(status): count for status, count in core.observer.refused.counts().items()}
    listed = [
        _listed(BUILD, {__version__: 1}, openmetrics),
        _listed(REFUSED, refused, openmetrics),
        _listed(EVENTS, core.marks.counts(), openmetrics),
        *_load_failures(core, openmetrics),
    ]
    # the long part comes second: the port joins the first with the head of its answer
    found = ["".join(listed).encode(), form.filled(values)]
    return [*found, b"# EOF\n"] if openmetrics else found


def _server_values(core: Core, models: list[ServedModel]) -> list[int]:
    """The values of SERVER, in its order."""
    own = memory_of(["self"])
    pids = numbers.process_ids(models)
    memory = memory_of(pids) if len(pids) > 1 else own
    connections = numbers.connections(core)
    return [
        int(core.is_ready),
        *_ms(time.monotonic() - core.started_s),
        core.flight.bytes,
        core.limits.flight_bytes,
        memory.rss_bytes,
        memory.private_bytes,
        memory.shared_bytes,
        numbers.weights_bytes(models),
        core.quota_bytes,
        connections["http"],
        connections["grpc"],
        *_ms(time.process_time()),
        own.rss_bytes,
        *_ms(core.made_s),
    ]


class _Form:
    """The template for some models: every sample of a family stands together, model by model."""

    def __init__(self, models: list[ServedModel], openmetrics: bool) -> None:
        self.models = models
        lines: list[str] = []
        places: list[int] = []  # of each value that the template takes, among those that come
        first = 0
        for family in SERVER:
            lines += _head(family, openmetrics)
            for sample in family.samples():
                lines.append(sample.line())
                places += range(first, first + sample.width)
                first += sample.width
        width = sum(sample.width for family in MODEL for sample in family.samples())
        for family in MODEL if models else ():
            lines += _head(family, openmetrics)
            samples = family.samples()
            taken = sum(sample.width for sample in samples)
            for number, model in enumerate(models):
                of_model = (("model", model.name), ("version", model.version))
                lines += [sample.line(of_model) for sample in samples]
                start = first + number * width
                places += range(start, start + taken)
            first += taken
        self._template = "".join(lines).encode()
        self._in_order = itemgetter(*places)

    def filled(self, values: list[int]) -> bytes:
        """The text with these values."""
        text: bytes = self._template % self._in_order(values)
        return text


def _head(family: Family, openmetrics: bool) -> list[str]:
    name, kind = family.name, family.kind
    if openmetrics and kind == COUNTER:
        # there a counter's samples end in _total, and Triton's do not
        kind = COUNTER if name.endswith("_total") else "unknown"
        name = name.removesuffix("_total")
    text = family.help.replace("%", "%%")  # it becomes part of a template
    return [f"# HELP {name} {text}\n", f"# TYPE {name} {kind}\n"]


def _listed(family: Family, values: dict[str, int], openmetrics: bool) -> str:
    """A family whose label has the values that occurred."""
    lines = _head(family, openmetrics)
    lines += [Sample(family.name, ((family.label, key),)).line() for key in values]
    return "".join(lines) % tuple(values.values())


def _load_failures(core: Core, openmetrics: bool) -> list[str]:
    lines = _head(LOAD_FAILURE, openmetrics)
    for one in core.models.failures():
        reason = one.reason[:_MOST_REASON].translate(_ESCAPED)
        name = one.name.translate(_ESCAPED)  # of a folder, perhaps one that cannot be served
        labels = (("model", name), ("version", one.version), (LOAD_FAILURE.label, reason))
        lines.append(Sample(LOAD_FAILURE.name, labels).line() % 1)
    return lines


def _model_values(core: Core, model: ServedModel) -> list[int]:
    """The values of MODEL, in its order."""
    counts, now = model.meter.counts(), model.service.occupancy()
    deadline, cancelled, error, crash = counts.failed
    late = counts.rejected[1]
    return [
        counts.success,
        late, cancelled, error + crash, deadline,  # as NV_REASONS
        counts.rows,
        counts.executions,
        counts.success_ns // 1000,
        counts.queue_ns // 1000,
        counts.input_ns // 1000,
        counts.infer_ns // 1000,
        counts.output_ns // 1000,
        now.queued,
        counts.hits,
        counts.misses,
        counts.hit_ns // 1000,
        counts.miss_ns // 1000,
        *_EXPOSED(list(accumulate(counts.latency))),
        *divmod(counts.success_ns, _NS), counts.success,
        *accumulate(counts.queue_wait), *divmod(counts.queue_ns, _NS), counts.success,
        *_row_buckets(counts), counts.rows, counts.executions,
        *[part for ns in counts.phases_ns for part in divmod(ns, _NS)],
        *counts.failed,
        *counts.rejected,
        *[now.slots.count(state) for state in SLOT_STATES],
        now.running,
        now.queue_size,
        int(model.is_ready),
        *_ms(model.config.share),
        numbers.weights_bytes([model]),
        model.weights_version,
        *_ms(core.marks.weights_updated(model.name, model.version)),
        *_ms(counts.last_s),
        numbers.cache_bytes(model),
    ]  # fmt: skip


def _ms(value: float) -> tuple[int, int]:
    """A number in thousandths, before and behind the point."""
    return divmod(round(value * 1000), 1000)


def _row_buckets(counts: Counts) -> Iterable[int]:
    """Runs of at most so many rows, for each bound and without one."""
    found = [0] * (len(ROW_BOUNDS) + 1)
    for rows, batch in counts.batches.items():
        found[bisect_left(ROW_BOUNDS, rows)] += batch.runs
    return accumulate(found)


def wants_openmetrics(accept: bytes | None) -> bool:
    """Whether a client would rather have OpenMetrics, by its header Accept."""
    best, found = 0.0, False
    for part in (accept or b"").lower().split(b","):
        kind, *parameters = (word.strip() for word in part.split(b";"))
        given = dict(word.partition(b"=")[::2] for word in parameters)
        try:
            quality = float(given.get(b"q", b"1"))
        except ValueError:
            continue
        is_open = kind == b"application/openmetrics-text"
        if is_open and given.get(b"version", b"1.0.0").strip(b'"') not in (b"1.0.0", b"0.0.1"):
            continue
        if quality > best and (is_open or kind in (b"text/plain", b"text/*", b"*/*")):
            best, found = quality, is_open
    return found
