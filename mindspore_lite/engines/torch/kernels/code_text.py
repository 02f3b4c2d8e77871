"""Keeps the text of generated code as long as its module lives.

FX keeps the text of every module for the lines of tracebacks, and never lets go of it. A server
that lowers models for ever new shapes, or with ever new weights, would grow for ever.
"""

from __future__ import annotations

import linecache
import weakref

from torch import fx
from torch.fx import graph_module


def forget_with(module: fx.GraphModule) -> None:
    """Let the text of a module's code go when the module goes."""
    file = module.forward.__code__.co_filename
    weakref.finalize(module, _forget, file).atexit = False


def _forget(file: str) -> None:
    linecache.cache.pop(file, None)
    graph_module._loader.eval_cache.pop(file, None)
