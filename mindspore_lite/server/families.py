"""The families of /metrics: names, types and meaning, and where their values come from.

The names that begin with nv_ are Triton's, where the meaning is the same; the others are ours. Each
row of docs/operating.md is one of these, and a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mindspore_lite.server.meter import FAILED, PHASES, QUEUE_BOUNDS_MS, REJECTED

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
ROW_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)  # of batches
EXPOSED_MS = (
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
    10_000.0,
)  # fmt: skip
SLOT_STATES = ("idle", "gathering", "computing", "stuck")
NV_REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
MEMORY_KINDS = ("rss", "private", "shared")
Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One line: its name and labels, and how many digits its value has behind the point."""

    name: str
    labels: Labels = ()
    digits: int = 0

    @property
    def width(self) -> int:
        """How many integers its value comes as."""
        return 2 if self.digits else 1

    def line(self, more: Labels = ()) -> str:
        """The line, with a place for its value."""
        inner = ",".join(f'{key}="{value}"' for key, value in (*more, *self.labels))
        value = f"%d.%0{self.digits}d" if self.digits else "%d"
        return f"{self.name}{{{inner}}} {value}\n" if inner else f"{self.name} {value}\n"


@dataclass(frozen=True)
class Family:
    """One family of metrics.

    Attributes:
        name: As it is queried; counters of ours end in _total.
        kind: COUNTER, GAUGE or HISTOGRAM.
        help: What it means, in one sentence.
        label: Beyond model and version; "" if there is none.
        values: Of that label, in the order in which the values come.
        bounds: Of a histogram.
        digits: Of a value behind its point: it comes as two integers, before and behind. For a
            histogram, of its sum.
    """

    name: str
    kind: str
    help: str
    label: str = ""
    values: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    digits: int = 0

    def samples(self) -> list[Sample]:
        """All samples, in the order in which the values come."""
        name, digits = self.name, self.digits
        if self.kind == HISTOGRAM:
            ends = [*(repr(float(bound)) for bound in self.bounds), "+Inf"]
            buckets = [Sample(f"{name}_bucket", (("le", end),)) for end in ends]
            return [*buckets, Sample(f"{name}_sum", (), digits), Sample(f"{name}_count")]
        if self.label:
            return [Sample(name, ((self.label, value),), digits) for value in self.values]
        return [Sample(name, (), digits)]


def _seconds(bounds_ms: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(bound / 1e3, 7) for bound in bounds_ms)


SERVER = (
    Family("mslite_ready", GAUGE, "1 if requests should come here, as /v2/health/ready says"),
    Family("mslite_uptime_seconds", GAUGE, "Since the server was made", digits=3),
    Family("mslite_flight_bytes", GAUGE, "Bodies of requests that are not answered yet"),
    Family("mslite_flight_limit_bytes", GAUGE, "What they may take together"),
    Family(
        "mslite_memory_bytes", GAUGE,
        "RAM of the server and of its models' processes; shared pages count for each process",
        "kind", MEMORY_KINDS,
    ),
    Family("mslite_weights_bytes", GAUGE, "Files of all models that are loaded"),
    Family("mslite_memory_quota_bytes", GAUGE, "What models may take together; 0 is no limit"),
    Family(
        "mslite_connections", GAUGE, "Open connections; of gRPC, calls under way", "protocol",
        ("http", "grpc"),
    ),
    Family("process_cpu_seconds_total", COUNTER, "CPU time of the server's own process", digits=3),
    Family("process_resident_memory_bytes", GAUGE, "RAM of the server's own process"),
    Family("process_start_time_seconds", GAUGE, "When the server was made, since 1970", digits=3),
)  # fmt: skip

