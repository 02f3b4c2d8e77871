"""graph/storage.py: one storage, several names; what in-place operators change, readers see."""

from __future__ import annotations

import numpy as np
import pytest
from support.mindir_builder import Net
from support.running import run

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.storage import MAX_TUPLE, Slot, birth_mark, stored, take_back
from mindspore_lite.mindir import records as r

X = np.array([1, 2, 3], np.float32)


# --- slots ----------------------------------------------------------------------------------------


def test_a_slot_reads_what_was_written_last() -> None:
    slot = Slot(1)
    assert slot.read() == 1
    slot.write(2)
    assert slot.read() == 2


def test_a_tuple_of_slots_reads_as_plain_values() -> None:
    inner = Slot(1)
    outer = Slot((inner, Slot([Slot(2)])))
    assert outer.read() == (1, [2])
    inner.write(5)
    assert outer.read() == (5, [2])


def test_stored_gives_every_element_a_slot_of_its_own() -> None:
    slot = stored((1, [2, 3]))
    first, second = slot.items()
    first.write(7)
    second.items()[0].write(8)
    assert slot.read() == (7, [8, 3])


def test_only_tuples_have_items() -> None:
    with pytest.raises(UnsupportedOpError, match="a tuple was expected"):
        Slot(1).items()


def view_of(base: Slot, word: str) -> Slot:
    """A view that adds a word to what it is taken from."""
    take = lambda value: f"{value} {word}"  # noqa: E731
    return stored(take(base.read()), base.view(take, lambda old, new, take: f"<{old}, {new}>"))


def test_writing_the_base_reaches_its_views() -> None:
    base = Slot("base")
    view = view_of(base, "view")
    base.write("new")
    assert base.read() == "new"
    assert view.read() == "new view"


def test_writing_a_view_reaches_its_base_and_other_views() -> None:
    base = Slot("base")
    one, other = view_of(base, "one"), view_of(base, "other")
    one.write("new")
    assert one.read() == "new"
    assert base.read() == "<base, new>"
    assert other.read() == "<base, new> other"


def test_a_view_of_a_view_belongs_to_the_same_storage() -> None:
    base = Slot("base")
    view = view_of(base, "view")
    deep = view_of(view, "deep")
    base.write("new")
    assert deep.read() == "new view deep"
    view.write("other")
    assert deep.read() == "other deep"
    deep.write("last")
    assert view.read() == "<other, last>"
    assert base.read() == "<<new, other>, <other, last>>"


def test_views_in_a_tuple_belong_to_the_storage_too() -> None:
    base = Slot("ab")
    parts = stored(("a", "b"), base.view(tuple, lambda old, new, take: old.replace(take(old), new)))
    base.write("xy")
    assert parts.read() == ("x", "y")
    parts.items()[1].write("z")
    assert base.read() == "xz"
    assert parts.items()[0].read() == "x"


def test_views_of_views_without_end_are_refused() -> None:
    slot = Slot(1)
    with pytest.raises(ModelFileError, match="views of views deeper than 100 levels"):
        for _ in range(200):
            slot = stored(1, slot.view(int, max))


def test_a_stale_slot_that_is_written_itself_is_good_again() -> None:
    base = Slot("base")
    view = view_of(base, "view")
    base.write("new")
    view.write("newer")
    assert view.read() == "newer"


def test_a_failure_anywhere_in_a_tuple_is_a_failure() -> None:
    assert Slot.of_failure().failed
    assert not Slot((Slot(1), Slot(2))).failed
    assert Slot((Slot(1), Slot([Slot.of_failure()]))).failed


def test_tuples_that_double_at_every_level_are_refused_in_no_time() -> None:
    """Sixty nodes of a hostile file would else be walked 2**60 times."""
    slot = Slot(1)
    with pytest.raises(ModelFileError, match="tuples of more than"):
        for _ in range(60):
            slot = Slot((slot, slot))


def test_tuples_nested_without_end_are_refused() -> None:
    slot = Slot(1)
    with pytest.raises(ModelFileError, match="nested deeper than"):
        for _ in range(5000):
            slot = Slot((slot,))


def test_a_tuple_of_many_values_is_fine() -> None:
    assert len(Slot(tuple(Slot(i) for i in range(MAX_TUPLE - 1))).items()) == MAX_TUPLE - 1


# --- models ---------------------------------------------------------------------------------------


