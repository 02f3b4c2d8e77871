"""Compiles lowered graphs with torch's compiler.

torch's compiler (inductor) takes the graph as it is, with the weights as further inputs. What it
makes of a graph is kept in a file of our cache, so that a later start need not compile, unless it
was traced (trace_program.py), which is faster to load. Inductor's own files go there too, unless
the user has put them elsewhere. If a graph cannot be compiled (no C compiler, no Triton, or a fault
of the compiler), only speed is lost: a warning is given once, and the graph runs step by step.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

from mindspore_lite.core.environment import preset, variables
from mindspore_lite.core.fork import ForkLock
from mindspore_lite.engines.cache import digest
from mindspore_lite.engines.torch import code_cache, trace
from mindspore_lite.engines.torch.cards import Card

Run = Callable[..., Sequence[torch.Tensor]]
TUNINGS = ("fast", "full", "off")
# around lowering, compiling and warming up: torch's settings for these are the whole process's
BUILDING = ForkLock(reentrant=True)

_LOG = logging.getLogger(__name__)
_USUAL = {
    "triton.cudagraphs": False,  # captured by us, for our own buffers
    "autotune_num_choices_displayed": 0,
    "max_autotune_report_choices_stats": False,
}
# The second measures kernels of Triton against those of cuBLAS and cuDNN, one by one. That takes
# minutes, and made both models that were tried on an H200 slower (ResNet-50 at a batch of 64 by
# a tenth, ViT-B/16 at 8 by a quarter); so what is kept is measured as a whole.
_WAYS: dict[str, list[dict[str, Any]]] = {
    "fast": [_USUAL],
    "full": [_USUAL, _USUAL | {"max_autotune": True}],
}
_warned: list[bool] = []
_tell: list[Callable[[str], None]] = []


@contextmanager
def told(tell: Callable[[str], None]) -> Iterator[None]:
    """Let somebody know what is compiled, in words, while the block runs; from any thread."""
    _tell.append(tell)
    try:
        yield
    finally:
        _tell.remove(tell)


def tell(text: str) -> None:
    """Report what takes so long."""
    for one in list(_tell):
        one(text)


def check_tuning(tuning: str) -> None:
    """Raise ValueError for a word that means nothing."""
    if tuning not in TUNINGS:
        raise ValueError(f"tuning is {tuning!r}, wanted one of {', '.join(TUNINGS)}")


def compiled(
    module: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    tuning: str,
    measure: Callable[[Run], float] | None = None,
    origin: str = "",
    taped: Callable[[Run], bool] = lambda run: False,
) -> Run:
    """The module as fast as tuning allows; the caller holds BUILDING.

    measure: how long a run takes; the fastest of several ways is kept.
    origin: what the module follows from, besides the inputs and the switches of torch that are set;
        code of modules without one is not kept for later starts.
    taped: keeps what a later start needs of code; False: it cannot, the code itself must be kept.
    """
    plain: Run = module
    if tuning == "off":
        return plain
    _keep_files()
    made = [one for way in _WAYS[tuning] if (one := _made(module, inputs, way, origin))]
    if not made:
        return plain
    best = made[0] if len(made) == 1 or measure is None else min(made, key=measure)
    if not taped(best):
        for one in made:  # which of them is the best is found out again
            one.keep()
    return best


class _Code:
    """Compiled code with its weights; `file` is where it is kept, None: nowhere, or there."""

    def __init__(self, code: Any, weights: Sequence[torch.Tensor], file: Path | None) -> None:
        self._code, self._weights, self._file = code, weights, file

    def __call__(self, *tensors: torch.Tensor) -> Any:
        return self._code(*tensors, *self._weights)

    def keep(self) -> None:
        """Let a later start find what was compiled, where it can be put into a file."""
        try:
            if self._file is not None:
                self._code.save(path=str(self._file), format="binary")
        except Exception as exc:  # noqa: BLE001 - not all that can be compiled can be kept
            _LOG.debug("what was compiled cannot be kept", exc_info=exc)


def _made(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor], options: dict[str, Any], origin: str
) -> _Code | None:
    """What the compiler makes of a module; None, with a warning, where it fails."""
    weights = [weight.detach() for weight in module.parameters()]
    given = [*inputs, *weights]
    try:
        with _quiet(), torch.no_grad(), trace.listening():
            file = code_cache.file(_name(origin, given, options)) if origin else None
            found = _found(file, given)
            if found is not None:
                return _Code(found, weights, None)
            code = _inductor()(_traced(module, given, len(inputs)), given, options)
            code(*given)  # what is compiled on first use fails here, not in a request
            return _Code(code, weights, file)
    except torch.OutOfMemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 - the compiler raises anything
        _warn(exc)
        return None


def _traced(module: fx.GraphModule, given: Sequence[torch.Tensor], inputs: int) -> fx.GraphModule:
    """The module in torch's own operators, as a function of its inputs and of its weights.

    Code of a graph with functions of ours in it would not be put into a file.
    """
    names = [name for name, _ in module.named_parameters()]

    def run(*given: torch.Tensor) -> Any:
        weights = dict(zip(names, given[inputs:], strict=True))
        return functional_call(module, weights, given[:inputs])

    found: fx.GraphModule = make_fx(run, tracing_mode="fake")(*given)
    return found


def _name(origin: str, given: Sequence[torch.Tensor], options: dict[str, Any]) -> str:
    """Under which compiled code is kept: whatever would make it another code makes another name."""
    cuda = [one.device for one in given if one.device.type == "cuda"]
    switches = (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
    return code_cache.name_of(
        [
            origin,
            Card(str(cuda[0])).properties() if cuda else digest.cpu_features(),
            repr((sorted(options.items()), switches)),
            repr([(one.dtype, one.shape, one.stride(), one.device) for one in given]),
        ]
    )


def _found(file: Path | None, given: Sequence[torch.Tensor]) -> Run | None:
    """Code that an earlier start has compiled, and that runs; None if there is none such."""
    if file is None or not file.exists():
        return None
    try:
        code: Run = _artefacts().CompiledArtifact.load(path=str(file), format="binary")
        code(*given)
    except torch.OutOfMemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 - of another PyTorch, or damaged
        _LOG.debug("what was compiled cannot be used", exc_info=exc)
        return None
    return code


def _inductor() -> Callable[..., Any]:
    """What compiles a graph of torch's operators for given tensors."""
    from torch._inductor import select_algorithm

    select_algorithm.PRINT_AUTOTUNE = False  # no setting, but a constant of the module

    def compile_graph(graph: fx.GraphModule, given: Any, options: dict[str, Any]) -> Any:
        return _artefacts().standalone_compile(
            graph,
            given,
            dynamic_shapes="from_example_inputs",
            options={"config_patches": options},
            aot=True,
        )

    return compile_graph


def _artefacts() -> Any:
    import torch._inductor as inductor

    return inductor


def _keep_files() -> None:
    """Let the compilers keep their files in our cache, if the user has named no other places.

    Triton's would otherwise lie in the user's home.
    """
    place = variables.get("TORCHINDUCTOR_CACHE_DIR") or code_cache.place()
    if place is not None:
        preset("TORCHINDUCTOR_CACHE_DIR", str(place))
        preset("TRITON_CACHE_DIR", str(Path(place) / "triton"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the compiler's own remarks from the user's terminal."""
    loggers = [logging.getLogger(name) for name in ("torch._inductor", "torch._functorch")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _warn(exc: Exception) -> None:
    _LOG.debug("a graph could not be compiled", exc_info=exc)
    if _warned:
        return
    _warned.append(True)
    reason = " ".join(str(exc).split())[:300]
    warnings.warn(
        f"a graph cannot be compiled and runs step by step, which is slower: "
        f"{type(exc).__name__}: {reason}; a C compiler and Triton must be installed, tuning=off "
        "does without",
        RuntimeWarning,
        stacklevel=2,
    )
