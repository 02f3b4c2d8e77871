"""A service in front of another one, which does what the other does unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.server.health import Examined
from mindspore_lite.server.models import PoolLike
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.tensor import Tensor


class WrappedService:
    """See PoolLike for the methods."""

    def __init__(self, service: PoolLike) -> None:
        self.wrapped = service
        self.spec, self.inputs, self.outputs = service.spec, service.inputs, service.outputs

    @property
    def is_up(self) -> bool:
        """Whether calls are computed now."""
        return self.wrapped.is_up

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""
        return self.wrapped.weights_version

    @property
    def file_bytes(self) -> int:
        """Of its model files."""
        return int(getattr(self.wrapped, "file_bytes", 0))

    @property
    def pids(self) -> Sequence[int]:
        """Of its processes, if it has some of its own."""
        return getattr(self.wrapped, "pids", ())

    def run(self, call: Call) -> list[np.ndarray]:
        """Compute one call; the calling thread waits."""
        return self.wrapped.run(call)

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Queue one call; the calling thread goes on."""
        return self.wrapped.submit_or_run(call, ended)

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, all or none."""
        self.wrapped.update_weights(groups)

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request."""
        return self.wrapped.warm_up_shapes()

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Run every worker once."""
        return self.wrapped.warm_up(shapes)

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        """The same with these inputs."""
        self.wrapped.warm_up_with(arrays)

    def statistics(self) -> Statistics:
        """What was done so far."""
        return self.wrapped.statistics()

    def occupancy(self) -> Occupancy:
        """What goes on right now."""
        return self.wrapped.occupancy()

    def examine(self) -> str:
        """Why it cannot compute now; "" if it can, or does not tell."""
        return self.wrapped.examine() if isinstance(self.wrapped, Examined) else ""

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, release all."""
        self.wrapped.close(drain_s)
