"""Recurrent layers, and the decoder that follows them in speech models.

MindSpore keeps an LSTM's weights in one blob: input weights of all layers and directions, then the
recurrent ones, then the biases. The blob is cut apart in the graph; where it was made of weights,
ONNX Runtime does that once, when it compiles the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

F32 = np.dtype(np.float32)  # the only type that ONNX Runtime's recurrent kernels compute in
MAX_LAYERS = 1000  # guess: a damaged file asks for any number


def reordered(t: Tape, w: Val, gates: Sequence[int]) -> Val:
    """Weights [gates * H, ...] or biases with their gates in another order."""
    shape = t.op("Shape", [w], start=1)
    apart = t.op("Concat", [np.asarray([len(gates), -1]), shape], axis=0)
    picked = t.op("Gather", [t.op("Reshape", [w, apart]), np.asarray(gates)], axis=0)
    return t.op("Reshape", [picked, t.op("Concat", [np.asarray([-1]), shape], axis=0)])


def joined(t: Tape, values: Sequence[Val]) -> Val:
    """One more axis at the front, for the directions."""
    rows = [t.op("Unsqueeze", [v, np.asarray([0])]) for v in values]
    return rows[0] if len(rows) == 1 else t.op("Concat", rows, axis=0)


def sequence(t: Tape, y: Val, ways: int) -> Val:
    """ONNX's [T, directions, N, H] as [T, N, directions * H]."""
    if ways == 1:
        return t.op("Squeeze", [y, np.asarray([1])])
    return t.op("Reshape", [t.op("Transpose", [y], perm=[0, 2, 1, 3]), np.asarray([0, 0, -1])])


@op("LSTM")
def lstm(
    t: Tape,
    x: Val,
    h: Val,
    c: Val,
    w: Val,
    *,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    has_bias: bool = True,
    bidirectional: bool = False,
    dropout: float = 0.0,
    proj_size: int = 0,
) -> Val:
    """-> (y, h, c, ...): one ONNX LSTM per layer; the gates i, f, g, o become i, o, f, g."""
    if proj_size:
        raise UnsupportedOpError("LSTM with proj_size is not supported")
    dtype, ways = t.dtype(x), 2 if bidirectional else 1
    layers = bounded(num_layers, "layers of an LSTM", MAX_LAYERS)
    widths = [input_size] + [hidden_size * ways] * (layers - 1)
    weights = _blob(t, w, widths, hidden_size, ways, has_bias)
    x, h, c = (t.cast(v, F32) for v in (x, h, c))
    states = [[v] if layers == 1 else t.op("Split", [v], outputs=layers, num_outputs=layers)
              for v in (h, c)]  # fmt: skip
    ends: list[tuple[Val, Val]] = []
    for (w_in, w_back, bias), h_0, c_0 in zip(weights, *states, strict=True):
        y, h_n, c_n = t.op(
            "LSTM",
            [x, w_in, w_back, bias, None, h_0, c_0],
            outputs=3,
            hidden_size=hidden_size,
            direction="bidirectional" if bidirectional else "forward",
        )
        x = sequence(t, y, ways)
        ends.append((h_n, c_n))
    last = [values[0] if layers == 1 else t.op("Concat", list(values), axis=0)
            for values in zip(*ends, strict=True)]  # fmt: skip
    return (*(t.cast(v, dtype) for v in (x, *last)), None, None)


def _blob(
    t: Tape, w: Val, widths: Sequence[int], hidden: int, ways: int, has_bias: bool
) -> list[tuple[Val, Val, Val]]:
    """(input weights, recurrent weights, biases) of each layer, as ONNX wants them."""
    gates = bounded(4 * hidden, "gates", MAX_TABLE)
    shapes: list[tuple[int, ...]] = [(gates, width) for width in widths for _ in range(ways)]
    shapes += [(gates, hidden)] * (len(widths) * ways)
    length = t.shape(w)[0]
    bare = sum(math.prod(shape) for shape in shapes)
    biases = 1 if has_bias else 0
    if has_bias and length == bare + 2 * gates and len(widths) * ways == 1:
        biases = 2  # as GPUs keep them: one for the input, one for the state
    shapes += [(gates,)] * (biases * len(widths) * ways)
    sizes = [math.prod(shape) for shape in shapes]
    if length is not None and length != sum(sizes):
        raise UnsupportedOpError(f"LSTM has {length} weights, wanted {sum(sizes)}")
    flat = t.op("Reshape", [t.cast(w, F32), np.asarray([-1])])
    parts = t.op("Split", [flat, np.asarray(sizes)], outputs=len(sizes), axis=0)
    found = [
        reordered(t, t.op("Reshape", [part, np.asarray(shape)]), (0, 3, 1, 2))
        for part, shape in zip(parts, shapes, strict=True)
    ]
    count = len(widths) * ways
    none = np.zeros(gates, F32)
    sums = found[2 * count :] or [none] * count
    second = sums[1] if biases == 2 else none
    return [
        (
            joined(t, found[at : at + ways]),
            joined(t, found[count + at : count + at + ways]),
            joined(t, [t.op("Concat", [s, second], axis=0) for s in sums[at : at + ways]]),
        )
        for at in range(0, count, ways)
    ]


