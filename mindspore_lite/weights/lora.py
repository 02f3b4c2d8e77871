"""Reads LoRA files: pairs of thin matrices whose product is added to a weight.

Three families of names are in use, and all pairs mean `scale * alpha / rank * (B @ A)`:

1. PEFT       base_model.model.MODULE.lora_A.weight, lora_B; alpha in adapter_config.json,
              or in the texts of the file, where diffusers puts it
2. diffusers  unet.MODULE.lora.down.weight, lora.up, or processor.to_q_lora.down; alpha = rank
3. Kohya      lora_unet_MODULE.lora_down.weight, lora_up, alpha
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mindspore_lite.core.files import open_file
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.errors import ModelFileError
from mindspore_lite.weights.names import clipped, shortened
from mindspore_lite.weights.rename import DELTA

MAX_BYTES = 16 << 30  # of all products: thin matrices of a small file may have vast ones
PARTS = {  # of a pipeline, by the beginnings of names
    "unet": re.compile(r"lora_unet_|unet\.|(model\.)?diffusion_model\."),
    "text_encoder": re.compile(r"lora_te1?_|text_encoder\."),
    "text_encoder_2": re.compile(r"lora_te2_|text_encoder_2\."),
}
_PEFT_ROOT = "base_model.model."
_CONFIG = "adapter_config.json"  # which PEFT writes next to adapter_model.safetensors
_IN_FILE = "lora_adapter_metadata"  # the same, as diffusers writes it into the file
_MAX_CONFIG = 1 << 20  # bytes
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_FACTOR = re.compile(
    r"(?P<module>.+?)"
    r"(\.lora_(?P<peft>[AB])(\.[A-Za-z0-9_-]+)?"  # .lora_A.weight, .lora_A.default.weight
    r"|\.lora_(?P<kohya>down|up)"
    r"|(\.lora|_lora|\.lora_linear_layer)\.(?P<diffusers>down|up))\.weight",
    re.ASCII | re.DOTALL,
)
_PLAIN = re.compile(r"\^?[\w.]+")  # a key of alpha_pattern that is no other regular expression
_SIDES = {"A": "down", "B": "up"}
# ways to begin in which PEFT takes the first product off the weights of the model
_OTHER_BASES = ("pissa", "olora", "corda", "loftq", "lora_ga")
_OTHER_KINDS = {
    "dora_scale": "DoRA", "lora_magnitude_vector": "DoRA", "hada_w": "LoHa", "lokr_w": "LoKr",
    "lora_mid": "LoCon with a middle factor", "lora_embedding_": "LoRA of an embedding",
    "oft_": "OFT", ".diff": "full differences", "lora_B.bias": "LoRA with biases",
}  # fmt: skip


@dataclass
class _Pair:
    """The factors of one module, as far as they were read."""

    down: np.ndarray | None = None  # (rank, in), or (rank, in, height, width)
    up: np.ndarray | None = None  # (out, rank), or (out, rank, 1, 1)
    alpha: float | None = None


@dataclass(frozen=True)
class Config:
    """What PEFT says outside of the tensors about pairs whose names begin alike."""

    start: str = ""
    alpha: float | None = None
    by_root_of_rank: bool = False  # rsLoRA: alpha counts by the square root of the rank
    is_turned: bool = False  # fan_in_fan_out: the parameter is (in, out)
    alphas: Mapping[str, float] = field(default_factory=dict)  # of modules, by ends of their names

    def alpha_of(self, module: str) -> float | None:
        """What the product of a module is multiplied with, before the rank counts."""
        name = module.removeprefix(self.start)
        if f"^{name}" in self.alphas:
            return self.alphas[f"^{name}"]
        ends = [end for end in self.alphas if f".{name}".endswith(f".{end}")]
        return self.alphas[max(ends, key=len)] if ends else self.alpha


def products(
    tensors: Iterable[tuple[str, np.ndarray]],
    scale: float,
    part: str = "",
    configs: Sequence[Config] = (),
) -> Iterator[tuple[str, np.ndarray]]:
    """The names and products of all pairs, computed in float32.

    Args:
        tensors: What the file holds.
        scale: What all products are multiplied with.
        part: Which part of a pipeline is wanted, without those of others; "" takes all pairs.
        configs: What PEFT says about them.

    Raises:
        ModelFileError: A name, shape or number makes no sense; everything that does not, at once.
    """
    pairs, problems = _pairs(tensors, part)
    problems += [f"{clipped(name)}: {why}" for name, one in pairs.items() if (why := _misfit(one))]
    if problems:
        raise ModelFileError(f"it is no LoRA that can be merged: {shortened(problems, '; ')}")
    if not pairs:
        wanted = f" for part {part!r}" if part else ""
        raise ModelFileError(f"it holds no pair of LoRA factors{wanted}")
    total = sum(4 * math.prod(_shape(one)) for one in pairs.values())
    if total > MAX_BYTES:
        raise ModelFileError(
            f"the products of its {len(pairs)} pairs have {total} bytes, and at most {MAX_BYTES} "
            "are merged"
        )
    for name, one in pairs.items():
        yield f"{name}.{DELTA}.weight", _product(name, one, scale, _config_of(name, configs))


def _pairs(
    tensors: Iterable[tuple[str, np.ndarray]], part: str
) -> tuple[dict[str, _Pair], list[str]]:
    """The factors by module, and what else is wrong."""
    pairs: dict[str, _Pair] = {}
    alphas: dict[str, np.ndarray] = {}
    problems = []
    for name, array in tensors:
        if part and _is_of_another(name, part):
            continue
        is_alpha = name.endswith(".alpha")  # of which PyTorch makes an integer, if it was one
        if array.dtype.name not in _FLOATS and not (is_alpha and array.dtype.kind in "iu"):
            problems.append(f"{clipped(name)} is of type {array.dtype}, wanted {_FLOATS}")
        elif not np.isfinite(array).all():
            problems.append(f"{clipped(name)} holds numbers that are not finite")
        elif is_alpha:
            alphas[name.removesuffix(".alpha").removesuffix("_lora")] = array
        elif found := _FACTOR.fullmatch(name):
            side = _SIDES.get(found["peft"]) or found["kohya"] or found["diffusers"]
            pair = pairs.setdefault(found["module"], _Pair())
            if getattr(pair, side) is not None:
                problems.append(f"{clipped(name)} is there twice, of two adapters; keep one")
            setattr(pair, side, array)
        else:
            problems.append(_unknown(name))
    for module, array in alphas.items():
        if module not in pairs:
            problems.append(f"{clipped(module + '.alpha')} belongs to no pair of factors")
        elif array.size != 1:
            problems.append(f"{clipped(module + '.alpha')} has {array.size} numbers, wanted 1")
        else:
            pairs[module].alpha = float(array.reshape(-1)[0])
    return pairs, problems


def _is_of_another(name: str, part: str) -> bool:
    bare = name.removeprefix(_PEFT_ROOT)
    return any(start.match(bare) for other, start in PARTS.items() if other != part)


def _config_of(name: str, configs: Sequence[Config]) -> Config:
    """The one whose beginning fits best."""
    fitting = [one for one in configs if name.startswith(one.start)]
    return max(fitting, key=lambda one: len(one.start)) if fitting else Config()


def _unknown(name: str) -> str:
    for mark, kind in _OTHER_KINDS.items():
        if mark in name:
            return f"{clipped(name)} belongs to {kind}, which is not merged here"
    return f"{clipped(name)} is no name of PEFT's, Kohya's or diffusers' LoRA files"


def _misfit(pair: _Pair) -> str:
    """Why the factors have no product; "" if they have one."""
    if pair.down is None or pair.up is None:
        missing = "lora_A (down)" if pair.down is None else "lora_B (up)"
        return f"its factor {missing} is missing"
    down, up = pair.down.shape, pair.up.shape
    if len(down) != len(up) or len(down) not in (2, 3, 4, 5) or 0 in (*down, *up):
        return f"factors of shapes {list(down)} and {list(up)} have no product"
    if down[0] != up[1]:
        return f"its ranks differ: {list(down)} and {list(up)}"
    if set(up[2:]) - {1}:
        return f"its second factor has shape {list(up)}, wanted a size of 1"
    return ""


def _shape(pair: _Pair) -> tuple[int, ...]:
    assert pair.down is not None
    assert pair.up is not None
    return pair.up.shape[0], *pair.down.shape[1:]


def _product(name: str, pair: _Pair, scale: float, config: Config) -> np.ndarray:
    assert pair.down is not None
    assert pair.up is not None
    rank = pair.down.shape[0]
    alpha = pair.alpha if pair.alpha is not None else config.alpha_of(name)
    factor = scale
    if alpha is not None:
        factor *= alpha / (math.sqrt(rank) if config.by_root_of_rank else rank)
    up = pair.up.reshape(pair.up.shape[:2]).astype(np.float32)
    down = pair.down.reshape(rank, -1).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # looked for below
        found = (up @ down) * np.float32(factor)
    if not np.isfinite(found).all():
        raise ModelFileError(f"{clipped(name)}: the product is too large for float32")
    return found.T if config.is_turned and pair.down.ndim == 2 else found.reshape(_shape(pair))


def read_configs(file: Path, texts: Mapping[str, str]) -> list[Config]:
    """What PEFT says in a file next to an adapter, and diffusers in the adapter itself."""
    found = []
    if _IN_FILE in texts:
        found += _configs(_IN_FILE, texts[_IN_FILE])
    path = file.parent / _CONFIG
    if path.exists():
        beside = open_file(path)
        if beside.size > _MAX_CONFIG:
            raise ModelFileError(
                f"{_CONFIG} next to it has {beside.size} bytes, wanted at most {_MAX_CONFIG}"
            )
        (data,) = Snapshot([beside]).load()
        own = _configs(_CONFIG, bytes(data))
        found += [replace(one, start=f"{_PEFT_ROOT}{one.start}") for one in own]
        if file.stem == "adapter_model":  # names without PEFT's beginning are meant as well
            found += own
    return found


def _configs(where: str, text: str | bytes) -> list[Config]:
    """The settings of each part of a pipeline, whose names its keys begin with."""
    try:
        entries = read_json(text)
        if not isinstance(entries, dict):
            raise ValueError(f"it holds a {type(entries).__name__}, wanted an object")
        starts = {key.removesuffix("lora_alpha") for key in entries if key.endswith("lora_alpha")}
        found = [_config(start, entries) for start in sorted(starts)]
    except (TypeError, ValueError, AttributeError) as exc:
        raise ModelFileError(f"{where} makes no sense: {exc}") from exc
    for key, value in entries.items():
        if key.endswith("use_dora") and value:
            raise ModelFileError(f"{where} says {key}: DoRA is not merged here")
        if key.endswith("init_lora_weights") and str(value).startswith(_OTHER_BASES):
            raise ModelFileError(
                f"{where} says {key} {value!r:.50}: it belongs to weights that PEFT changed at the "
                "start; save it with path_initial_model_for_weight_conversion, as a plain LoRA"
            )
        if key.endswith("alora_invocation_tokens") and value:
            raise ModelFileError(f"{where} says {key}: aLoRA counts after some tokens only")
    return found


def _config(start: str, entries: Mapping[str, Any]) -> Config:
    alphas = entries.get(f"{start}alpha_pattern") or {}
    if odd := [key for key in alphas if not _PLAIN.fullmatch(key)]:
        raise ValueError(f"alpha_pattern has {odd[0]!r:.80}, wanted names of modules")
    return Config(
        start=start,
        alpha=_number(entries[f"{start}lora_alpha"]),
        by_root_of_rank=bool(entries.get(f"{start}use_rslora")),
        is_turned=bool(entries.get(f"{start}fan_in_fan_out")),
        alphas={str(key): _number(value) for key, value in alphas.items()},
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"alpha is {value!r:.50}, wanted a number")
    return float(value)
