"""RNN, GRU and LSTM: torch's own kernels where they compute the same, else step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.errors import UnsupportedOpError

Activation = Callable[[torch.Tensor], torch.Tensor]
States = tuple[torch.Tensor, ...]  # h, and c of an LSTM
Step = Callable[[torch.Tensor, States], States]  # (input products of a step, states) -> states

# name -> (function, alpha, beta); None where it takes no such number
_ACTIVATIONS: dict[str, tuple[Callable[..., torch.Tensor], float | None, float | None]] = {
    "relu": (torch.relu, None, None),
    "tanh": (torch.tanh, None, None),
    "sigmoid": (torch.sigmoid, None, None),
    "softsign": (F.softsign, None, None),
    "softplus": (F.softplus, None, None),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (F.leaky_relu, 0.01, None),
    "thresholdedrelu": (lambda x, a: torch.where(x > a, x, 0), 1.0, None),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: (a * x + b).clamp(0, 1), 0.2, 0.5),
    "elu": (F.elu, 1.0, None),
}


@dataclass(frozen=True)
class Shared:
    """What the three operators have in common: their inputs and attributes."""

    x: torch.Tensor  # (steps, batch, features)
    w: torch.Tensor  # (directions, gates * hidden, features)
    r: torch.Tensor  # (directions, gates * hidden, hidden)
    b: torch.Tensor | None  # (directions, 2 * gates * hidden)
    lens: torch.Tensor | None
    states: States | None  # each (directions, batch, hidden)
    direction: str
    clip: float | None
    activations: list[list[Activation]]  # of each direction
    usual: bool  # the activations are those that are usual

    @property
    def hidden(self) -> int:
        """The size of a state."""
        return int(self.r.shape[-1])

    def biases(self, at: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Of a direction: what is added to the products with the input and with the state."""
        if self.b is None:
            return None, None
        first, second = self.b[at].chunk(2)
        return first, second

    def clipped(self, x: torch.Tensor) -> torch.Tensor:
        """What goes into an activation."""
        return x if self.clip is None else x.clamp(-self.clip, self.clip)


def _activations(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Activation]:
    """Functions by name; alphas and betas are taken in order by those that want one."""
    left = [list(alphas or ()), list(betas or ())]
    found: list[Activation] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise UnsupportedOpError(f"activation {name!r} is not one of ONNX")
        function, *defaults = _ACTIVATIONS[name.lower()]
        wanted = [(given, d) for given, d in zip(left, defaults, strict=True) if d is not None]
        numbers = [given.pop(0) if given else default for given, default in wanted]
        found.append(partial(_called, function, numbers))
    return found


def _called(
    function: Callable[..., torch.Tensor], numbers: list[float], x: torch.Tensor
) -> torch.Tensor:
    return function(x, *numbers)


def _run(given: Shared, step_of: Callable[[int], Step], outputs: int, layout: int) -> States:
    """All directions, step after step; the outputs of the operator."""
    count, batch = given.w.shape[0], given.x.shape[1]
    states = given.states or tuple(
        given.x.new_zeros(count, batch, given.hidden) for _ in range(outputs - 1)
    )
    ys, ends = [], []
    for at in range(count):
        backwards = given.direction == "reverse" or at == 1
        y, end = _direction(given, at, step_of(at), tuple(s[at] for s in states), backwards)
        ys.append(y)
        ends.append(end)
    y = torch.stack(ys, 1)
    return _laid_out((y, *(torch.stack(s) for s in zip(*ends, strict=True))), layout)


def _direction(
    given: Shared, at: int, step: Step, states: States, backwards: bool
) -> tuple[torch.Tensor, States]:
    """One direction: the states h after each step, and the last states."""
    products = F.linear(given.x, given.w[at], given.biases(at)[0])  # of all steps at once
    length = products.shape[0]
    found: list[torch.Tensor] = []
    for now in range(length - 1, -1, -1) if backwards else range(length):
        new = step(products[now], states)
        if given.lens is None:
            states = new
            found.append(new[0])
            continue
        runs = (given.lens > now).unsqueeze(1)  # an item that has ended keeps its states
        states = tuple(torch.where(runs, a, b) for a, b in zip(new, states, strict=True))
        found.append(torch.where(runs, new[0], 0))
    if not found:
        return products.new_zeros(0, products.shape[1], given.hidden), states
    return torch.stack(found[::-1] if backwards else found), states


def _laid_out(results: States, layout: int) -> States:
    """Y, Y_h and Y_c with the batch where it is wanted."""
    if not layout:
        return results
    y, *states = results
    return (y.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in states))


def _fused(
    given: Shared, compute: Callable[..., States], order: Sequence[int], layout: int
) -> States:
    """The operator by torch's own kernel, which has the gates in another order."""
    count, batch, hidden = given.w.shape[0], given.x.shape[1], given.hidden
    weights = _in_one_piece(given, order)
    zeros = given.x.new_zeros(count, batch, hidden)
    states = given.states or (zeros, zeros)[: 2 if len(order) == 4 else 1]
    start = list(states) if len(order) == 4 else states[0]
    y, *ends = compute(
        given.x, start, weights, given.b is not None, 1, 0.0, False, count == 2, False
    )
    y = y.reshape(y.shape[0], batch, count, hidden).transpose(1, 2)
    return _laid_out((y, *ends), layout)