def _plain(**options: Val) -> None:
    """Ops for Ascend list many options that were never implemented there."""
    wanted = {"cell_type": "LSTM", "direction": "UNIDIRECTIONAL", "cell_depth": 1, "num_proj": 0,
              "use_peephole": False, "time_major": True, "activation": "tanh"}  # fmt: skip
    for name, value in options.items():
        if value != wanted[name]:
            raise UnsupportedOpError(f"{name} {value!r} is not supported")


@op("DynamicRNN")
def dynamic_rnn(
    t: Tape,
    x: Val,
    w: Val,
    b: Val,
    seq_length: Val,
    init_h: Val,
    init_c: Val,
    *,
    cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    use_peephole: bool = False,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    forget_bias: float = 0.0,
) -> Val:
    """-> (y, h, c, ...) of every step; the gates i, g, f, o become i, o, f, g."""
    _plain(cell_type=cell_type, direction=direction, cell_depth=cell_depth, num_proj=num_proj,
           use_peephole=use_peephole, time_major=time_major, activation=activation)  # fmt: skip
    if seq_length is not None:
        raise UnsupportedOpError("DynamicRNN with seq_length is not supported")
    hidden, dtype, width = t.shape(init_h)[-1], t.dtype(b), t.shape(x)[-1]
    if hidden is None or width is None:
        raise UnsupportedOpError("DynamicRNN needs a fixed size of its input and state")
    bounded(4 * hidden, "gates", MAX_TABLE)
    x, w, b, h, c = (t.cast(v, F32) for v in (x, w, b, init_h, init_c))
    if forget_bias:
        b = t.op("Add", [b, np.repeat(np.asarray([0, 0, forget_bias, 0], F32), hidden)])
    turned = t.op("Transpose", [w], perm=[1, 0])
    cut = t.op("Split", [turned, np.asarray([width, hidden])], outputs=2, axis=1)
    w_in, w_back = (joined(t, [reordered(t, part, (0, 3, 2, 1))]) for part in cut)
    bias = t.op("Concat", [reordered(t, b, (0, 3, 2, 1)), np.zeros(4 * hidden, F32)], axis=0)
    bias = joined(t, [bias])

    def step(x: Val, h: Val, c: Val) -> Val:
        inputs = [x, w_in, w_back, bias, None, h, c]
        return t.op("LSTM", inputs, outputs=3, hidden_size=hidden)

    y = t.cast(t.op("Squeeze", [step(x, h, c)[0], np.asarray([1])]), dtype)
    steps = t.shape(x)[0]
    if steps is None:  # ONNX tells the last cell state only
        return (y, t.cast(y, t.dtype(init_h)), *[None] * 6)
    bounded(steps, "steps of a DynamicRNN")
    cells = []
    for now in t.op("Split", [x], outputs=steps, num_outputs=steps) if steps > 1 else [x]:
        _, h, c = step(now, h, c)
        cells.append(c)
    all_cells = t.cast(t.op("Concat", cells, axis=0), dtype)
    return (y, t.cast(y, t.dtype(init_h)), all_cells, *[None] * 5)


