"""The three networks of Stable Diffusion 2.1 with small widths and random weights.

Where `diffusers` and `transformers` are installed, their own classes are used, with SD 2.1's
settings but its widths. Elsewhere plain PyTorch modules of the same structure take their place;
their modules have the same names, so the same LoRA files fit.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (16, 32, 32, 32)  # SD 2.1: 320, 640, 1280, 1280
TEXT, TOKENS, WORDS = 24, 8, 64  # SD 2.1: 1024, 77, 49408
SIDE = 8  # of the latent picture; SD 2.1: 64
GROUPS, HEAD = 8, 8  # SD 2.1: 32, 64


@dataclass
class Networks:
    """One module for each file that is exported."""

    text_encoder: nn.Module  # (rows, TOKENS) of words -> (rows, TOKENS, TEXT)
    unet: nn.Module  # latent picture, time step, text -> noise
    vae: nn.Module  # latent picture -> picture


def networks(kind: str = "", widths: tuple[int, ...] = WIDTHS) -> Networks:
    """The networks, of `diffusers`, of plain `torch`, or of the first that is installed."""
    torch.manual_seed(21)
    if not kind:
        found = all(importlib.util.find_spec(name) for name in ("diffusers", "transformers"))
        kind = "diffusers" if found else "torch"
    made = _of_diffusers(widths) if kind == "diffusers" else _of_torch(widths)
    for module in (made.text_encoder, made.unet, made.vae):
        module.eval().requires_grad_(False)
    return made


# --- of diffusers --------------------------------------------------------------------------------


class First(nn.Module):
    """A module that returns its first result, as exporters want it."""

    def __init__(self, **inner: nn.Module) -> None:
        super().__init__()
        ((self.key, module),) = inner.items()
        self.add_module(self.key, module)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Hand on."""
        found: Tensor = getattr(self, self.key)(*inputs, return_dict=False)[0]
        return found


class Decoding(nn.Module):
    """The half of an autoencoder that makes pictures."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latent: Tensor) -> Tensor:
        """Latent picture to picture."""
        found: Tensor = self.vae.decode(latent, return_dict=False)[0]
        return found


def _of_diffusers(widths: tuple[int, ...]) -> Networks:
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    unet = UNet2DConditionModel(
        sample_size=SIDE,
        block_out_channels=widths,
        down_block_types=("CrossAttnDownBlock2D",) * (len(widths) - 1) + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * (len(widths) - 1),
        cross_attention_dim=TEXT,
        attention_head_dim=tuple(width // HEAD for width in widths),  # as many heads
        use_linear_projection=True,
        norm_num_groups=GROUPS,
    )
    vae = AutoencoderKL(
        block_out_channels=widths[:2],
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=GROUPS,
    )
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=WORDS,
            hidden_size=TEXT,
            intermediate_size=4 * TEXT,
            num_hidden_layers=2,
            num_attention_heads=TEXT // HEAD,
            max_position_embeddings=TOKENS,
            hidden_act="gelu",
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    # the text encoder's first result is what the UNet attends to
    return Networks(First(text_encoder=text), First(unet=unet), Decoding(vae))


# --- of plain PyTorch ----------------------------------------------------------------------------


def _of_torch(widths: tuple[int, ...]) -> Networks:
    return Networks(TextEncoder(), UNet(widths), Decoder(widths[0]))


class Attention(nn.Module):
    """Heads that look at a text, or at the picture itself."""

    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.heads = width // HEAD
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(context, width, bias=False)
        self.to_v = nn.Linear(context, width, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(width, width), nn.Dropout(0.0)])

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """Rows of x, each with what it found."""
        q, k, v = (
            part.unflatten(-1, (self.heads, HEAD)).transpose(1, 2)
            for part in (self.to_q(x), self.to_k(context), self.to_v(context))
        )
        found = functional.softmax(q @ k.transpose(2, 3) * HEAD**-0.5, dim=-1) @ v
        out: Tensor = self.to_out[0](found.transpose(1, 2).flatten(2))
        return out


class Gated(nn.Module):
    """Twice the width, one half gated by the other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 8 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Half of the wider rows."""
        first, second = self.proj(x).chunk(2, dim=-1)
        return first * functional.gelu(second)


class FeedForward(nn.Module):
    """Wider, and back."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.ModuleList([Gated(width), nn.Dropout(0.0), nn.Linear(4 * width, width)])

    def forward(self, x: Tensor) -> Tensor:
        """One after the other."""
        for layer in self.net:
            x = layer(x)
        return x


