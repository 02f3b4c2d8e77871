"""graph/control.py, branch.py and loop.py: If and Loop from functions that call each other.

tests/data/control holds what MindSpore makes of Python's `if` and `while`; these are the corners.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.mindir_builder import Net, tensor_type
from support.running import op_types, run

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.control import Reach, tail_of
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r

X = np.asarray([[1, -2, 3], [4, 5, -6]], np.float32)
SHAPE = (2, 3)
YES, NO = np.asarray(True), np.asarray(False)


def branch(name: str, make: Callable[[Net, str], str], shape: tuple[int, ...] = SHAPE) -> r.Graph:
    net = Net(name)
    return net.graph(make(net, net.input("v", shape)))


def choice(yes: r.Graph, no: r.Graph, cond_shape: tuple[int, ...] = ()) -> r.Model:
    """if cond: yes(x) else: no(x)."""
    net = Net()
    x, cond = net.input("x", SHAPE), net.input("cond", cond_shape, np.bool_)
    options = [net.call("Partial", g.name, x) for g in (yes, no)]
    switch = net.call("Switch", cond, *options)
    return net.model(net.call(r.ValueRef(switch)), functions=[yes, no])


def neg(net: Net, v: str) -> str:
    return net.call("Neg", v)


def keep(net: Net, v: str) -> str:
    return v


def test_a_switch_becomes_an_if() -> None:
    model = choice(branch("yes", neg), branch("no", keep))
    assert op_types(from_mindir(model)) == ["If"]
    np.testing.assert_array_equal(run(model, X, YES)[0], -X)
    np.testing.assert_array_equal(run(model, X, NO)[0], X)


def test_a_condition_may_have_one_element_in_any_shape() -> None:
    model = choice(branch("yes", neg), branch("no", keep), cond_shape=(1, 1))
    np.testing.assert_array_equal(run(model, X, np.asarray([[True]]))[0], -X)


def test_functions_without_arguments_of_their_own_get_those_of_the_call() -> None:
    yes, no = branch("yes", neg), branch("no", keep)
    net = Net()
    x, cond = net.input("x", SHAPE), net.input("cond", (), np.bool_)
    switch = net.call("Switch", cond, "yes", "no")
    model = net.model(net.call(r.ValueRef(switch), x), functions=[yes, no])
    np.testing.assert_array_equal(run(model, X, YES)[0], -X)


@pytest.mark.parametrize("truth", [True, False])
def test_a_constant_condition_leaves_one_branch(truth: bool) -> None:
    yes, no = branch("yes", neg), branch("no", lambda net, v: net.call("NoSuchOperator", v))
    if not truth:
        yes, no = branch("yes", lambda net, v: net.call("NoSuchOperator", v)), branch("no", neg)
    net = Net()
    x = net.input("x", SHAPE)
    switch = net.call("Switch", net.constant(truth), "yes", "no")
    model = net.model(net.call(r.ValueRef(switch), x), functions=[yes, no])
    assert op_types(from_mindir(model)) == ["Neg"]


def test_what_a_branch_lacks_is_reported_with_its_place() -> None:
    missing = branch("yes", lambda net, v: net.call("NoSuchOperator", v, scope="Default/there"))
    with pytest.raises(UnsupportedOpError, match=r"NoSuchOperator \(at Default/there\)"):
        from_mindir(choice(missing, branch("no", keep)))


def test_branches_may_return_numbers_and_nested_tuples() -> None:
    def nested(number: float) -> Callable[[Net, str], str]:
        def make(net: Net, v: str) -> str:
            return net.tuple(v, net.tuple(net.constant(number), net.constant(7)))

        return make

    model = choice(branch("yes", nested(1.5)), branch("no", nested(2.5)))
    x, number, seven = run(model, X, NO)
    np.testing.assert_array_equal(x, X)
    assert (number, seven) == (2.5, 7)
    assert (number.dtype, seven.dtype) == (np.float32, np.int64)


def test_branches_of_different_types_are_joined_in_the_wider_one() -> None:
    half = branch("yes", lambda net, v: net.call("Cast", v, net.constant(42)))
    model = choice(half, branch("no", keep))
    assert run(model, X, YES)[0].dtype == np.float32


def test_branches_that_return_tuples_of_different_lengths_are_refused() -> None:
    one = branch("yes", lambda net, v: net.tuple(v))
    two = branch("no", lambda net, v: net.tuple(v, v))
    with pytest.raises(UnsupportedOpError, match="tuples of different lengths"):
        from_mindir(choice(one, two))


def test_branches_that_return_functions_are_refused() -> None:
    one = branch("yes", lambda net, v: net.call("Partial", "yes", v))
    two = branch("no", lambda net, v: net.call("Partial", "no", v))
    with pytest.raises(UnsupportedOpError, match="cannot choose between"):
        from_mindir(choice(one, two))


def test_a_storage_changed_in_one_branch_is_changed_after_the_if() -> None:
    """And one that only the other branch changes keeps its value in this one."""
    change = Net("yes")
    v, u = change.input("v", SHAPE), change.monad()
    changed = change.graph(change.call("InplaceMuls", v, change.constant(10), u))
    net = Net()
    x, cond = net.input("x", SHAPE), net.input("cond", (), np.bool_)
    y = net.call("Abs", x)
    options = [net.call("Partial", name, y) for name in ("yes", "no")]
    result = net.call(r.ValueRef(net.call("Switch", cond, *options)))
    model = net.model(result, net.call("Neg", y), functions=[changed, branch("no", keep)])
    for truth, factor in ((YES, 10), (NO, 1)):
        got, negated = run(model, X, truth)
        np.testing.assert_array_equal(got, abs(X) * factor)
        np.testing.assert_array_equal(negated, -abs(X) * factor)


def test_a_storage_that_one_branch_changes_and_returns_is_returned_changed() -> None:
    change = Net("yes")
    v, u = change.input("v", SHAPE), change.monad()
    changed = change.graph(change.call("InplaceMuls", v, change.constant(10), u))
    model = choice(changed, branch("no", neg))
    np.testing.assert_array_equal(run(model, X, YES)[0], X * 10)
    np.testing.assert_array_equal(run(model, X, NO)[0], -X)


def test_a_view_of_a_storage_changed_in_a_branch_follows() -> None:
    change = Net("yes")
    v, u = change.input("v", SHAPE), change.monad()
    changed = change.graph(change.call("InplaceMuls", v, change.constant(10), u))
    net = Net()
    x, cond = net.input("x", SHAPE), net.input("cond", (), np.bool_)
    y = net.call("Abs", x)
    view = net.call("TransposeView", y, net.constant((1, 0)))
    options = [net.call("Partial", name, y) for name in ("yes", "no")]
    result = net.call(r.ValueRef(net.call("Switch", cond, *options)))
    model = net.model(result, net.call("Neg", view), functions=[changed, branch("no", keep)])
    for truth, factor in ((YES, 10), (NO, 1)):
        np.testing.assert_array_equal(run(model, X, truth)[1], -abs(X).T * factor)


def raises(net: Net, v: str) -> str:
    words = net.call("JoinedStr", net.constant("got "), v)
    net.call("raise", net.constant("ValueError"), words, net.constant("None"), net.monad())
    return v


@pytest.mark.parametrize("swap", [False, True])
def test_a_branch_that_raises_is_taken_to_be_never_met(swap: bool) -> None:
    sides = [branch("yes", raises), branch("no", neg)]
    yes, no = reversed(sides) if swap else sides
    assert op_types(from_mindir(choice(yes, no))) == ["Neg"]


def test_a_network_that_always_raises_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="raises an error whatever it is given"):
        from_mindir(choice(branch("yes", raises), branch("no", raises)))


def layers(count: int) -> r.Model:
    net = Net()
    x, i = net.input("x", SHAPE), net.input("i", (), np.int32)
    graphs = [
        branch(f"g{k}", lambda net, v, k=k: net.call("Muls", v, net.constant(k)))  # type: ignore[misc]
        for k in range(count)
    ]
    picked = net.call("switch_layer", i, net.tuple(*[g.name for g in graphs]))
    return net.model(net.call(r.ValueRef(picked), x), functions=graphs)


@pytest.mark.parametrize(("index", "factor"), [(0, 0), (3, 3), (-1, 3), (-4, 0), (-2, 2)])
def test_a_layer_is_switched_to_by_number(index: int, factor: int) -> None:
    (got,) = run(layers(4), X, np.asarray(index, np.int32))
    np.testing.assert_array_equal(got, X * factor)


def test_a_choice_of_too_many_layers_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="a choice of 21 functions, at most 20"):
        from_mindir(layers(21))


def test_a_constant_number_of_a_layer_needs_no_if() -> None:
    net = Net()
    x = net.input("x", SHAPE)
    picked = net.call("switch_layer", net.constant(-1), net.tuple("yes", "no"))
    model = net.model(
        net.call(r.ValueRef(picked), x), functions=[branch("yes", keep), branch("no", neg)]
    )
    assert op_types(from_mindir(model)) == ["Neg"]


@pytest.mark.parametrize("what", ["x", "cond"])
def test_calling_what_is_no_function_is_refused(what: str) -> None:
    net = Net()
    x = net.input("x", SHAPE)
    y = net.call(r.ValueRef(x), x, scope="Default/call")
    with pytest.raises(UnsupportedOpError, match=r"no function \(at Default/call\)"):
        from_mindir(net.model(y))


# --- loops ----------------------------------------------------------------------------------------


def counting(body: Callable[[Net, str, str], str]) -> r.Model:
    """while i < n: x = body(x, i); i += 1, as MindSpore writes it."""
    kinds = [((), np.int64), ((), np.int64), (SHAPE, np.float32)]
    header, round_ = Net("header"), Net("round")
    n, i, x = (header.input(k, *t) for k, t in zip("nix", kinds, strict=True))
    options = [header.call("Partial", "round", n, i, x), header.call("Partial", "exit", x)]
    switch = header.call("Switch", header.call("Less", i, n), *options)
    functions = [header.graph(header.call(r.ValueRef(switch)))]
    n, i, x = (round_.input(k, *t) for k, t in zip("nix", kinds, strict=True))
    following = round_.call("Add", i, round_.constant(np.asarray(1)))
    functions.append(
        round_.graph(round_.call(r.GraphRef("header"), n, following, body(round_, x, i)))
    )
    functions.append(branch("exit", neg))
    net = Net()
    x, n = net.input("x", SHAPE), net.input("n", (), np.int64)
    zero = net.constant(np.asarray(0))
    return net.model(net.call(r.GraphRef("header"), n, zero, x), functions=functions)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_graph_that_ends_in_calling_itself_becomes_a_loop(rounds: int) -> None:
    model = counting(lambda net, x, i: net.call("Add", x, x))
    graph = from_mindir(model)
    assert op_types(graph) == ["Loop", "Neg"]  # what follows the loop is not part of it
    loop = next(iter(graph.graph))
    assert len(loop.inputs) == 4  # no number of rounds, "go on", and i and x; n stays outside
    np.testing.assert_array_equal(run(model, X, np.asarray(rounds))[0], -X * 2**rounds)


def test_a_loop_that_changes_nothing_anyone_asks_for_goes_away() -> None:
    model = counting(keep_all)
    assert op_types(from_mindir(model)) == ["Neg"]
    np.testing.assert_array_equal(run(model, X, np.asarray(3))[0], -X)


def keep_all(net: Net, x: str, i: str) -> str:
    return x


def test_a_storage_changed_in_every_round_is_carried() -> None:
    model = counting(lambda net, x, i: net.call("InplaceMuls", x, net.constant(2), net.monad()))
    np.testing.assert_array_equal(run(model, X, np.asarray(3))[0], -X * 8)


def test_an_error_inside_a_round_is_reported_once() -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        from_mindir(counting(lambda net, x, i: net.call("NoSuchOperator", x, scope="Default/it")))
    assert str(caught.value).count("Default/it") == 1


def recursive(make: Callable[[Net, str], str]) -> r.Model:
    net = Net()
    y = net.call(r.GraphRef("again"), net.input("x", SHAPE))
    return net.model(y, functions=[branch("again", make)])


def test_a_loop_without_an_end_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="a loop that never ends"):
        from_mindir(recursive(lambda net, v: net.call(r.GraphRef("again"), v)))
    net = Net()
    with pytest.raises(UnsupportedOpError, match="a loop that never ends"):
        from_mindir(net.model(net.call(r.GraphRef("net"), net.input("x", SHAPE))))


def test_recursion_before_the_end_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="calls itself before its end"):
        from_mindir(recursive(lambda net, v: net.call("Neg", net.call(r.GraphRef("again"), v))))


def test_a_loop_that_changes_a_value_which_is_no_tensor_is_refused() -> None:
    header = Net("again")
    header.input("flag", type=r.OtherType("STRING"))
    cond = header.input("cond", (), np.bool_)
    more = header.call("Partial", "again", header.constant("other"), cond)
    switch = header.call("Switch", cond, more, header.call("Partial", "exit", cond))
    functions = [header.graph(header.call(r.ValueRef(switch))), branch("exit", keep, ())]
    net = Net()
    cond = net.input("cond", (), np.bool_)
    y = net.call(r.GraphRef("again"), net.constant("text"), cond)
    with pytest.raises(UnsupportedOpError, match="cannot choose between"):
        from_mindir(net.model(y, functions=functions))


def test_control_flow_nested_absurdly_deep_is_refused() -> None:
    functions = []
    for k in range(60):
        inner = Net(f"g{k}")
        v, cond = inner.input("v", SHAPE), inner.input("cond", (), np.bool_)
        if k == 0:
            functions.append(inner.graph(inner.call("Neg", v)))
            continue
        options = [inner.call("Partial", f"g{k - 1}", v, cond)] * 2
        switch = inner.call("Switch", cond, *options)
        functions.append(inner.graph(inner.call(r.ValueRef(switch))))
    net = Net()
    x, cond = net.input("x", SHAPE), net.input("cond", (), np.bool_)
    model = net.model(net.call(r.GraphRef("g59"), x, cond), functions=functions)
    with pytest.raises(UnsupportedOpError, match="nested more than 25 deep"):
        from_mindir(model)


def test_partial_functions_nested_absurdly_deep_do_not_exhaust_the_stack() -> None:
    net = Net()
    x = net.input("x", SHAPE)
    value = net.call("Partial", "neg", x)
    for _ in range(5000):
        value = net.call("Partial", value)
    model = net.model(net.call(r.ValueRef(value)), functions=[branch("neg", neg)])
    assert op_types(from_mindir(model)) == ["Neg"]


# --- what the walk asks of a file -----------------------------------------------------------------


def test_reach_goes_through_functions_that_are_only_handed_on() -> None:
    reach = Reach(counting(keep_all))
    assert reach.reaches("net", "exit")
    assert reach.reaches("header", "header")
    assert not reach.reaches("exit", "header")
    assert not reach.reaches("header", "header", without=["round"])


def test_a_call_is_the_tail_through_depend_and_update_state() -> None:
    net = Net("g")
    x, u = net.input("x", SHAPE), net.monad()
    called = net.call(r.GraphRef("g"), x)
    after = net.call("UpdateState", u, called)
    tail = tail_of(net.graph(net.call("Depend", called, after)))
    assert tail is not None
    assert tail.call.name == called


def test_a_call_whose_result_is_used_is_no_tail() -> None:
    net = Net("g")
    x = net.input("x", SHAPE, type=tensor_type(SHAPE))
    called = net.call(r.GraphRef("g"), x)
    net.call("Neg", called)
    assert tail_of(net.graph(called)) is None


def test_a_value_that_comes_out_of_a_branch_twice_has_two_names() -> None:
    """ONNX Runtime fills only one of two outputs of the same name."""
    pair = branch("yes", lambda net, v: net.tuple(*[net.call("Neg", v)] * 2))
    other = branch("no", lambda net, v: net.tuple(v, v))
    for truth, factor in ((YES, -1), (NO, 1)):
        for got in run(choice(pair, other), X, truth):
            np.testing.assert_array_equal(got, X * factor)
