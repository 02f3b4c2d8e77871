"""Derives node paths from trained parameter names, as exporters write both.

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

_ENDS = ("weight", "alpha")
_KOHYA = re.compile(r"lora_(unet|te[12]?)_(?P<module>.+)")
_ORIGINAL = "model.diffusion_model."
_TEXT = r"te[12]?|text_encoder(_[123])?"
_PIPELINE = re.compile(  # what follows says that it is the pipeline's part, not anybody's `unet`
    r"^unet\.(?=(down_blocks|up_blocks|mid_block|conv_in|conv_out|time_embedding)(\.|$))"
    rf"|^({_TEXT})\.(?=text_model\.)"
)
_LORA_ROOT = re.compile(rf"^(unet|{_TEXT}|base_model\.model)\.")
_LORA = {"lora", "lora_up", "lora_down", "lora_A", "lora_B", "lora_linear_layer"}

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


def collapsed(path: str) -> str:
    """A path without the modules whose names the next one repeats: `/net/net.0` is `/net.0`."""
    kept: list[str] = []
    for part in path.split("/"):
        if kept and kept[-1] and part.startswith(f"{kept[-1]}."):
            kept.pop()
        kept.append(part)
    return "/".join(kept)


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