def test_later_loads_of_either_name_see_the_new_value() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    alias = net.call("Depend", x, u)
    written = net.call("InplaceAddExt", alias, net.constant(np.ones(3, np.float32)),
                       net.constant(1), u)  # fmt: skip
    state = net.call("UpdateState", u, written)
    outputs = [net.call("Load", name, state) for name in (x, alias, written)]
    for got in run(net.model(net.tuple(*outputs)), X):
        np.testing.assert_array_equal(got, X + 1)


def test_raw_aliases_at_the_output_see_the_new_value() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    net.call("InplaceMuls", x, net.constant(3), u)
    (got,) = run(net.model(x), X)
    np.testing.assert_array_equal(got, X * 3)


def test_a_value_computed_before_the_change_stays() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    before = net.call("Neg", x)
    net.call("InplaceMuls", x, net.constant(3), u)
    after = net.call("Neg", x)
    old, new = run(net.model(net.tuple(before, after)), X)
    np.testing.assert_array_equal(old, -X)
    np.testing.assert_array_equal(new, -3 * X)


@pytest.mark.parametrize("copier", ["TensorMove", "Copy", "Clone", "CopyToDevice"])
def test_a_snapshot_keeps_the_old_value(copier: str) -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    kept = net.call(copier, net.call("Load", x, u))
    net.call("InplaceAddsExt", x, net.constant(1), net.constant(1), u)
    old, new = run(net.model(net.tuple(kept, x)), X)
    np.testing.assert_array_equal(old, X)
    np.testing.assert_array_equal(new, X + 1)


def test_a_change_of_a_snapshot_does_not_reach_the_source() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    copy = net.call("TensorMove", x)
    net.call("InplaceAddsExt", copy, net.constant(1), net.constant(1), u)
    source, changed = run(net.model(net.tuple(x, copy)), X)
    np.testing.assert_array_equal(source, X)
    np.testing.assert_array_equal(changed, X + 1)


def test_changes_follow_one_another() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    for primitive, value in (("InplaceMuls", 2), ("InplaceAddsExt", 3), ("InplaceDivs", 5)):
        more = [net.constant(1)] if primitive == "InplaceAddsExt" else []
        net.call(primitive, x, net.constant(value), *more, u)
    (got,) = run(net.model(x), X)
    np.testing.assert_allclose(got, (X * 2 + 3) / 5, rtol=1e-6)


def test_adding_a_value_to_itself_reads_before_it_writes() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    net.call("InplaceAddExt", x, x, net.constant(1), u)
    (got,) = run(net.model(x), X)
    np.testing.assert_array_equal(got, X * 2)


def test_an_element_of_a_tuple_is_the_value_itself() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    item = net.call("TupleGetItem", net.tuple(x, x), net.constant(1))
    net.call("InplaceMuls", item, net.constant(2), u)
    (got,) = run(net.model(x), X)
    np.testing.assert_array_equal(got, X * 2)


@pytest.mark.parametrize("writer", ["InplaceAddExt", "AssignAdd"])
def test_a_weight_that_the_next_run_would_find_changed_is_refused(writer: str) -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call(writer, weight, x, u)
    with pytest.raises(UnsupportedOpError, match="changes its parameter 'w' and reads it"):
        from_mindir(net.model(net.call("Load", weight, u)))


def test_a_weight_read_before_it_is_assigned_is_refused_even_through_a_cast() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    before = net.call("Cast", net.call("Load", weight, u), net.constant(44))
    net.call("Assign", weight, x, u)
    with pytest.raises(UnsupportedOpError, match="changes its parameter 'w' and reads it"):
        from_mindir(net.model(before))


def test_a_weight_assigned_before_it_is_read_keeps_no_state() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    weight = net.weight("w", X)
    net.call("Assign", weight, x, u)
    (got,) = run(net.model(net.call("Neg", net.call("Load", weight, u))), X * 3)
    np.testing.assert_array_equal(got, X * -3)


def test_a_counter_that_no_result_depends_on_is_left_out() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    net.call("AssignAdd", net.weight("count", X), x, u)
    (got,) = run(net.model(net.call("Neg", x)), X)
    np.testing.assert_array_equal(got, -X)


