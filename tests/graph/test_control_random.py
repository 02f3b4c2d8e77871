"""Random programs with `if`, `while`, aliases and in-place updates, against a plain interpreter.

A program may be refused, where only the run could tell which values share a storage; what is not
refused must compute what Python would.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.interpreter import Interpreter
from support.mindir_builder import Net, tensor_type
from support.running import run

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir import records as r

SHAPE = (2, 2)
VARIABLES = 3
STATEMENTS = ("add", "sub", "in place", "in place", "alias", "view", "copy", "if", "while")


class Program:
    """A random program: its main graph, and the graphs that its statements needed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.functions: list[r.Graph] = []
        net = Net()
        names = [net.input(f"x{i}", SHAPE) for i in range(VARIABLES)]
        names = [net.call("Tanh", name) for name in names]
        self.model = net.model(net.tuple(*self.block(net, names, 2)), functions=self.functions)

    def block(self, net: Net, names: list[str], depth: int) -> list[str]:
        """Some statements; returns what the variables are called after them."""
        names = list(names)
        for _ in range(self.rng.randint(1, 4)):
            self.statement(net, names, depth)
        return names

    def statement(self, net: Net, names: list[str], depth: int) -> None:
        rng, one = self.rng, net.constant(1)
        i, j, k = (rng.randrange(VARIABLES) for _ in range(3))
        how = rng.choice(
            ["add", "sub", "in place", "in place", "alias", "view", "copy", "if", "while"]
        )
        if how in ("if", "while") and depth == 0:
            how = "in place"
        if how == "add":
            names[i] = net.call("Tanh", net.call("Add", names[j], names[k]))
        elif how == "sub":
            names[i] = net.call("Sub", names[j], names[k])
        elif how == "in place":
            other = net.call("Tanh", names[j])
            names[i] = net.call("InplaceAddExt", names[i], other, one, net.monad())
        elif how == "alias":
            names[i] = net.call("Load", names[j], net.monad())
        elif how == "view":
            turn = net.constant((1, 0))
            names[i] = net.call("TransposeView", names[j], turn, net.monad())
        elif how == "copy":
            names[i] = net.call("TensorMove", names[j])
        elif how == "if":
            self.branches(net, names, depth)
        else:
            self.loop(net, names, depth)

    def graph(self, net: Net, result: str) -> str:
        self.functions.append(net.graph(result))
        return net.name

    def branches(self, net: Net, names: list[str], depth: int) -> None:
        total = net.call("ReduceSum", names[0], net.constant(()), type=tensor_type(()))
        options = []
        for _ in range(2):
            inner = Net(f"branch{len(self.functions)}_{self.rng.randrange(10**9)}")
            given = [inner.input(f"v{i}", SHAPE) for i in range(VARIABLES)]
            graph = self.graph(inner, inner.tuple(*self.block(inner, given, depth - 1)))
            options.append(net.call("Partial", graph, *names))
        condition = net.call("Greater", total, net.constant(np.float32(self.rng.uniform(-1, 1))))
        result = net.call(r.ValueRef(net.call("Switch", condition, *options)))
        names[:] = [net.call("TupleGetItem", result, net.constant(i)) for i in range(VARIABLES)]

    def loop(self, net: Net, names: list[str], depth: int) -> None:
        tag = f"{len(self.functions)}_{self.rng.randrange(10**9)}"
        header, body, out = Net(f"header{tag}"), Net(f"body{tag}"), Net(f"exit{tag}")
        counter, *values = self.inputs(header)
        rounds = header.constant(np.asarray(self.rng.randrange(4)))
        again = header.call("Partial", body.name, counter, *values)
        leave = header.call("Partial", out.name, *values)
        switch = header.call("Switch", header.call("Less", counter, rounds), again, leave)
        self.graph(header, header.call(r.ValueRef(switch)))
        counter, *values = self.inputs(body)
        values = self.block(body, values, depth - 1)
        following = body.call("Add", counter, body.constant(np.asarray(1)))
        self.graph(body, body.call(r.GraphRef(header.name), following, *values))
        self.graph(out, out.tuple(*[out.input(f"v{i}", SHAPE) for i in range(VARIABLES)]))
        result = net.call(r.GraphRef(header.name), net.constant(np.asarray(0)), *names)
        names[:] = [net.call("TupleGetItem", result, net.constant(i)) for i in range(VARIABLES)]

    @staticmethod
    def inputs(net: Net) -> list[str]:
        values = [net.input(f"v{i}", SHAPE) for i in range(VARIABLES)]
        counter = net.input("counter", (), np.int64)
        net.inputs = [net.inputs[-1], *net.inputs[:-1]]
        return [counter, *values]


def computes_what_python_would(seed: int) -> bool:
    """Whether the program was taken; a wrong result fails the test."""
    model = Program(seed).model
    rng = np.random.default_rng(seed)
    taken = False
    for _ in range(2):
        inputs = [rng.normal(size=SHAPE).astype(np.float32) for _ in range(VARIABLES)]
        try:
            got = run(model, *inputs)
        except UnsupportedOpError as exc:
            assert "storage was changed in place" in str(exc)
            return False
        taken = True
        for found, wanted in zip(got, Interpreter(model).run(*inputs), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{seed}")
    return taken


@pytest.mark.parametrize("part", range(8))
def test_random_programs_compute_what_python_would(part: int) -> None:
    taken = sum(computes_what_python_would(part * 1000 + k) for k in range(25))
    assert taken >= 15  # the others change values that may or may not be shared