class TransformerBlock(nn.Module):
    """The picture looks at itself, then at the text."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1, self.attn2 = Attention(width, width), Attention(width, TEXT)
        self.ff = FeedForward(width)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        """Each step is added."""
        y = self.norm1(x)
        x = x + self.attn1(y, y)
        x = x + self.attn2(self.norm2(x), text)
        return x + self.ff(self.norm3(x))


class Transformer(nn.Module):
    """Attention over the places of a picture."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width)
        self.proj_in, self.proj_out = nn.Linear(width, width), nn.Linear(width, width)
        self.transformer_blocks = nn.ModuleList([TransformerBlock(width)])

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        """A picture of the same size."""
        rows = self.proj_in(self.norm(x).flatten(2).transpose(1, 2))
        for block in self.transformer_blocks:
            rows = block(rows, text)
        return x + self.proj_out(rows).transpose(1, 2).unflatten(2, x.shape[2:])


class Residual(nn.Module):
    """Two convolutions, the time between them."""

    def __init__(self, inner: int, outer: int, time: int = 0) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, inner), nn.GroupNorm(GROUPS, outer)
        self.conv1 = nn.Conv2d(inner, outer, 3, padding=1)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, outer) if time else None
        self.conv_shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else None

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        """A picture of the same size, with other channels."""
        y = self.conv1(functional.silu(self.norm1(x)))
        if self.time_emb_proj is not None and time is not None:
            y = y + self.time_emb_proj(functional.silu(time))[:, :, None, None]
        y = self.conv2(functional.silu(self.norm2(y)))
        return y + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class Halving(nn.Module):
    """Half the height and width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Every second place."""
        found: Tensor = self.conv(x)
        return found


class Doubling(nn.Module):
    """Twice the height and width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Every place twice."""
        found: Tensor = self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return found


class Block(nn.Module):
    """One level of the UNet, on the way down, in the middle or on the way up."""

    def __init__(
        self, inners: list[int], outer: int, time: int, attends: int, change: str = ""
    ) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Residual(inner, outer, time) for inner in inners)
        self.attentions = nn.ModuleList(Transformer(outer) for _ in range(attends))
        if change == "down":
            self.downsamplers = nn.ModuleList([Halving(outer)])
        if change == "up":
            self.upsamplers = nn.ModuleList([Doubling(outer)])

    def forward(
        self, x: Tensor, time: Tensor, text: Tensor, kept: list[Tensor] | None = None
    ) -> list[Tensor]:
        """What each of its layers makes; on the way up, each takes what was kept as well."""
        made = []
        for at, resnet in enumerate(self.resnets):
            x = resnet(x if kept is None else torch.cat([x, kept[at]], dim=1), time)
            if at < len(self.attentions):
                x = self.attentions[at](x, text)
            made.append(x)
        for change in (getattr(self, "downsamplers", ()), getattr(self, "upsamplers", ())):
            made += [layer(x) for layer in change]
        return made


