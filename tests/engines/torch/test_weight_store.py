"""Weights on a device: layouts, packing, what is shared between shapes, what may be written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.fake_card import FakeCard
from torch import fx

from mindspore_lite.engines.torch import store as stores
from mindspore_lite.engines.torch.kernels.lower import Lowered, Weight
from mindspore_lite.engines.torch.store import ALIGNMENT, Store, laid_out

F32 = torch.float32


def lowered(**weights: tuple[Weight, torch.Tensor]) -> Lowered:
    """A module that has these parameters."""
    graph = fx.Graph()
    graph.output(())
    constants = {weight.name: value for weight, value in weights.values()}
    module = fx.GraphModule(torch.nn.Module(), graph)
    return Lowered(module, {k: w for k, (w, _) in weights.items()}, constants, {})


@pytest.mark.parametrize("on_card", [True, False])
@pytest.mark.parametrize(
    "shape, layout, strides",
    [
        ((2, 3, 4, 5), "channels_last", (60, 1, 15, 3)),
        ((2, 3, 2, 4, 5), "channels_last", (120, 1, 60, 15, 3)),
        ((3, 5), "transposed", (1, 3)),
        ((3, 5), "", (5, 1)),
        ((), "", ()),
        ((0, 5), "", (5, 1)),
    ],
)
def test_weights_lie_as_they_are_wanted(
    shape: tuple[int, ...], layout: Any, strides: tuple[int, ...], on_card: bool
) -> None:
    value = torch.randn(shape)
    for dtype in (F32, torch.float16):
        made = lowered(a=(Weight("a", dtype, layout), value))
        Store(FakeCard() if on_card else None, {}).fill(made)
        assert torch.equal(made.module.a, value.to(dtype))
        assert made.module.a.stride() == strides
        assert not made.module.a.requires_grad


def test_all_weights_of_a_first_build_lie_in_one_buffer() -> None:
    card = FakeCard()
    store = Store(card, {})
    first = {f"w{n}": (Weight(f"w{n}", F32), torch.randn(n + 1, 7)) for n in range(5)}
    made = lowered(**first, flag=(Weight("flag", torch.bool), torch.tensor([True, False])))
    store.fill(made)
    assert store.flat is not None
    for name in made.weights:
        parameter = getattr(made.module, name)
        assert parameter.untyped_storage().data_ptr() == store.flat.data_ptr()
        assert (parameter.data_ptr() - store.flat.data_ptr()) % ALIGNMENT == 0
    assert torch.equal(made.module.flag, torch.tensor([True, False]))
    flat = store.flat
    later = lowered(w0=first["w0"], more=(Weight("more", F32), torch.ones(3)))
    store.fill(later)
    assert store.flat is flat
    assert later.module.w0.data_ptr() == made.module.w0.data_ptr()
    assert torch.equal(later.module.more, torch.ones(3))
    assert later.module.more.untyped_storage().data_ptr() != flat.data_ptr()


def test_large_weights_arrive_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_STAGE_BYTES", 100)
    values = {f"w{n}": (Weight(f"w{n}", F32), torch.randn(40 * n + 1)) for n in range(4)}
    made = lowered(**values)
    Store(FakeCard(), {}).fill(made)
    for name, (_, value) in values.items():
        assert torch.equal(getattr(made.module, name), value)


def test_weights_on_the_host_are_not_copied_unless_they_may_change() -> None:
    value = np.ones((4, 4), np.float32)
    value.flags.writeable = False
    store = Store(None, {"v": value})
    made = lowered(
        v=(Weight("v", F32), torch.zeros(0)), w=(Weight("w", F32), torch.from_numpy(value.copy()))
    )
    store.fill(made)
    assert made.module.w.data_ptr() == made.constants["w"].data_ptr()
    assert made.module.v.data_ptr() != value.ctypes.data
    store.update({"v": value * 3})
    assert torch.equal(made.module.v.data, torch.full((4, 4), 3.0))
    store.update({})
    assert torch.equal(made.module.v.data, torch.ones(4, 4))
    assert value.max() == 1


def test_an_update_writes_every_form_of_a_weight() -> None:
    first = np.arange(6, dtype=np.float32).reshape(2, 3)
    store = Store(FakeCard(), {"v": first})
    forms = [Weight("v", F32), Weight("v", torch.float16), Weight("v", F32, "transposed")]
    made = lowered(**{f"v{n}": (w, torch.zeros(0)) for n, w in enumerate(forms)})
    store.fill(made)
    assert store.flat is None  # what changes is shared with no other process
    places = [getattr(made.module, f"v{n}").data_ptr() for n in range(3)]
    store.update({"v": first + 10})
    for n, weight in enumerate(forms):
        parameter = getattr(made.module, f"v{n}")
        assert parameter.data_ptr() == places[n]
        assert torch.equal(parameter.data, torch.from_numpy(first + 10).to(weight.dtype))


def test_laid_out_has_the_order_of_memory() -> None:
    value = torch.arange(6).reshape(2, 3)
    memory = laid_out(value, Weight("w", torch.int64, "transposed"))
    assert memory.is_contiguous()
    assert memory.flatten().tolist() == [0, 3, 1, 4, 2, 5]
