"""The response cache of a model: answers to inputs that came before, without a run.

    service = CachedService(service, ResponseCache(most_bytes))

It stands in front of the model's service, so that HTTP, gRPC and streams use it alike. An answer is
found by a cryptographic hash of the inputs' types, shapes and bytes, together with the version of
the weights; it holds all outputs, whichever a client asked for. A model that draws random numbers
answers the same request alike for as long as the answer is kept: whether that is right is for the
user to say, and so the cache is off by default.

An update of the weights must never be answered with an old value. While weights change, the cache
neither answers nor takes; then it is emptied, and an answer whose request came before is not taken
(`epoch`). The least recently used answers make room for new ones.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.server.models import PoolLike
from mindspore_lite.server.wrapped import WrappedService
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended
from mindspore_lite.tensor import Tensor

MOST_INPUT_BYTES = 4 << 20  # of a request that is looked up: a hash of more takes milliseconds
_LARGEST_PART = 8  # an answer may take so much of the cache: 1 / 8; guess
_ENTRY_BYTES = 512  # of an answer beyond its arrays: key, records; about
_DIGEST_BYTES = 32

Outputs = tuple[np.ndarray, ...]


class ResponseCache:
    """Answers by key, bounded in bytes. Safe from many threads.

    Attributes:
        bytes: What it holds.
    """

    def __init__(self, most_bytes: int) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[Outputs, int]] = OrderedDict()
        self._epoch = 0
        self._changes = 0  # updates of weights under way

    @property
    def epoch(self) -> int | None:
        """What the weights are now, as a number of this cache; None while they change."""
        with self._lock:
            return None if self._changes else self._epoch

    def get(self, key: bytes) -> Outputs | None:
        """The answer of a key, if it is there."""
        with self._lock:
            found = self._kept.get(key)
            if found is None or self._changes:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: bytes, outputs: Sequence[np.ndarray], epoch: int) -> None:
        """Keep an answer, unless the weights have changed since `epoch`, or it is too large."""
        size = _ENTRY_BYTES + sum(array.nbytes for array in outputs)
        if size * _LARGEST_PART > self._most:
            return
        copies = tuple(_copied(array) for array in outputs)
        with self._lock:
            if self._changes or epoch != self._epoch or key in self._kept:
                return
            self._kept[key] = copies, size
            self.bytes += size
            while self.bytes > self._most:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed

    def begin_change(self) -> None:
        """The weights are about to change."""
        with self._lock:
            self._changes += 1
            self._epoch += 1
            self._clear()

    def end_change(self) -> None:
        """They have changed, or have not; runs that began before may go on."""
        with self._lock:
            self._changes -= 1
            self._epoch += 1

    def clear(self) -> None:
        """Forget all answers."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._kept.clear()
        self.bytes = 0


class CachedService(WrappedService):
    """A service with a cache in front."""

    def __init__(self, service: PoolLike, cache: ResponseCache) -> None:
        super().__init__(service)
        self.cache = cache
        self._secret = os.urandom(_DIGEST_BYTES)  # nobody can look for inputs of equal hashes

    def run(self, call: Call) -> list[np.ndarray]:
        """Answer from the cache, or compute."""
        key, epoch = self._looked_up(call)
        if key is None:
            return self.wrapped.run(call)
        found = self._found(call, key)
        if found is not None:
            return found
        outputs = self.wrapped.run(call)
        self.cache.put(key, outputs, epoch)
        return outputs

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """The same; the calling thread goes on."""
        key, epoch = self._looked_up(call)
        if key is None:
            return self.wrapped.submit_or_run(call, ended)
        found = self._found(call, key)
        if found is not None:
            ended(found)
            return lambda: False

        def keep(outputs: list[np.ndarray] | BaseException) -> None:
            if not isinstance(outputs, BaseException):
                self.cache.put(key, outputs, epoch)
            ended(outputs)

        return self.wrapped.submit_or_run(call, keep)

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights; answers of the old ones are forgotten, also if that fails."""
        self.cache.begin_change()
        try:
            self.wrapped.update_weights(groups)
        finally:
            self.cache.end_change()

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, release all."""
        self.wrapped.close(drain_s)
        self.cache.clear()

    def _looked_up(self, call: Call) -> tuple[bytes | None, int]:
        """The key of a request, None for one that is not looked up, and the epoch it came in."""
        epoch = self.cache.epoch
        if epoch is None or sum(array.nbytes for array in call.inputs) > MOST_INPUT_BYTES:
            return None, 0
        began_ns = time.monotonic_ns()
        hashed = hashlib.blake2b(key=self._secret, digest_size=_DIGEST_BYTES)
        hashed.update(b"%d" % self.wrapped.weights_version)
        for array in call.inputs:  # in the model's order: names need not be there
            hashed.update(f";{array.dtype.name}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        if call.timing is not None:
            call.timing.miss_ns = time.monotonic_ns() - began_ns + 1
        return hashed.digest(), epoch

    def _found(self, call: Call, key: bytes) -> list[np.ndarray] | None:
        found = self.cache.get(key)
        if found is None:
            return None
        if call.timing is not None:
            call.timing.hit_ns, call.timing.miss_ns = call.timing.miss_ns, 0
        return list(found)


def _copied(array: np.ndarray) -> np.ndarray:
    """An array of its own, which nobody can change any more."""
    found = np.array(array, order="C", copy=True)
    found.flags.writeable = False
    return found
