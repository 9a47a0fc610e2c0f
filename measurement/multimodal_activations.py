"""What a multimodal model keeps of an image or of audio, read from real tensors on the CPU.

    python -m fitcheck.measurement.multimodal_activations glm4v paddleocr_vl > rows.jsonl

Builds the whole class of transformers with a small decoder and random weights in bf16, and runs
what turns an image or audio into tokens: tower and projector. `tower_activations` has the towers
alone.
Every figure is in 16-bit elements a position of one input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import transformers

from fitcheck.measurement.tower_activations import HEADS, LAYERS, SHAPES, SIDE, Live, half

Config = dict[str, Any]
Case = tuple[Config, dict[str, Any], int]  # config, inputs, positions
AUTOS = ("AutoModelForImageTextToText", "AutoModelForMultimodalLM", "AutoModelForSeq2SeqLM")
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "pad_token_id": 0,
}
NARROW = {"head_dim": 16}
HYBRID = {
    **NARROW,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 2, 4]}
ERNIE = {"moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": [40, 24]}
RESAMPLER = {
    "resampler_n_latents": 8,
    "resampler_depth": 2,
    "resampler_n_heads": 4,
    "resampler_head_dim": 12,
    "num_key_value_heads": 2,
}
AUDIO = {
    "d_model": 64,
    "encoder_ffn_dim": 64,
    "encoder_layers": 1,
    "encoder_attention_heads": HEADS,
    "output_dim": 64,
    "downsample_hidden_size": 16,
}
EXPERTS = {"moe_intermediate_size": 40, "num_experts": 8, "num_experts_per_tok": 2}
OMNI3 = {**EXPERTS, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}


def sizes(layers: int, h: int, f: int, *, packed: bool = False) -> Config:
    names = ("depth", "num_heads") if packed else ("num_hidden_layers", "num_attention_heads")
    return {"hidden_size": h, "intermediate_size": f, names[0]: layers, names[1]: HEADS}


def config(kind: str, text: str, part: str, tower: Config, extra: Mapping[str, Any]) -> Config:
    """A config of a small decoder and a tower; `extra` may add to the text part and the top."""
    inner = {"model_type": text, **TEXT, **extra.get("text_config", {})}
    top = {k: v for k, v in extra.items() if k != "text_config"}
    return {"model_type": kind, "text_config": inner, part: tower, **top}


def square(
    kind: str,
    text: str,
    vision: str,
    tower: Mapping[str, Any],
    extra: Mapping[str, Any],
    own: int = 0,
    nested: bool = False,
) -> Callable[..., Case]:
    """One image of a fixed size; `own` of its positions are no patches."""

    def build(layers: int, h: int, f: int) -> Case:
        pixels = 14 * SIDE
        part = {"model_type": vision, **sizes(layers, h, f), "image_size": pixels, "patch_size": 14}
        made = config(kind, text, "vision_config", {**part, **tower}, extra)
        inputs = {"pixel_values": half(*([1] * (1 + nested)), 3, pixels, pixels)}
        if vision == "pixtral":
            made["vision_config"]["head_dim"] = h // HEADS
            inputs["image_sizes"] = torch.tensor([[pixels, pixels]])
        return made, inputs, SIDE**2 + own

    return build


def patches(
    kind: str,
    text: str,
    vision: str,
    tower: Mapping[str, Any],
    extra: Mapping[str, Any],
    patch: int = 14,
    frames: int = 2,
) -> Callable[..., Case]:
    """The patches of one image in a row."""

    def build(layers: int, h: int, f: int) -> Case:
        plain = kind in ("video_llama_3", "paddleocr_vl")
        part = {"model_type": vision, **sizes(layers, h, f, packed=not plain), "patch_size": patch}
        given = {n: v(layers, h, f) if callable(v) else v for n, v in tower.items()}
        made = config(kind, text, "vision_config", {**part, **given}, extra)
        shape = (3, patch, patch) if kind == "paddleocr_vl" else (3 * frames * patch**2,)
        inputs: dict[str, Any] = {"pixel_values": half(SIDE**2, *shape)}
        inputs["image_grid_thw"] = torch.tensor([[1, SIDE, SIDE]])
        if kind == "video_llama_3":
            inputs["image_merge_sizes"] = torch.tensor([1])
        return made, inputs, SIDE**2

    return build


def minicpm(layers: int, h: int, f: int) -> Case:
    tower = {**sizes(layers, h, f), "image_size": 224, "patch_size": 14}
    tower["model_type"] = "minicpmv4_6_vision"
    extra = {"text_config": HYBRID, "downsample_mode": "4x"}
    made = config("minicpmv4_6", "qwen3_5_text", "vision_config", tower, extra)
    inputs = {"pixel_values": half(1, 3, 14, 14 * SIDE**2)}
    return made, {**inputs, "target_sizes": torch.tensor([[SIDE, SIDE]])}, SIDE**2


def flamingo(layers: int, h: int, f: int) -> Case:
    tower = {**sizes(layers, h, f), "max_source_positions": SIDE**2, "num_mel_bins": 128}
    tower["model_type"] = "audioflamingo3_encoder"
    made = config("audioflamingo3", "qwen2", "audio_config", tower, {})
    frames = 2 * SIDE**2
    there = torch.ones(1, frames, dtype=torch.long)
    inputs = {"input_features": half(1, 128, frames), "input_features_mask": there}
    return made, inputs, SIDE**2


def omni_audio(kind: str, text: str, extra: Mapping[str, Any]) -> Callable[..., Case]:
    """Audio of 16 s for the thinkers of Qwen Omni."""

    def build(layers: int, h: int, f: int) -> Case:
        names = ("encoder_layers", "d_model", "encoder_ffn_dim")
        tower = {**AUDIO, **dict(zip(names, (layers, h, f), strict=True))}
        made = config(kind, text, "audio_config", tower, extra)
        made["vision_config"] = {**sizes(1, 64, 64, packed=True), "out_hidden_size": 64}
        there = torch.ones(1, 1600, dtype=torch.long)
        inputs = {"input_features": half(1, 128, 1600), "feature_attention_mask": there}
        return made, inputs, 16 * 13 if "moe" in kind else 800

    return build


WIDTH = {"out_hidden_size": 64}
WHOLE = {**WIDTH, "fullatt_block_indexes": lambda n, h, f: list(range(n))}
GRID = {"image_size": 224}
BARE = {"vision_use_head": False}
GLM = {**GRID, "out_hidden_size": lambda n, h, f: f}
OMNI = {"audio_config": {**AUDIO, "model_type": "qwen2_5_omni_audio_encoder"}}
OMNI_MOE = {"audio_config": {**AUDIO, "model_type": "qwen3_omni_moe_audio_encoder"}}
SIGLIP, CLIP = "siglip_vision_model", "clip_vision_model"
OVIS = {"hidden_size": 64, "vocab_size": 1000}
QUERIES = {"projector_patch_to_query_dict": {str(SIDE**2): 16, "4900": 16}}
CASES: Mapping[str, Callable[..., Case]] = {
    "aya_vision": square("aya_vision", "cohere2", SIGLIP, BARE, {}),
    "cohere2_vision": square(
        "cohere2_vision", "cohere2", SIGLIP, BARE, {"alignment_intermediate_size": 256}
    ),
    "vipllava": square("vipllava", "llama", CLIP, {}, {"vision_feature_layer": [-1, -2]}, 1),
    "deepseek_vl": square("deepseek_vl", "llama", SIGLIP, BARE, {}),
    "lighton_ocr": square("lighton_ocr", "qwen3", "pixtral", {}, {"text_config": NARROW}),
    "qianfan_ocr": square(
        "qianfan_ocr", "qwen3", "qianfan_ocr_vision", {}, {"text_config": NARROW}, 1
    ),
    "idefics2": square(
        "idefics2", "mistral", "idefics2_vision", {}, {"perceiver_config": RESAMPLER}, 0, True
    ),
    "ovis2": square("ovis2", "qwen2", "ovis2_vision", {"vocab_size": 500}, OVIS),
    "aria": square("aria", "aria_text", "idefics3_vision", {}, QUERIES),
    "exaone4_5": patches(
        "exaone4_5",
        "exaone4",
        "exaone4_5_vision",
        {**WHOLE, "num_key_value_heads": 2},
        {"text_config": NARROW},
    ),
    "video_llama_3": patches("video_llama_3", "qwen2", "video_llama_3_vision", {}, {}, 14, 1),
    "glm4v": patches(
        "glm4v", "glm4v_text", "glm4v_vision", GLM, {"text_config": {"hidden_size": 256}}
    ),
    "glm_ocr": patches("glm_ocr", "glm_ocr_text", "glm_ocr_vision", {**GRID, **WIDTH}, {}),
    "paddleocr_vl": patches(
        "paddleocr_vl",
        "paddleocr_vl_text",
        "paddleocr_vl_vision",
        GRID,
        {"text_config": NARROW},
        14,
        1,
    ),
    "ernie4_5_vl_moe": patches(
        "ernie4_5_vl_moe",
        "ernie4_5_vl_moe_text",
        "ernie4_5_vl_moe_vision",
        {},
        {"text_config": {**ERNIE, "rope_parameters": ROPE}},
        14,
        1,
    ),
    "qwen2_5_omni_vision": patches(
        "qwen2_5_omni_thinker", "qwen2_5_omni_text", "qwen2_5_omni_vision_encoder", WHOLE, OMNI
    ),
    "qwen3_omni_vision": patches(
        "qwen3_omni_moe_thinker",
        "qwen3_omni_moe_text",
        "qwen3_omni_moe_vision_encoder",
        {**WIDTH, "deepstack_visual_indexes": [0]},
        {**OMNI_MOE, "text_config": OMNI3},
        16,
    ),
    "minicpmv4_6": minicpm,
    "audioflamingo3": flamingo,
    "qwen2_5_omni_audio": omni_audio("qwen2_5_omni_thinker", "qwen2_5_omni_text", {}),
    "qwen3_omni_audio": omni_audio(
        "qwen3_omni_moe_thinker", "qwen3_omni_moe_text", {"text_config": OMNI3}
    ),
}


def model_of(given: Config, attention: str) -> Any:
    """The class of a config with random weights, without its head."""
    made = transformers.AutoConfig.for_model(**json.loads(json.dumps(given)))
    parts = (made, *(getattr(made, f"{p}_config", None) for p in ("text", "vision", "audio")))
    for part in parts:
        if part is not None:
            part._attn_implementation = attention
    autos = [getattr(transformers, name) for name in AUTOS]
    auto = next(a for a in autos if type(made) in a._model_mapping)
    return auto.from_config(made).to(torch.bfloat16).train().model


def elements(case: str, layers: int, h: int, f: int, attention: str) -> float:
    """What is held after an input has become tokens, in 16-bit elements a position."""
    torch.manual_seed(0)
    given, inputs, positions = CASES[case](layers, h, f)
    model = model_of(given, attention)
    read = model.get_audio_features if "input_features" in inputs else model.get_image_features
    with Live([*model.parameters(), *model.buffers(), *inputs.values()]) as live:
        output = read(**inputs).pooler_output
        held: float = live.now
    del output
    return held / positions / 2


def rows(case: str) -> Iterator[dict[str, Any]]:
    """One row for each shape."""
    for h, f in SHAPES:
        given, _, positions = CASES[case](LAYERS[0], h, f)
        row: dict[str, Any] = {"id": f"{case}-{h}-{f}", "case": case, "config": given}
        row |= {"width": h, "positions": positions}
        for attention in ("sdpa", "eager"):
            few, many = (elements(case, n, h, f, attention) for n in LAYERS)
            found = {"kept_a_layer": (many - few) / 2, "kept_around": 2 * few - many}
            row[attention] = {name: round(value, 2) for name, value in found.items()}
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        yield {**row, "stack": versions}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or CASES:
        for row in rows(name):
            print(json.dumps(row), flush=True)