@op("DynamicGRUV2")
def dynamic_gru(
    t: Tape,
    x: Val,
    weight_input: Val,
    weight_hidden: Val,
    bias_input: Val,
    bias_hidden: Val,
    seq_length: Val,
    init_h: Val,
    *,
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    gate_order: str = "rzh",
    reset_after: bool = True,
) -> Val:
    """-> (y, h, ...) of every step; ONNX's order of gates is z, r, h."""
    _plain(direction=direction, cell_depth=cell_depth, num_proj=num_proj, time_major=time_major,
           activation=activation)  # fmt: skip
    if seq_length is not None:
        raise UnsupportedOpError("DynamicGRUV2 with seq_length is not supported")
    hidden = t.shape(init_h)[-1]
    orders = {"rzh": (1, 0, 2), "zrh": (0, 1, 2)}
    if hidden is None or gate_order not in orders:
        raise UnsupportedOpError(f"DynamicGRUV2 with gates {gate_order!r} and state {hidden}")
    bounded(3 * hidden, "gates", MAX_TABLE)
    order = orders[gate_order]
    given = next((b for b in (bias_input, bias_hidden) if b is not None), init_h)
    weights = [
        joined(t, [reordered(t, t.op("Transpose", [t.cast(w, F32)], perm=[1, 0]), order)])
        for w in (weight_input, weight_hidden)
    ]
    halves = [np.zeros(3 * hidden, F32) if b is None else reordered(t, t.cast(b, F32), order)
              for b in (bias_input, bias_hidden)]  # fmt: skip
    bias = joined(t, [t.op("Concat", halves, axis=0)])
    h = t.op("Reshape", [t.cast(init_h, F32), np.asarray([1, -1, hidden])])
    y, _ = t.op(
        "GRU",
        [t.cast(x, F32), *weights, bias, None, h],
        outputs=2,
        hidden_size=hidden,
        linear_before_reset=int(reset_after),
    )
    y = t.cast(t.op("Squeeze", [y, np.asarray([1])]), t.dtype(given))
    return (y, y, None, None, None, None)


@op("CTCGreedyDecoder")
def ctc_greedy_decoder(
    t: Tape, inputs: Val, sequence_length: Val, *, merge_repeated: bool = True
) -> Val:
    """-> (places, labels, [batch, longest], log probability); the last class is the blank one."""
    zero, last, no_end = np.asarray([0]), np.asarray([-1]), np.asarray([2**62])
    best = t.op("Transpose", [t.op("ArgMax", [inputs], axis=2, keepdims=0)], perm=[1, 0])
    steps = t.op("Range", [np.asarray(0), _dim(t, inputs, 0), np.asarray(1)])
    lengths = t.op("Unsqueeze", [t.cast(sequence_length, np.dtype(np.int64)), np.asarray([1])])
    inside = t.op("Less", [steps, lengths])
    blank = t.op("Sub", [_dim(t, inputs, 2), np.asarray(1)])
    kept = t.op("And", [inside, t.op("Not", [t.op("Equal", [best, blank])])])
    if merge_repeated:
        shifted = t.op("Slice", [t.op("Pad", [best, np.asarray([0, 1, 0, 0]), np.asarray(-1)]),
                                 zero, last, np.asarray([1])])  # fmt: skip
        kept = t.op("And", [kept, t.op("Not", [t.op("Equal", [best, shifted])])])
    count = t.op("CumSum", [t.cast(kept, np.dtype(np.int64)), np.asarray(1)])
    found = t.op("Transpose", [t.op("NonZero", [kept])], perm=[1, 0])
    rank = t.op("Sub", [t.op("GatherND", [count, found]), np.asarray(1)])
    row = t.op("Slice", [found, zero, np.asarray([1]), np.asarray([1])])
    places = t.op("Concat", [row, t.op("Unsqueeze", [rank, np.asarray([1])])], axis=1)
    longest = t.op("ReduceMax", [t.op("Slice", [count, last, no_end, np.asarray([1])])], keepdims=0)
    shape = t.int64s([_dim(t, inputs, 1), longest])
    dtype = t.dtype(inputs)
    peaks = t.op("Transpose", [t.op("ReduceMax", [inputs, np.asarray([2])], keepdims=0)],
                 perm=[1, 0])  # fmt: skip
    counted = t.op("Where", [inside, peaks, np.asarray(0, dtype)])
    score = t.op("Neg", [t.op("ReduceSum", [counted, np.asarray([1])], keepdims=1)])
    return places, t.op("GatherND", [best, found]), shape, score


def _dim(t: Tape, x: Val, axis: int) -> Val:
    return t.op("Gather", [t.op("Shape", [x]), np.asarray(axis)], axis=0)
