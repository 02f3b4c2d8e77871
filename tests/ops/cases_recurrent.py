"""Rows for ops/recurrent.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

F16 = np.float16
STEPS, N, WIDTH, H = 4, 2, 3, 2  # H: hidden


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_steps(
    x: np.ndarray, h: Any, c: Any, w: Any, r: Any, b: Any, order: str = "ifgo"
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and cell states of all steps."""
    ys, cs = [], []
    for now in x:
        gate = dict(zip(order, np.split(now @ w.T + h @ r.T + b, 4, -1), strict=True))
        c = sigmoid(gate["f"]) * c + sigmoid(gate["i"]) * np.tanh(gate["g"])
        h = sigmoid(gate["o"]) * np.tanh(c)
        ys.append(h)
        cs.append(c)
    return np.stack(ys), np.stack(cs)


def gru_steps(x: np.ndarray, h: Any, w: Any, r: Any, bw: Any, br: Any, after: bool) -> np.ndarray:
    """Gates in the order r, z, h."""
    size, ys = h.shape[-1], []
    for now in x:
        reset, update, new = np.split(now @ w + bw, 3, -1)
        back = h @ r + br
        reset = sigmoid(reset + back[..., :size])
        update = sigmoid(update + back[..., size : 2 * size])
        last = (
            reset * back[..., 2 * size :]
            if after
            else (reset * h) @ r[:, 2 * size :] + br[2 * size :]
        )
        h = (1 - update) * np.tanh(new + last) + update * h
        ys.append(h)
    return np.stack(ys).astype(np.float32)


def blob(layers: int, ways: int, biases: int, width: int = WIDTH) -> tuple[np.ndarray, list[Any]]:
    """Weights of every layer and way, and how MindSpore stores them."""
    sizes = [width, *[H * ways] * (layers - 1)]
    shapes = [(4 * H, s) for s in sizes for _ in range(ways)] + [(4 * H, H)] * (layers * ways)
    shapes += [(4 * H,)] * (layers * ways * biases)
    parts = [numbers(*shape, low=-1, high=1, seed=i) for i, shape in enumerate(shapes)]
    count = layers * ways
    joined = np.concatenate([p.reshape(-1) for p in parts]).reshape(-1, 1, 1)
    zero = np.zeros(4 * H, np.float32)
    sums = [sum(parts[2 * count + i :: count], zero) for i in range(count)]
    return joined, list(zip(parts[:count], parts[count : 2 * count], sums, strict=True))


def lstm(x: Any, h: Any, c: Any, weights: Sequence[Any], ways: int) -> tuple[np.ndarray, ...]:
    hs, cs = [], []
    for layer in range(0, len(weights), ways):
        outputs = []
        for way in range(ways):
            at = layer + way
            y, cells = lstm_steps(x[:: -1 if way else 1], h[at], c[at], *weights[at])
            outputs.append(y[:: -1 if way else 1])
            hs.append(y[-1])
            cs.append(cells[-1])
        x = np.concatenate(outputs, -1)
    return x, np.stack(hs), np.stack(cs)


def lstm_case(
    layers: int, ways: int, biases: int, *, given: Any = None, width: int = WIDTH, dtype: Any = "f4"
) -> Case:
    joined, weights = blob(layers, ways, biases, width)
    init = {"input_size": width, "hidden_size": H, "num_layers": layers, "has_bias": biases > 0,
            "bidirectional": ways == 2, "dropout": 0.0, "proj_size": 0}  # fmt: skip
    state = numbers(2, layers * ways, N, H, seed=9).astype(dtype)
    inputs = [numbers(STEPS, N, width).astype(dtype), *state]
    wide = np.float32

    def wants(x: Any, h: Any, c: Any, _: Any) -> Any:
        y, _, _ = lstm(x.astype(wide), h.astype(wide), c.astype(wide), weights, ways)
        return y.astype(dtype)

    held = W(joined.astype(dtype)) if given is None else joined
    return Case("LSTM", [*inputs, held], wants, attributes=init, pick=0,
                dynamic=given is None)  # fmt: skip


