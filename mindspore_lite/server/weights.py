"""New weights for a model that is served: from a file, all or none, while requests run.

    future = update(core, "digits", "", file, Form())      the loader thread does it
    future.result()                                        {"name":, "version":, "weights_version":}

Requests under way end with the weights that they began with (serving/update.py; for a process of
its own, remote/devices/weight_rollout.py). Reading the file and the update happen on the loader's
thread, so that they never meet a reload of the same model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl

from mindspore_lite.errors import InputError, LiteError, ModelFileError
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Kind, RequestError, cleaned
from mindspore_lite.server.models import ServedModel
from mindspore_lite.server.request import invalid
from mindspore_lite.tensor import Tensor
from mindspore_lite.weight_files import tensor_of
from mindspore_lite.weights.lora import PARTS, products, read_configs
from mindspore_lite.weights.safetensors_file import open_safetensors

_KEYS = ("format", "scale", "part")


@dataclass(frozen=True)
class Form:
    """What a file of weights is.

    Attributes:
        is_lora: Its tensors are the factors of a LoRA, not weights.
        scale: How much of the LoRA is wanted.
        part: Of a LoRA for a whole pipeline, what to take; "" is all.
    """

    is_lora: bool = False
    scale: float = 1.0
    part: str = ""


def form_of(query: str) -> Form:
    """What the query of a URL says: format=lora&scale=0.8&part=unet, or nothing.

    Raises:
        RequestError: It says something else.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        given = dict(pairs)
    except ValueError as exc:
        raise invalid("the query must be like format=lora&scale=0.8") from exc
    unknown = [key[:80] for key in given if key not in _KEYS]
    if unknown or len(given) < len(pairs):
        raise invalid(f"the query may have {', '.join(_KEYS)}, each once; got {unknown or query!r}")
    kind = given.get("format", "weights")
    if kind not in ("weights", "lora"):
        raise invalid(f"format must be weights or lora, got {kind[:80]!r}")
    if kind == "weights" and len(given) > ("format" in given):
        raise invalid("scale and part go with format=lora")
    part = given.get("part", "")
    if part and part not in PARTS:
        raise invalid(f"part must be one of {', '.join(PARTS)}, got {part[:80]!r}")
    return Form(kind == "lora", _number(given.get("scale", "1")), part)


def changeable(core: Core, name: str, version: str) -> ServedModel:
    """The model of an update.

    Raises:
        RequestError: There is none, or its weights may not change.
    """
    model = core.models.find(name, version)
    if not model.service.spec.weights.variable:
        raise invalid(
            f"no weight of model {name!r} may change; name those that may by "
            "variable_weights_list of section [ascend_context], in its model.ini or in the "
            "server's configuration"
        )
    return model


def update(
    core: Core, name: str, version: str, file: BinaryIO | None, form: Form
) -> Future[Mapping[str, Any]]:
    """Give a model new weights; without a file, those of its model file again.

    The file is closed when it has been read.

    Raises:
        RequestError: It cannot be begun.
    """
    return core.controlled().change(partial(_update, core, name, version, file, form))


def _update(
    core: Core, name: str, version: str, file: BinaryIO | None, form: Form
) -> Mapping[str, Any]:
    model = changeable(core, name, version)
    try:
        groups = [] if file is None else [_tensors(file, form)]
        model.service.update_weights(groups)
    except (ModelFileError, InputError, ValueError) as exc:
        raise invalid(f"the weights are refused, and nothing has changed: {_words(exc)}") from exc
    except LiteError as exc:
        raise RequestError(
            Kind.FAILED, f"the update failed, and nothing has changed: {_words(exc)}"
        ) from exc
    finally:
        if file is not None:
            file.close()
    what = "restored" if file is None else f"LoRA x {form.scale:g}" if form.is_lora else "replaced"
    core.marks.add(model.name, model.version, "weights", what)
    return {
        "name": model.name,
        "version": model.version,
        "weights_version": model.weights_version,
    }


def _tensors(file: BinaryIO, form: Form) -> list[Tensor]:
    """What the file holds. It has no name but that of its descriptor."""
    path = Path(f"/proc/self/fd/{file.fileno()}")
    texts, tensors = open_safetensors(path)
    if form.is_lora:
        tensors = products(tensors, form.scale, form.part, read_configs(path, texts))
    found = [tensor_of(name, array) for name, array in tensors]
    if not found:
        raise InputError("the file holds no tensor")
    return found


def _words(exc: Exception) -> str:
    return cleaned(str(exc))


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise invalid(f"scale must be a finite number, got {text[:80]!r}")
    return found
