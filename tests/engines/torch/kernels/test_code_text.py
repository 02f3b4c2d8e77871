"""code_text.py: what is generated does not outlive its module."""

from __future__ import annotations

import gc
import linecache

import numpy as np
import onnx_ir as ir
import torch
from support.torch_kernels import lowered, one_node
from torch.fx import graph_module


def known() -> set[str]:
    return {*graph_module._loader.eval_cache, *(f for f in linecache.cache if "eval_with" in f)}


def test_the_text_of_a_module_goes_with_it() -> None:
    model: ir.Model = one_node("Neg", [np.ones(2, np.float32)])
    gc.collect()
    before = known()
    made = lowered(model)
    assert made.module(torch.ones(2))[0].tolist() == [-1, -1]
    assert len(known()) == len(before) + 1
    del made
    gc.collect()
    assert known() <= before
