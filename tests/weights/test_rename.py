"""weights/rename.py: the names of trained parameters lead to the nodes that exporters make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.graph.parameters import collapsed
from mindspore_lite.weights.rename import node_path

BLOCK = "/down_blocks.0/attentions.0/transformer_blocks.0"
ORIGINAL = "model.diffusion_model"

PLAIN = {
    "encoder.layers.3.fc1.weight": "/encoder/layers.3/fc1",
    "fc.weight": "/fc",
    "prelu.alpha": "/prelu",
    "0.weight": "/0",
    "0.1.conv.weight": "/0.1/conv",
    "features.0.1.weight": "/features.0.1",
    # words of Stable Diffusion's rules in names that are none of its
    "unet.conv1.weight": "/unet/conv1",
    "unet.weight": "/unet",
    "text_encoder.embed.weight": "/text_encoder/embed",
    "decoder.up.0.down.1.weight": "/decoder/up.0/down.1",
    "attn.to_out.weight": "/attn/to_out",
    "attn.processor.weight": "/attn/processor",
    "input_blocks.4.1.proj_in.weight": "/input_blocks.4.1/proj_in",
    "lora.weight": "/lora",
    "lora_head.weight": "/lora_head",
}
LORA = {
    "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora.down.weight": (
        f"{BLOCK}/attn1/to_q"
    ),
    "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.to_out_lora.up.weight": (
        f"{BLOCK}/attn1/to_out.0"
    ),
    "unet.mid_block.attentions.0.proj_in.lora.down.weight": "/mid_block/attentions.0/proj_in",
    "text_encoder.text_model.encoder.layers.1.mlp.fc1.lora_linear_layer.up.weight": (
        "/text_model/encoder/layers.1/mlp/fc1"
    ),
    "base_model.model.encoder.layer.0.q_proj.lora_A.default.weight": "/encoder/layer.0/q_proj",
    "base_model.model.encoder.layer.0.q_proj.lora_B.weight": "/encoder/layer.0/q_proj",
    "encoder.q.lora_up.weight": "/encoder/q",
}
PIPELINE = {
    "unet.down_blocks.1.resnets.0.conv1.weight": "/down_blocks.1/resnets.0/conv1",
    "unet.conv_in.weight": "/conv_in",
    "text_encoder_2.text_model.encoder.layers.0.mlp.fc1.weight": (
        "/text_model/encoder/layers.0/mlp/fc1"
    ),
    "te.text_model.encoder.layers.0.mlp.fc1.weight": "/text_model/encoder/layers.0/mlp/fc1",
}
KOHYA = {
    "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_out_0.lora_up.weight": (
        f"{BLOCK}/attn1/to_out.0"
    ),
    "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_ff_net_0_proj.alpha": (
        f"{BLOCK}/ff/net.0/proj"
    ),
    "lora_te_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight": (
        "/text_model/encoder/layers.0/self_attn/q_proj"
    ),
    "lora_te1_text_model_encoder_layers_0_mlp_fc1.alpha": "/text_model/encoder/layers.0/mlp/fc1",
    "lora_te2_text_projection.alpha": "/text_projection",
    # blocks that have the numbers of the original network
    "lora_unet_input_blocks_4_1_proj_in.lora_up.weight": "/down_blocks.1/attentions.0/proj_in",
    "lora_unet_input_blocks_0_0.alpha": "/conv_in",
    "lora_unet_input_blocks_1_0_in_layers_2.alpha": "/down_blocks.0/resnets.0/conv1",
    "lora_unet_input_blocks_2_0_emb_layers_1.alpha": "/down_blocks.0/resnets.1/time_emb_proj",
    "lora_unet_input_blocks_3_0_op.alpha": "/down_blocks.0/downsamplers.0/conv",
    "lora_unet_input_blocks_8_1_proj_out.alpha": "/down_blocks.2/attentions.1/proj_out",
    "lora_unet_middle_block_0_out_layers_3.alpha": "/mid_block/resnets.0/conv2",
    "lora_unet_middle_block_1_proj_in.alpha": "/mid_block/attentions.0/proj_in",
    "lora_unet_middle_block_2_in_layers_2.alpha": "/mid_block/resnets.1/conv1",
    "lora_unet_output_blocks_0_0_skip_connection.alpha": "/up_blocks.0/resnets.0/conv_shortcut",
    "lora_unet_output_blocks_2_1_conv.alpha": "/up_blocks.0/upsamplers.0/conv",
    "lora_unet_output_blocks_5_2_conv.alpha": "/up_blocks.1/upsamplers.0/conv",
    "lora_unet_output_blocks_11_1_proj_in.alpha": "/up_blocks.3/attentions.2/proj_in",
}
ORIGINALS = {
    f"{ORIGINAL}.input_blocks.1.1.transformer_blocks.0.attn1.to_out.0.lora_up.weight": (
        "/input_blocks.1/input_blocks.1.1/transformer_blocks.0/attn1/to_out/to_out.0"
    ),
    f"{ORIGINAL}.input_blocks.1.1.proj_in.weight": "/input_blocks.1/input_blocks.1.1/proj_in",
    f"{ORIGINAL}.middle_block.1.proj_in.weight": "/middle_block/middle_block.1/proj_in",
    f"{ORIGINAL}.time_embed.0.weight": "/time_embed/time_embed.0",
}
RULES = {**PLAIN, **LORA, **PIPELINE, **KOHYA, **ORIGINALS}


@pytest.mark.parametrize(("name", "path"), RULES.items(), ids=RULES.keys())
def test_a_parameter_leads_to_its_node(name: str, path: str) -> None:
    assert node_path(name) == path


@pytest.mark.parametrize("name", ["", "weight", ".weight", "a..weight", "fc.bias", "fc.weights"])
def test_no_rule_applies_to_other_names(name: str) -> None:
    assert node_path(name) is None


PIECES = [
    *("lora_unet", "lora_te1", "unet", "text_encoder", "model", "diffusion_model", "lora_up"),
    *("input_blocks", "output_blocks", "middle_block", "to_out", "processor", "x_lora", "lora"),
    *("0", "1", "99999999999999999999", "٣", "weight", "alpha", "", "/"),
]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from("._")), max_size=8))
def test_no_name_is_an_error(pieces: list[tuple[str, str]]) -> None:
    name = "".join(map("".join, pieces)) + "x.weight"
    path = node_path(name)
    assert path is None or path.startswith("/")


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/a/b", "/a/b"),
        ("/net/net.0", "/net.0"),
        ("/a.1/a.1.1/b", "/a.1.1/b"),
        ("/a/a.1/a.1.0", "/a.1.0"),
        ("/a/ab.0", "/a/ab.0"),
        ("Default/a-Cell/b", "Default/a-Cell/b"),
        ("", ""),
    ],
)
def test_a_row_and_its_item_are_one_module(path: str, want: str) -> None:
    assert collapsed(path) == want