MODEL = (
    Family("nv_inference_request_success", COUNTER, "Requests that succeeded, of any size"),
    Family(
        "nv_inference_request_failure", COUNTER,
        "Requests that failed: too late in the queue, cancelled, in the model, otherwise",
        "reason", NV_REASONS,
    ),
    Family("nv_inference_count", COUNTER, "Rows that were computed"),
    Family("nv_inference_exec_count", COUNTER, "Runs of the model; a batch is one"),
    Family(
        "nv_inference_request_duration_us", COUNTER,
        "Time of successful requests from received to encoded",
    ),
    Family("nv_inference_queue_duration_us", COUNTER, "Of it, waiting for a worker"),
    Family("nv_inference_compute_input_duration_us", COUNTER, "Of it, joining inputs"),
    Family("nv_inference_compute_infer_duration_us", COUNTER, "Of it, in the engine"),
    Family("nv_inference_compute_output_duration_us", COUNTER, "Of it, splitting outputs"),
    Family("nv_inference_pending_request_count", GAUGE, "Requests that wait for a worker"),
    Family("nv_cache_num_hits_per_model", COUNTER, "Requests that the response cache answered"),
    Family("nv_cache_num_misses_per_model", COUNTER, "Requests that it could not answer"),
    Family("nv_cache_hit_duration_per_model", COUNTER, "Microseconds to answer those"),
    Family("nv_cache_miss_duration_per_model", COUNTER, "Microseconds to find out"),
    Family(
        "mslite_request_duration_seconds", HISTOGRAM,
        "Time of successful requests from received to encoded",
        bounds=_seconds(EXPOSED_MS), digits=9,
    ),
    Family(
        "mslite_queue_wait_seconds", HISTOGRAM, "Time that successful requests waited for a worker",
        bounds=_seconds(QUEUE_BOUNDS_MS), digits=9,
    ),
    Family("mslite_batch_rows", HISTOGRAM, "Rows of a run", bounds=ROW_BOUNDS),
    Family(
        "mslite_phase_seconds_total", COUNTER, "Where the time of successful requests went",
        "phase", PHASES, digits=9,
    ),
    Family(
        "mslite_requests_failed_total", COUNTER, "Requests that failed after they were taken",
        "reason", FAILED,
    ),
    Family(
        "mslite_requests_rejected_total", COUNTER, "Requests that were not computed",
        "reason", REJECTED,
    ),
    Family("mslite_slots", GAUGE, "Workers by what they do", "state", SLOT_STATES),
    Family("mslite_running_requests", GAUGE, "Requests that are computed"),
    Family("mslite_queue_size", GAUGE, "How many requests may wait"),
    Family("mslite_model_ready", GAUGE, "1 if the version can be used"),
    Family("mslite_model_share", GAUGE, "Weight against other models for the cores", digits=3),
    Family("mslite_model_file_bytes", GAUGE, "Files of the model"),
    Family("mslite_weights_version", GAUGE, "How many times its weights were changed"),
    Family(
        "mslite_weights_updated_timestamp_seconds", GAUGE,
        "When its weights were last changed, since 1970; 0 if they were not", digits=3,
    ),
    Family(
        "mslite_last_inference_timestamp_seconds", GAUGE,
        "When it last computed something, since 1970; 0 if it did not", digits=3,
    ),
    Family("mslite_cache_bytes", GAUGE, "What its response cache holds"),
)  # fmt: skip

# whose label values come as they occur
REFUSED = Family(
    "mslite_refused_total", COUNTER, "Answers that were errors, by HTTP status; gRPC's by the "
    "status of the same meaning", "status",
)  # fmt: skip
EVENTS = Family(
    "mslite_events_total", COUNTER, "What happened to models: load, unload, reload_failed, "
    "weights, unready; and seconds with rejected or deadline", "what",
)  # fmt: skip
# whose models are those of the index, served or not
LOAD_FAILURE = Family(
    "mslite_load_failure", GAUGE, "1 for each version whose last load failed, and why; what it "
    "served before goes on", "reason",
)  # fmt: skip
BUILD = Family("mslite_build_info", GAUGE, "Always 1; the version is in the label", "version")
ALL = (*SERVER, BUILD, REFUSED, EVENTS, LOAD_FAILURE, *MODEL)
