"""A small network of the shape of a diffusion UNet, written as PyTorch exports one to ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

C, HEADS, STEP = 16, 2, 32  # channels, heads of the attention, size of the step's embedding
_TEXT = """
<ir_version: 8, opset_import: ["": 17]>
unet (float[batch,4,height,width] sample, int64[steps] timestep,
      float[batch,sequence,1024] encoder_hidden_states) => (float[batch,4,height,width] out_sample)
{
  step = Cast <to = 1> (timestep)
  column = Unsqueeze (step, one)
  angles = Mul (column, frequencies)
  cosine = Cos (angles)
  sine = Sin (angles)
  waves = Concat <axis = -1> (cosine, sine)
  linear = Gemm (waves, time_weight, time_bias)
  gate = Sigmoid (linear)
  time_active = Mul (linear, gate)
  time_map = Unsqueeze (time_active, last_two)

  first = Conv <pads = [1, 1, 1, 1]> (sample, conv_in_weight, conv_in_bias)
  grouped = Reshape (first, groups)
  normal = InstanceNormalization <epsilon = 0.00001> (grouped, group_one, group_zero)
  first_shape = Shape (first)
  ungrouped = Reshape (normal, first_shape)
  scaled = Mul (ungrouped, norm_weight)
  shifted = Add (scaled, norm_bias)
  shifted_gate = Sigmoid (shifted)
  active = Mul (shifted, shifted_gate)
  second = Conv <pads = [1, 1, 1, 1]> (active, conv1_weight, conv1_bias)
  stepped = Add (second, time_map)
  down = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (stepped, down_weight, down_bias)

  down_shape = Shape (down)
  flat = Reshape (down, flattened)
  tokens = Transpose <perm = [0, 2, 1]> (flat)
  even = LayerNormalization <axis = -1> (tokens, layer_norm_weight, layer_norm_bias)
  q = MatMul (even, to_q_weight)
  k = MatMul (encoder_hidden_states, to_k_weight)
  v = MatMul (encoder_hidden_states, to_v_weight)
  q4 = Reshape (q, split)
  k4 = Reshape (k, split)
  v4 = Reshape (v, split)
  qh = Transpose <perm = [0, 2, 1, 3]> (q4)
  kh = Transpose <perm = [0, 2, 3, 1]> (k4)
  vh = Transpose <perm = [0, 2, 1, 3]> (v4)
  products = MatMul (qh, kh)
  scores = Mul (products, scale)
  shares = Softmax <axis = -1> (scores)
  mixed = MatMul (shares, vh)
  beside = Transpose <perm = [0, 2, 1, 3]> (mixed)
  joined = Reshape (beside, merged)
  projected = MatMul (joined, to_out_weight)
  attended = Add (projected, tokens)
  turned = Transpose <perm = [0, 2, 1]> (attended)
  middle = Reshape (turned, down_shape)

  up = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric",
               nearest_mode = "floor"> (middle, , twice)
  both = Concat <axis = 1> (up, stepped)
  last = Conv <pads = [1, 1, 1, 1]> (both, up_weight, up_bias)
  out_sample = Conv <pads = [1, 1, 1, 1]> (last, conv_out_weight, conv_out_bias)
}
"""
_NUMBERS = {
    "one": [1],
    "last_two": [2, 3],
    "groups": [0, 4, -1],
    "flattened": [0, 0, -1],
    "split": [0, -1, HEADS, C // HEADS],
    "merged": [0, -1, C],
}
_WEIGHTS = {
    "time_weight": (STEP, C),
    "time_bias": (C,),
    "conv_in_weight": (C, 4, 3, 3),
    "conv_in_bias": (C,),
    "norm_weight": (C, 1, 1),
    "norm_bias": (C, 1, 1),
    "conv1_weight": (C, C, 3, 3),
    "conv1_bias": (C,),
    "down_weight": (C, C, 3, 3),
    "down_bias": (C,),
    "layer_norm_weight": (C,),
    "layer_norm_bias": (C,),
    "to_q_weight": (C, C),
    "to_k_weight": (1024, C),
    "to_v_weight": (1024, C),
    "to_out_weight": (C, C),
    "up_weight": (C, 2 * C, 3, 3),
    "up_bias": (C,),
    "conv_out_weight": (4, C, 3, 3),
    "conv_out_bias": (4,),
}


def unet_onnx(path: Path) -> Path:
    """Write the network; all sizes of its inputs but the channels are open."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {n: np.array(v, np.int64) for n, v in _NUMBERS.items()}
    for name, shape in _WEIGHTS.items():
        arrays[name] = rng.normal(0, 0.1, shape).astype(np.float32)
    arrays |= {
        "frequencies": np.geomspace(1, 1e-4, STEP // 2, dtype=np.float32)[None],
        "group_one": np.ones(4, np.float32),
        "group_zero": np.zeros(4, np.float32),
        "scale": np.array((C // HEADS) ** -0.5, np.float32),
        "twice": np.array([1, 1, 2, 2], np.float32),
    }
    model = onnx.parser.parse_model(_TEXT)
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    onnx.save(model, path)
    return path
