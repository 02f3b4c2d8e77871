"""Derives modules and node paths from trained parameter names, as exporters write them.

PyTorch's exporter calls a node by the modules around it, `/encoder/layers.3/fc1/MatMul`, and the
matrix that it turned round on the way `onnx::MatMul_217`; the name of the parameter is lost. Files
of LoRA weights for Stable Diffusion name the same module in four ways more, by which they are told:

1. kohya      lora_unet_down_blocks_0_attentions_0_proj_in.lora_up.weight
2. original   model.diffusion_model.input_blocks.1.1.proj_in.weight
3. diffusers  unet.down_blocks.0.attentions.0.proj_in.weight
4. LoRA       down_blocks.0.attentions.0.proj_in.lora.up.weight

No other name is touched by their rules. These are guesses in any case: the names of the
model itself are tried first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from mindspore_lite.graph.parameters import module_of

_ENDS = ("weight", "alpha")
_KOHYA = re.compile(r"lora_(unet|te[12]?)_(?P<module>.+)")
_ORIGINAL = "model.diffusion_model."
_ORIGINAL_ROOT = re.compile(r"^(model\.)?diffusion_model\.")
DELTA = "lora_delta"  # in a name: the merged product of a LoRA, which is added to a weight
_TEXT = r"te[12]?|text_encoder(_[123])?"
_PIPELINE = re.compile(  # what follows says that it is the pipeline's part, not anybody's `unet`
    r"^unet\.(?=(down_blocks|up_blocks|mid_block|conv_in|conv_out|time_embedding)(\.|$))"
    rf"|^({_TEXT})\.(?=text_model\.)"
)
_LORA_ROOT = re.compile(rf"^(unet|{_TEXT}|base_model\.model)\.")
_LORA = {"lora", "lora_up", "lora_down", "lora_A", "lora_B", "lora_linear_layer", DELTA}

# kohya writes "_" for "." as well; these are the words that have one of their own
_WORDS = {
    "down_blocks", "up_blocks", "mid_block", "input_blocks", "middle_block", "output_blocks",
    "transformer_blocks", "proj_in", "proj_out", "to_q", "to_k", "to_v", "to_out", "conv_in",
    "conv_out", "conv_shortcut", "time_embedding", "time_emb_proj", "add_embedding", "linear_1",
    "linear_2", "in_layers", "out_layers", "emb_layers", "skip_connection", "time_embed",
    "label_emb", "text_model", "text_projection", "self_attn", "q_proj", "k_proj", "v_proj",
    "out_proj", "token_embedding", "position_embedding",
}  # fmt: skip
_LONGEST = max(word.count("_") for word in _WORDS) + 1

# modules of the original network that call others in a row: the exporter writes both names down
_LISTS = {"input_blocks", "output_blocks"}  # of rows
_ROWS = _LISTS | {
    "middle_block", "in_layers", "out_layers", "emb_layers", "to_out", "net", "time_embed", "out",
}  # fmt: skip
_MIDDLE = {"0": ("resnets", "0"), "1": ("attentions", "0"), "2": ("resnets", "1")}
_IN_RESIDUAL = {
    ("in_layers", "0"): ["norm1"],
    ("in_layers", "2"): ["conv1"],
    ("emb_layers", "1"): ["time_emb_proj"],
    ("out_layers", "0"): ["norm2"],
    ("out_layers", "3"): ["conv2"],
    ("skip_connection",): ["conv_shortcut"],
}
_OUTSIDE_BLOCKS = {
    ("time_embed", "0"): ["time_embedding", "linear_1"],
    ("time_embed", "2"): ["time_embedding", "linear_2"],
    ("label_emb", "0", "0"): ["add_embedding", "linear_1"],
    ("label_emb", "0", "2"): ["add_embedding", "linear_2"],
    ("out", "0"): ["conv_norm_out"],
    ("out", "2"): ["conv_out"],
}
_PER_LEVEL = 3  # blocks of the original on each level: two layers, then the change of size or one


def node_path(name: str) -> str | None:
    """The path of the node that uses a parameter; None where no rule applies to the name."""
    module, _, end = name.rpartition(".")
    if end not in _ENDS or not all(module.split(".")):
        return None
    if found := _KOHYA.fullmatch(module):
        words = list(_words(found["module"].split(".")[0].split("_")))
        return _path(_first_of_row(_as_diffusers(words)))
    bare = _without_lora(module.split("."))
    if module.startswith(_ORIGINAL):
        return _path((bare or module.split("."))[2:], _ROWS)
    if bare:
        rest = _LORA_ROOT.sub("", ".".join(bare)).split(".")
        return _path(_first_of_row([part for part in rest if part != "processor"]))
    return _path(_PIPELINE.sub("", module).split("."))


def module_names(name: str) -> list[str]:
    """The modules that a name may mean, as PyTorch would write them, the likeliest first.

    A name is a path (`/encoder/fc1`) or a parameter's; a bias counts as a module of its own. Of a
    name that no rule applies to, none.
    """
    if name.startswith("/"):
        return [module_of(name)]
    module, _, end = name.rpartition(".")
    if end == "bias":
        return [f"{one}.bias" for one in module_names(f"{module}.weight")]
    if end not in _ENDS or not all(module.split(".")):
        return []
    if found := _KOHYA.fullmatch(module):
        words = list(_words(found["module"].split(".")[0].split("_")))
        return _joined(_first_of_row(_as_diffusers(words)), words)
    bare = _without_lora(module.split("."))
    rest = [part for part in bare if part != "processor"] or module.split(".")
    if root := _ORIGINAL_ROOT.match(module):
        inner = rest[root[0].count(".") :]
        return _joined(inner, _first_of_row(_as_diffusers(inner)), rest)
    roots = _LORA_ROOT if bare else _PIPELINE
    short = roots.sub("", ".".join(rest)).split(".")
    if not bare:
        return _joined(rest, short)
    both = short, _LORA_ROOT.sub("", ".".join(short)).split(".")  # base_model.model.unet.conv_in
    more = [way for one in both for way in (_first_of_row(one), one, _as_diffusers(one))]
    return _joined(_first_of_row(rest), *more)


def kohya_module(name: str) -> str:
    """The module of a Kohya name, which has "_" for each "."; "" for other names."""
    found = _KOHYA.fullmatch(name.rpartition(".")[0])
    return found["module"].split(".")[0] if found else ""


def is_delta(name: str) -> bool:
    """Whether a name says that its tensor is the merged product of a LoRA."""
    return name.endswith(f".{DELTA}.weight")


def is_lora(name: str) -> bool:
    """Whether a name is that of a tensor in a LoRA file."""
    module = name.rpartition(".")[0]
    return bool(_KOHYA.fullmatch(module) or _without_lora(module.split(".")))


def _joined(*found: Sequence[str]) -> list[str]:
    """Parts as names, each once."""
    return list(dict.fromkeys(".".join(parts) for parts in found if parts))


def _path(parts: Sequence[str], rows: Collection[str] = ()) -> str | None:
    """Parts as a path; a number belongs to the part before, which stands alone if it is a row."""
    path: list[str] = []
    inside = False  # a row, whose numbers are written down one by one
    for part in parts:
        if not part.isdecimal() or not path:
            path.append(part)
            inside = part in rows
        elif inside and path[-1] not in _LISTS:
            path.append(f"{path[-1]}.{part}")
        else:
            path[-1] = f"{path[-1]}.{part}"
    return "/" + "/".join(path) if path else None


def _without_lora(parts: list[str]) -> list[str]:
    """The parts before what LoRA adds to the name of a module; none if it adds nothing."""
    for at, part in enumerate(parts):
        if part in _LORA:
            return parts[:at]
        if part.endswith("_lora"):
            return [*parts[:at], part.removesuffix("_lora")]
    return []


def _first_of_row(parts: list[str]) -> list[str]:
    """LoRA files leave the number out of `to_out.0`, whose second part has no weights."""
    return [*parts, "0"] if parts and parts[-1] == "to_out" else parts


def _words(pieces: list[str]) -> Iterator[str]:
    """The pieces between underscores, joined where they are a word of the network."""
    at = 0
    while at < len(pieces):
        sizes = range(_LONGEST, 1, -1)
        size = next((n for n in sizes if "_".join(pieces[at : at + n]) in _WORDS), 1)
        yield "_".join(pieces[at : at + size])
        at += size


def _as_diffusers(parts: list[str]) -> list[str]:
    """The original's numbered blocks as diffusers calls them; other names as they are."""
    kind, *rest = parts
    if outside := _OUTSIDE_BLOCKS.get(tuple(parts)):
        return outside
    if kind == "middle_block" and rest and rest[0] in _MIDDLE:
        return ["mid_block", *_in_block(_MIDDLE[rest[0]], rest[1:])]
    numbers = [int(part) for part in rest[:2] if part.isdecimal() and len(part) < 4]
    if kind not in _LISTS or len(numbers) < 2:
        return parts
    number, place = numbers
    inner = rest[2:]
    if kind == "output_blocks":
        level, layer = divmod(number, _PER_LEVEL)
        if place == 2 or inner == ["conv"]:  # on levels without attention it is at place 1
            return ["up_blocks", str(level), "upsamplers", "0", "conv"]
        above = "up_blocks"
    elif number == 0:
        return ["conv_in"]
    else:
        level, layer = divmod(number - 1, _PER_LEVEL)
        if layer == _PER_LEVEL - 1:
            return ["down_blocks", str(level), "downsamplers", "0", "conv"]
        above = "down_blocks"
    block = "attentions" if place else "resnets"
    return [above, str(level), *_in_block((block, str(layer)), inner)]


def _in_block(block: tuple[str, str], inner: list[str]) -> list[str]:
    """A block and what lies in it; the layers of residual ones have names of their own."""
    if block[0] == "resnets":
        inner = _IN_RESIDUAL.get(tuple(inner), inner)
    return [*block, *inner]
