"""process.py: what a worker prints is shown on a stream, if one is given, and remembered anyway."""

from __future__ import annotations

import io

import pytest

from mindspore_lite.remote.devices.process import WorkerProcess

LIMIT_S = 120.0
LINE = "Receive exit message so long and start to exit"


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_stream_shows_what_the_worker_prints(is_closed: bool) -> None:
    stream = io.StringIO()
    if is_closed:
        stream.close()
    worker = WorkerProcess(0, (), output=stream)
    worker.session.exit("so long", LIMIT_S)
    worker.stop(LIMIT_S)
    assert worker.died().last_words == LINE
    assert is_closed or stream.getvalue() == f"{LINE}\n"
