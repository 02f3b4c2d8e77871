"""When a request was computed, for callers that ask: a Timing on the Call, filled in by the pool.

    call.timing = Timing()
    service.run(call)
    call.timing.run.ended_ns - call.timing.run.claimed_ns

Times are those of the pool's clock, time.monotonic_ns(). A request that no run answered, because it
was refused, cancelled or too late, has no Run. One that is not asked about costs one comparison.
"""

from __future__ import annotations


class Run:
    """One run of a model, shared by all requests that it computed.

    Attributes:
        claimed_ns: When a worker took the requests.
        began_ns: When the engine began: after the inputs of several requests were joined.
        ran_ns: When the engine had ended.
        ended_ns: When the outputs were split again.
        rows: Of the requests that it answered, without those that had ended before.
        most: Rows of a batch; a request that has more was computed in parts. 0 is no limit.
        is_counted: For whoever counts runs by way of their requests.
    """

    __slots__ = ("began_ns", "claimed_ns", "ended_ns", "is_counted", "most", "ran_ns", "rows")

    def __init__(
        self, claimed_ns: int, ended_ns: int, began_ns: int = 0, ran_ns: int = 0, rows: int = 0
    ) -> None:
        self.claimed_ns = claimed_ns
        self.began_ns = began_ns or claimed_ns
        self.ran_ns = ran_ns or ended_ns
        self.ended_ns = ended_ns
        self.rows = rows
        self.most = 0
        self.is_counted = False


class Timing:
    """What a caller learns of its call: when it came, and the run that computed it.

    Attributes:
        arrived_ns: When it came.
        run: That computed it.
        hit_ns: What a cache took to answer it instead; 0 if none did.
        miss_ns: What a cache took to find out that it cannot.
    """

    __slots__ = ("arrived_ns", "hit_ns", "miss_ns", "run")

    def __init__(self) -> None:
        self.arrived_ns = self.hit_ns = self.miss_ns = 0
        self.run: Run | None = None

    def ran_alone(self, claimed_ns: int, ended_ns: int, rows: int = 1) -> None:
        """It was computed at once and by itself."""
        self.arrived_ns = claimed_ns
        self.run = Run(claimed_ns, ended_ns, rows=rows)
