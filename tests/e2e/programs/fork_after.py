"""fork_after.py MODEL STATE: forks a child that builds the model, from a parent in that state.

imported: the parent knows the package; context: it made Context and Tensor; closed: it has run a
model and a runner, and closed them; open: it still has them, and the child tries them first.
"""
# ruff: noqa: T201 - a program prints

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection

import numpy as np

import mindspore_lite as mslite

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def built(path: str, context: mslite.Context | None = None) -> mslite.Model:
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR, context)
    return model


def values(model: mslite.Model | mslite.ModelParallelRunner) -> list[float]:
    return [float(v) for v in model.predict([X])[0].get_data_to_numpy()[:, 0]]


def child(pipe: Connection, path: str, inherited: list, context: mslite.Context | None) -> None:
    for model in inherited:
        try:
            values(model)
        except RuntimeError as exc:
            pipe.send(str(exc))
        model.close()
    with built(path, context) as model:
        pipe.send(values(model))


def main(path: str, state: str) -> None:
    context, inherited = None, []
    if state == "context":
        context = mslite.Context()
        context.cpu.thread_num = 2
        mslite.Tensor(X).get_data_to_numpy()
    elif state in ("closed", "open"):
        inherited = [built(path), mslite.ModelParallelRunner()]
        inherited[1].build_from_file(path)
        for model in inherited:
            values(model)
        while state == "closed" and inherited:
            inherited.pop().close()
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=child, args=(theirs, path, inherited, context))
    process.start()
    theirs.close()
    try:
        while True:
            print("child:", ours.recv())
    except EOFError:
        process.join()
    print("exit code:", process.exitcode)
    if state == "open":
        print("parent:", *(values(model) for model in inherited))


if __name__ == "__main__":
    main(*sys.argv[1:])