def _in_one_piece(given: Shared, order: Sequence[int]) -> list[torch.Tensor]:
    """The weights as torch takes them; in memory, matrices before biases, as cuDNN wants them."""
    directions = range(given.w.shape[0])
    matrices = [part[at] for at in directions for part in (given.w, given.r)]
    biases = [b for at in directions for b in given.biases(at) if b is not None]
    parts = matrices + biases
    pieces = [part.chunk(len(order))[gate].reshape(-1) for part in parts for gate in order]
    flat = torch.cat(pieces).split([part.numel() for part in parts])
    whole = [one.view(part.shape) for one, part in zip(flat, parts, strict=True)]
    first, last = whole[: len(matrices)], whole[len(matrices) :]
    pairs = (slice(2 * at, 2 * at + 2) for at in directions)
    return [weight for pair in pairs for weight in first[pair] + last[pair]]


def _shared(
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None,
    lens: torch.Tensor | None,
    states: Sequence[torch.Tensor | None],
    usual: Sequence[str],
    direction: str,
    clip: float | None,
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    layout: int,
) -> Shared:
    """The common inputs and attributes, with the batch behind the steps."""
    if layout:
        x = x.transpose(0, 1)
        states = [None if s is None else s.transpose(0, 1) for s in states]
    count = w.shape[0]
    names = list(names or [*usual] * count)
    functions = _activations(names, alphas, betas)
    each = len(usual)
    given = None
    if any(s is not None for s in states):
        zeros = x.new_zeros(count, x.shape[1], r.shape[-1])
        given = tuple(zeros if s is None else s for s in states)
    return Shared(
        x,
        w,
        r,
        b,
        lens,
        given,
        direction,
        clip,
        [functions[at * each : (at + 1) * each] for at in range(count)],
        [name.lower() for name in names] == [name.lower() for name in usual] * count,
    )


def _picked(results: States, outputs: int) -> torch.Tensor | States:
    return results[:outputs] if outputs > 1 else results[0]


def _is_plain(given: Shared) -> bool:
    """Whether torch's own kernels know everything that is asked for."""
    return (
        given.usual
        and given.clip is None
        and given.lens is None
        and given.direction != "reverse"
        and given.x.shape[0] > 0
    )


@kernel("RNN", half="narrow")
def rnn(
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    sequence_lens: torch.Tensor | None = None,
    initial_h: torch.Tensor | None = None,
    *,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    outputs: int,
) -> torch.Tensor | States:
    """h = f(x W + h R + b)."""
    given = _shared(
        x, w, r, b, sequence_lens, [initial_h], ["Tanh"], direction, clip,
        activations, activation_alpha, activation_beta, layout,
    )  # fmt: skip
    if _is_plain(given):
        return _picked(_fused(given, torch.rnn_tanh, [0], layout), outputs)

    def step_of(at: int) -> Step:
        (f,) = given.activations[at]

        def step(product: torch.Tensor, states: States) -> States:
            return (f(given.clipped(product + F.linear(states[0], r[at], given.biases(at)[1]))),)

        return step

    return _picked(_run(given, step_of, 2, layout), outputs)


@kernel("GRU", half="narrow")
def gru(
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    sequence_lens: torch.Tensor | None = None,
    initial_h: torch.Tensor | None = None,
    *,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
    outputs: int,
) -> torch.Tensor | States:
    """Gates z and r, and a new h; r is applied to h before or after its product."""
    given = _shared(
        x, w, r, b, sequence_lens, [initial_h], ["Sigmoid", "Tanh"], direction, clip,
        activations, activation_alpha, activation_beta, layout,
    )  # fmt: skip
    if linear_before_reset and _is_plain(given):
        return _picked(_fused(given, torch.gru, [1, 0, 2], layout), outputs)

    def step_of(at: int) -> Step:
        f, g = given.activations[at]
        hidden = given.hidden
        gates, new = r[at].split([2 * hidden, hidden])
        bias = given.biases(at)[1]
        gates_bias, new_bias = (None, None) if bias is None else bias.split([2 * hidden, hidden])

        def step(product: torch.Tensor, states: States) -> States:
            (h,) = states
            inward, fresh = product.split([2 * hidden, hidden], -1)
            both = f(given.clipped(inward + F.linear(h, gates, gates_bias)))
            update, reset = both.chunk(2, -1)
            if linear_before_reset:
                recalled = reset * F.linear(h, new, new_bias)
            else:
                recalled = F.linear(reset * h, new, new_bias)
            candidate = g(given.clipped(fresh + recalled))
            return ((1 - update) * candidate + update * h,)

        return step

    return _picked(_run(given, step_of, 2, layout), outputs)


@kernel("LSTM", half="narrow")
def lstm(
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    sequence_lens: torch.Tensor | None = None,
    initial_h: torch.Tensor | None = None,
    initial_c: torch.Tensor | None = None,
    p: torch.Tensor | None = None,
    *,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
    outputs: int,
) -> torch.Tensor | States:
    """Gates i, o and f, and a new c; p lets the gates see c."""
    given = _shared(
        x, w, r, b, sequence_lens, [initial_h, initial_c], ["Sigmoid", "Tanh", "Tanh"], direction,
        clip, activations, activation_alpha, activation_beta, layout,
    )  # fmt: skip
    if p is None and not input_forget and _is_plain(given):
        return _picked(_fused(given, torch.lstm, [0, 2, 3, 1], layout), outputs)

    def step_of(at: int) -> Step:
        f, g, k = given.activations[at]
        bias = given.biases(at)[1]
        looks = (0, 0, 0) if p is None else p[at].chunk(3)  # of i, o and f

        def step(product: torch.Tensor, states: States) -> States:
            h, c = states
            gates = (product + F.linear(h, r[at], bias)).chunk(4, -1)
            i = f(given.clipped(gates[0] + looks[0] * c))
            forget = 1 - i if input_forget else f(given.clipped(gates[2] + looks[2] * c))
            c = forget * c + i * g(given.clipped(gates[3]))
            o = f(given.clipped(gates[1] + looks[1] * c))
            return (o * k(c), c)

        return step

    return _picked(_run(given, step_of, 3, layout), outputs)
