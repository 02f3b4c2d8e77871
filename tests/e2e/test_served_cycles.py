"""Loads, unloads and new weights over and over: a server gives back what they took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.repositories import version

CYCLES, WARM, WARM_S = 50, 10, 4
SOME = 8  # threads and files that libraries open once; a leak would be one for each cycle
MOST_BYTES = 5_000_000
PROGRAM = """
import ctypes, gc, os, re, sys, threading, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import numpy as np
from safetensors.numpy import save
from support.fake_engine import wait_for
from support.repositories import AUTHORISED, answer, change, index, infer, serving, version
from support.served import Wire, post
import mindspore_lite as mslite

def own_bytes():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free belongs to nobody, whichever thread freed it
    # not pages of files: those of a library are private once no other process maps it
    text = Path("/proc/self/status").read_text()
    (found,) = re.findall(r"^RssAnon:[\t ]+([0-9]+) kB", text, re.MULTILINE)
    return 1024 * int(found)

def threads():
    # those that waited for answers of a process end by themselves, 10 s later; gRPC's are made
    # when the first probe needs them
    names = [one.name for one in threading.enumerate()]
    return sum(not name.startswith(("mslite-answer", "mslite-grpc")) for name in names)

root = Path({root!r})
context = mslite.Context()
context.parallel.workers_num = context.cpu.thread_num = 1
context.parallel.config_info = {{"ascend_context": {{"variable_weights_list": "factor"}}}}
more = {{"context": context}} if {cycle!r} == "update" else {{}}
with serving(root, isolation={isolation!r}, **more) as server, Wire(server.http_port) as wire:
    def update(turn):
        body = save({{"factor": np.full(1, turn, np.float32)}})
        path = "/v2/repository/models/m/weights"
        assert wire.ask(post(path, body, AUTHORISED)).status == 200
        assert answer(wire.ask(infer())) == ("1", turn)

    def reload(turn):
        version(root, "m", 1, turn)
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == ("1", turn)
        assert change(wire, "m", "unload").status == 200
        wait_for(lambda: index(wire)["m", "1"] == ("UNAVAILABLE", "unloaded"))

    turn, due_s = 0, time.monotonic() + {warm_s}  # until all that starts later has started
    while turn < {warm} or time.monotonic() < due_s:
        turn += 1
        {cycle}(turn)
    before = own_bytes(), threads(), len(os.listdir("/proc/self/fd"))
    for turn in range({cycles}):
        {cycle}(turn + 10_000)
    def grown():
        now = own_bytes(), threads(), len(os.listdir("/proc/self/fd"))
        return [b - a for a, b in zip(before, now)]

    # what is on its way out, or looked at just now, is not kept: threads that end, files of /proc
    print(*map(min, zip(*(grown() for _ in range(20)))))
"""


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("cycle", ["reload", "update"])
def test_nothing_grows(tmp_path: Path, isolation: str, cycle: str) -> None:
    version(tmp_path, "m", 1, 1)
    code = PROGRAM.format(
        tests=str(Path(__file__).parents[1]),
        root=str(tmp_path),
        isolation=isolation,
        cycle=cycle,
        warm=WARM,
        cycles=CYCLES,
        warm_s=WARM_S,
    )
    # a thread of its own may get an arena of its own, whose first pages are no growth
    env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    grown, threads, files = map(int, done.stdout.split())
    assert grown < MOST_BYTES
    assert threads < SOME and files < SOME
