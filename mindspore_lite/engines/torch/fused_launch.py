"""Runs a recorded graph on a card with one native call, copies included.

Each call that a run makes lets go of the interpreter's lock, and waits for it afterwards. Where 64
callers are being woken that was measured to take 1.5 ms, as long as the run itself; so the rows are
put together, sent and waited for by one call of one_run.c.

It is compiled where it is first used, by the C compiler that Triton needs as well, and kept in the
cache. Without one, or without a function of CUDA that it needs, runs go call by call.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import shutil
import subprocess
import tempfile
import weakref
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mindspore_lite.core.environment import variables
from mindspore_lite.engines.torch import code_cache
from mindspore_lite.engines.torch.cards import Card

_LOG = logging.getLogger(__name__)
_SOURCE = Path(__file__).with_suffix(".c")
_THREADS = 4  # that copy rows of a run; 6 and 8 were hardly faster, on 16 cores
_COMPILE_S = 60
_NONE = array("Q")

Rows = Sequence[int]  # of each request; none: one request, which fills the inputs


class Caller:
    """What all runs of a stream have in common: CUDA's functions, and the threads that copy."""

    def __init__(self, library: ctypes.CDLL, card: Card, stream: Any) -> None:
        self._call = library.one_run
        addresses = card.addresses()
        self._functions = (ctypes.c_void_p * len(addresses))(*addresses)
        self._card = card
        self._stream = stream
        self._at = card.address(stream)
        self._event = card.event()
        self._event.record(stream)  # it has no address before
        self._event_at = card.address(self._event)
        self._team = library.new_team(max(1, min(_THREADS, (os.cpu_count() or 1) // 4)))
        if not self._team:
            raise MemoryError("no memory for the threads that copy rows")
        self.close = weakref.finalize(self, _end, library, self._team, os.getpid())
        self.close.atexit = False  # a run may still be under way then

    def __call__(
        self, inputs: array, rows: array, graph: int, backs: array, waits: bool = False
    ) -> None:
        """Run; `waits`: when what this thread has asked of the card so far is done."""
        before = self._card.current_address() if waits else None
        given = (
            self._team, self._functions, inputs.buffer_info()[0], len(inputs) // 3,
            rows.buffer_info()[0], graph, backs.buffer_info()[0], len(backs) // 3, self._at, before,
            self._event_at if waits else None,
        )  # fmt: skip
        if self._card.is_current():
            error = self._call(*given)
        else:  # by torch: CUDA alone, going back to a card not used yet, would take memory there
            with self._card.using(self._stream):
                error = self._call(*given)
        if error:
            raise RuntimeError(f"CUDA error: {self._card.error_text(error)}")


def _end(library: Any, team: int, process: int) -> None:
    """End threads, which a forked child does not have: it would wait for them for ever."""
    if os.getpid() == process:
        library.end_team(team)


class OneRun:
    """A recorded run with its places on the card; `staged` are those of its inputs on the host."""

    def __init__(
        self, caller: Caller, inputs: Sequence[torch.Tensor], staged: Sequence[torch.Tensor]
    ) -> None:
        self._caller = caller
        self._inputs, self._staged = inputs, staged
        self._places = [
            (inner.data_ptr(), outer.data_ptr())
            for inner, outer in zip(staged, inputs, strict=True)
        ]
        # of a request that fills the inputs, which is the usual one: only its addresses are new
        self._sizes = [place.nbytes for place in inputs]
        self._whole = array("Q", [part for size in self._sizes for part in (0, size)])
        self._whole_inputs = array("Q", [part for at in self._places for part in (1, *at)])

    def of_arrays(self, requests: Sequence[Sequence[np.ndarray]], rows: Rows, graph: int) -> bool:
        """Run on arrays of the host; False: not these, nothing was done."""
        if len(requests) == 1 and self._fill(requests[0]):
            self._caller(self._whole_inputs, self._whole, graph, _NONE)
            return True
        sources, inputs = array("Q"), array("Q")
        for at, (staged, place) in enumerate(self._places):
            start, size = len(sources), 0
            for request in requests:
                one = request[at]
                if not isinstance(one, np.ndarray):
                    return False
                size += one.nbytes
                sources.append(_address(one))
                sources.append(one.nbytes)
            if not self._filled(at, sources, start, size, sum(rows)):
                return False
            inputs.extend(((len(sources) - start) // 2, staged, place))
        self._caller(inputs, sources, graph, _NONE)
        return True

    def _fill(self, request: Sequence[Any]) -> bool:
        """Note where the arrays of a request lie that fills the inputs; False: it does not."""
        for at, (one, size) in enumerate(zip(request, self._sizes)):  # noqa: B905 - it fits
            if type(one) is not np.ndarray or one.nbytes != size or not size:
                return False
            self._whole[2 * at] = _address(one)
        return True

    def of_tensors(
        self,
        requests: Sequence[Sequence[torch.Tensor]],
        rows: Rows,
        graph: int,
        outputs: Sequence[torch.Tensor],
    ) -> list[list[torch.Tensor]] | None:
        """Run on tensors of the card; what they give in memory of its own. None: not these."""
        sources, inputs = array("Q"), array("Q")
        for at, target in enumerate(self._inputs):
            start, size = len(sources), 0
            for request in requests:
                one = request[at]
                if not one.is_contiguous() or one.dtype != target.dtype:
                    return None
                size += one.nbytes
                sources.append(one.data_ptr())
                sources.append(one.nbytes)
            if not self._filled(at, sources, start, size, sum(rows)):
                return None
            inputs.extend(((len(sources) - start) // 2, 0, self._places[at][1]))
        found: list[list[torch.Tensor]] = [[] for _ in requests]
        backs = array("Q")
        for output in outputs:
            begin = output.data_ptr()
            for own, count in zip(found, rows or [0], strict=True):
                shape = (count, *output.shape[1:]) if rows else output.shape
                own.append(torch.empty(shape, dtype=output.dtype, device=output.device))
                if own[-1].nbytes:
                    backs.extend((begin, own[-1].data_ptr(), own[-1].nbytes))
                begin += own[-1].nbytes
        self._caller(inputs, sources, graph, backs, waits=True)
        return found

    def _filled(self, at: int, sources: array, start: int, size: int, rows: int) -> bool:
        """Whether rows fill an input; integers of padding are made to be those of the first row.

        Other integers may be no index of anything here.
        """
        target = self._inputs[at]
        whole: int = target.nbytes
        if not rows:
            return 0 < size == whole
        row = whole // len(target)
        if not 0 < size == row * rows:
            return False
        if not target.is_floating_point():
            sources.extend([sources[start], row] * (len(target) - rows))
        return True


def _address(array: Any) -> int:
    """Where an array of NumPy lies."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):  # not to be written, or bfloat16; this takes 3 times as long
        found: int = array.__array_interface__["data"][0]
        return found


def caller(card: Card, stream: Any) -> Caller | None:
    """What makes runs of a stream; None where that cannot be done in one call."""
    if not card.addresses():
        return None
    library = _library()
    return None if library is None else Caller(library, card, stream)


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        return _opened()
    except (OSError, subprocess.SubprocessError) as exc:
        _LOG.info("runs on cards go call by call, for one_run.c cannot be compiled: %s", exc)
        return None


def _opened() -> ctypes.CDLL:
    name = code_cache.name_of([_SOURCE.read_text()])
    path = code_cache.file(name)
    if path is None or not path.exists():
        content = _compiled()
        code_cache.write(name, content)
        if path is None or not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "one_run.so"
                path.write_bytes(content)
                return _typed(ctypes.CDLL(str(path)))
    return _typed(ctypes.CDLL(str(path)))


def _compiled() -> bytes:
    """The library, from the first C compiler that is found."""
    found = (shutil.which(name) for name in (variables.get("CC", ""), "cc", "gcc", "clang") if name)
    compiler = next((path for path in found if path), None)
    if compiler is None:
        raise FileNotFoundError("there is no C compiler: cc, gcc or clang")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "one_run.so"
        command = [compiler, "-std=c11", "-O2", "-shared", "-fPIC", "-pthread", "-o", str(made)]
        done = subprocess.run(
            [*command, str(_SOURCE)], capture_output=True, text=True, timeout=_COMPILE_S
        )
        if done.returncode:
            raise OSError(f"{compiler} failed: {done.stderr.strip()[:500]}")
        return made.read_bytes()


def _typed(library: ctypes.CDLL) -> ctypes.CDLL:
    address, size = ctypes.c_void_p, ctypes.c_size_t
    library.new_team.restype, library.new_team.argtypes = address, [ctypes.c_int]
    library.end_team.restype, library.end_team.argtypes = None, [address]
    library.one_run.restype = ctypes.c_int
    library.one_run.argtypes = [
        address, address, address, size, address, address, address, size, address, address, address,
    ]  # fmt: skip
    return library