def last_states() -> Case:
    case = lstm_case(1, 2, 1)
    _, weights = blob(1, 2, 1)
    return Case("LSTM", case.inputs, lambda x, h, c, _: lstm(x, h, c, weights, 2)[2],
                attributes=case.attributes, pick=2)  # fmt: skip


DYNAMIC = [numbers(STEPS, N, WIDTH), numbers(WIDTH + H, 4 * H, seed=1), numbers(4 * H, seed=2)]
STATES = [numbers(1, N, H, seed=3), numbers(1, N, H, seed=4)]


def dynamic_rnn(x: Any, w: Any, b: Any, h: Any, c: Any, forget: float = 0) -> Any:
    bias = b + np.repeat(np.array([0, 0, forget, 0], np.float32), H)
    return lstm_steps(x, h[0], c[0], w[:WIDTH].T, w[WIDTH:].T, bias, "igfo")


GRU = [numbers(STEPS, N, WIDTH), numbers(WIDTH, 3 * H, seed=1), numbers(H, 3 * H, seed=2),
       numbers(3 * H, seed=3), numbers(3 * H, seed=4)]  # fmt: skip


def swapped(w: np.ndarray) -> np.ndarray:
    """The first two gates exchanged."""
    return np.concatenate([w[..., H : 2 * H], w[..., :H], w[..., 2 * H :]], -1)


SCORES, LENGTHS = numbers(6, 3, 4, seed=5), np.array([6, 3, 5], np.int32)


def decoded(x: np.ndarray, lengths: np.ndarray, merge: bool = True) -> Any:
    places, labels, scores, longest = [], [], [], 0
    for b, length in enumerate(lengths):
        last, count = -1, 0
        for label in x[:length, b].argmax(-1):
            if label != x.shape[2] - 1 and not (merge and label == last):
                places.append((b, count))
                labels.append(label)
                count += 1
            last = label
        longest = max(longest, count)
        scores.append([-x[:length, b].max(-1).sum()])
    return (np.array(places), np.array(labels), np.array([x.shape[1], longest]),
            np.array(scores, np.float32))  # fmt: skip


CASES = [
    lstm_case(1, 1, 1), lstm_case(1, 1, 0), lstm_case(1, 2, 1), lstm_case(2, 1, 1),
    lstm_case(3, 2, 1), lstm_case(2, 2, 0), lstm_case(1, 1, 2), lstm_case(1, 1, 1, given=True),
    lstm_case(1, 1, 1, dtype=F16), last_states(),
    Case("DynamicRNN", [*DYNAMIC, K(None), *STATES],
         lambda x, w, b, h, c: dynamic_rnn(x, w, b, h, c)[0], pick=0),
    Case("DynamicRNN", [*DYNAMIC, K(None), *STATES],
         lambda x, w, b, h, c: dynamic_rnn(x, w, b, h, c, 1.0)[1],
         attributes={"forget_bias": 1.0}, pick=2),
    Case("DynamicGRUV2", [*GRU, K(None), (N, H)],
         lambda x, w, r, bw, br, h: gru_steps(x, h, w, r, bw, br, True), pick=0),
    Case("DynamicGRUV2", [*GRU[:3], K(None), K(None), K(None), (N, H)],
         lambda x, w, r, h: gru_steps(x, h, w, r, 0, np.zeros(3 * H), False),
         attributes={"reset_after": False}, pick=1),
    Case("DynamicGRUV2", [*GRU, K(None), (N, H)],
         lambda x, w, r, bw, br, h: gru_steps(x, h, *map(swapped, (w, r, bw, br)), True),
         attributes={"gate_order": "zrh"}, pick=0),
    Case("CTCGreedyDecoder", [SCORES, LENGTHS], decoded, attributes={"merge_repeated": True},
         dynamic=True),
    Case("CTCGreedyDecoder", [SCORES, LENGTHS], lambda x, n: decoded(x, n, False),
         attributes={"merge_repeated": False}),
]  # fmt: skip