def test_a_view_read_after_its_base_changed_shows_the_change() -> None:
    net = Net()
    x, u = net.input("x", (2, 3)), net.monad()
    turned = net.call("TransposeView", x, net.constant((1, 0)), u)
    parts = net.call("UnstackExtView", x, net.constant(0), u)
    net.call("InplaceMuls", x, net.constant(2), u)
    second = net.call("TupleGetItem", parts, net.constant(1))
    pair = np.stack([X, X + 3])
    late, row = run(net.model(net.tuple(net.call("Neg", turned), second)), pair)
    np.testing.assert_array_equal(late, -2 * pair.T)
    np.testing.assert_array_equal(row, 2 * pair[1])


def test_a_base_that_is_read_after_a_view_changed_shows_the_change() -> None:
    """What `x[1:3, 0] += 1` and `x[0] = 7` are in files made for Ascend."""
    net = Net()
    x, u = net.input("x", (3, 4)), net.monad()
    rows = net.call("SliceExtView", x, *map(net.constant, (0, 1, 3, 1)), u)
    column = net.call("SelectExtView", rows, net.constant(1), net.constant(0), u)
    net.call("InplaceAddsExt", column, net.constant(1.0), net.constant(1), u)
    _, last = (net.call("TupleGetItem", net.call("ChunkView", x, *map(net.constant, (2, 1)), u),
                        net.constant(i)) for i in range(2))  # fmt: skip
    net.call("InplaceMuls", last, net.constant(2.0), u)
    numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = numbers.copy()
    wanted[1:3, 0] += 1
    wanted[:, 2:] *= 2
    got, middle = run(net.model(net.tuple(x, rows)), numbers)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(middle, wanted[1:3])


def test_a_view_read_before_the_change_is_fine() -> None:
    net = Net()
    x, u = net.input("x", (3,)), net.monad()
    view = net.call("ExpandDimsView", x, net.constant(0), u)
    used = net.call("Neg", view)
    net.call("InplaceMuls", x, net.constant(2), u)
    negative, doubled = run(net.model(net.tuple(used, x)), X)
    np.testing.assert_array_equal(negative, -X[None])
    np.testing.assert_array_equal(doubled, 2 * X)


def test_a_change_inside_a_called_graph_reaches_the_caller() -> None:
    inner = Net("inner")
    value, u = inner.input("v", (3,)), inner.input("u", type=r.OtherType("UMonadType"))
    changed = inner.call("InplaceMuls", value, inner.constant(4), u)
    net = Net()
    x, state = net.input("x", (3,)), net.monad()
    net.call(r.GraphRef("inner"), x, state)
    (got,) = run(net.model(x, functions=[inner.graph(changed)]), X)
    np.testing.assert_array_equal(got, X * 4)


def test_a_constant_changed_by_one_call_of_a_graph_is_as_before_in_the_next() -> None:
    inner = Net("inner")
    y, u = inner.input("y", (3,)), inner.monad()
    one = inner.constant(np.ones(3, np.float32))
    inner.call("InplaceAddExt", one, y, inner.constant(1), u)
    function = inner.graph(inner.call("Load", one, u))
    net = Net()
    x = net.input("x", (3,))
    first, second = (net.call(r.GraphRef("inner"), x) for _ in range(2))
    got = run(net.model(net.tuple(first, second), functions=[function]), X)
    np.testing.assert_array_equal(got, [X + 1, X + 1])


def test_writes_can_be_taken_back() -> None:
    base = Slot("base")
    view = view_of(base, "view")
    changes = base.write("new") + view.write("newer")
    assert base.read() == "<new, newer>"
    changes += base.spoil()
    for slot in (base, view):
        assert slot.spoiled
        with pytest.raises(UnsupportedOpError, match="read after its storage was changed"):
            slot.read()
    take_back(changes)
    assert (base.read(), view.read()) == ("base", "base view")


def test_a_slot_knows_whether_it_was_there_before() -> None:
    old = Slot(1)
    mark = birth_mark()
    assert old.birth < mark < Slot(2).birth


def test_what_may_share_a_storage_is_unreadable_once_one_is_written() -> None:
    one, two, three, other = Slot("one"), Slot("two"), Slot("three"), Slot("other")
    two.may_share([one])
    three.may_share([two])  # and so perhaps with the first
    assert one.kin == three.kin != other.kin
    changes = one.write("new")
    assert (one.read(), other.read()) == ("new", "other")
    for slot in (two, three):
        with pytest.raises(UnsupportedOpError, match="storage was changed in place"):
            slot.read()
    take_back(changes)
    assert (one.read(), two.read(), three.read()) == ("one", "two", "three")
    two.write("newer")
    assert two.read() == "newer"
    assert one.spoiled