class TimeEmbedding(nn.Module):
    """Sines of a time step, and two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(width, 4 * width)
        self.linear_2 = nn.Linear(4 * width, 4 * width)
        waves = torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2))
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, step: Tensor) -> Tensor:
        """One row for each step."""
        angles = step.to(torch.float32)[:, None] * self.waves
        both = torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)
        found: Tensor = self.linear_2(functional.silu(self.linear_1(both)))
        return found


class UNet(nn.Module):
    """Which noise is in a latent picture, given a text."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        time, last = 4 * widths[0], len(widths) - 1
        self.time_embedding = TimeEmbedding(widths[0])
        self.conv_in = nn.Conv2d(4, widths[0], 3, padding=1)
        kept = [widths[0]]
        self.down_blocks = nn.ModuleList()
        for level, outer in enumerate(widths):
            inners = [widths[max(level - 1, 0)], outer]
            change, attends = ("down", 2) if level < last else ("", 0)
            self.down_blocks.append(Block(inners, outer, time, attends, change))
            kept += [outer] * (3 if change else 2)
        self.mid_block = Block([widths[-1]] * 2, widths[-1], time, 1)
        self.up_blocks = nn.ModuleList()
        inner = widths[-1]
        for level, outer in reversed(list(enumerate(widths))):
            inners = []
            for _ in range(3):
                inners.append(inner + kept.pop())
                inner = outer
            attends = 3 if level < last else 0
            self.up_blocks.append(Block(inners, outer, time, attends, "up" if level else ""))
        self.conv_norm_out = nn.GroupNorm(GROUPS, widths[0])
        self.conv_out = nn.Conv2d(widths[0], 4, 3, padding=1)

    def forward(self, sample: Tensor, timestep: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        """Down, through the middle, and up with what was kept on the way."""
        text = encoder_hidden_states
        time = self.time_embedding(timestep)
        kept = [self.conv_in(sample)]
        for block in self.down_blocks:
            kept += block(kept[-1], time, text)
        x = self.mid_block(kept[-1], time, text)[-1]
        for block in self.up_blocks:
            x = block(x, time, text, kept[:-4:-1])[-1]
            del kept[-3:]
        found: Tensor = self.conv_out(functional.silu(self.conv_norm_out(x)))
        return found


class SelfAttention(nn.Module):
    """As CLIP names its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(TEXT, TEXT) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Words look at those before them."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        later = torch.full((TOKENS, TOKENS), -1e9).triu(1)
        scores = functional.softmax(q @ k.transpose(1, 2) * TEXT**-0.5 + later, dim=-1)
        found: Tensor = self.out_proj(scores @ v)
        return found


class TextLayer(nn.Module):
    """Attention and two wider layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(TEXT), nn.LayerNorm(TEXT)
        self.self_attn = SelfAttention()
        self.mlp = nn.ModuleDict(
            {"fc1": nn.Linear(TEXT, 4 * TEXT), "fc2": nn.Linear(4 * TEXT, TEXT)}
        )

    def forward(self, x: Tensor) -> Tensor:
        """Each step is added."""
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp["fc2"](functional.gelu(self.mlp["fc1"](self.layer_norm2(x))))


class TextEncoder(nn.Module):
    """Words to what the UNet attends to."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(WORDS, TEXT)
        self.position_embedding = nn.Parameter(torch.randn(TOKENS, TEXT))
        self.layers = nn.ModuleList(TextLayer() for _ in range(2))
        self.final_layer_norm = nn.LayerNorm(TEXT)

    def forward(self, input_ids: Tensor) -> Tensor:
        """One row for each word."""
        x = self.token_embedding(input_ids) + self.position_embedding
        for layer in self.layers:
            x = layer(x)
        found: Tensor = self.final_layer_norm(x)
        return found


class Decoder(nn.Module):
    """Latent picture to picture, twice the size."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_in = nn.Conv2d(4, width, 3, padding=1)
        self.resnet = Residual(width, width)
        self.upsampler = Doubling(width)
        self.conv_out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, latent: Tensor) -> Tensor:
        """Three colours."""
        x = self.upsampler(self.resnet(self.conv_in(latent)))
        found: Tensor = self.conv_out(functional.silu(x))
        return found
