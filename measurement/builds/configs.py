"""Configs to build a class from: in the words of transformers, and small enough to be fast."""

from __future__ import annotations

import json
from typing import Any

Config = dict[str, Any]

# The class of such a type is not in transformers; one of the same layout is.
SAME_LAYOUT = {"baichuan": "llama", "internlm2": "llama", "internlm": "llama", "minicpm": "llama",
               "mimo": "qwen2", "kimi_k2": "deepseek_v3"}  # fmt: skip
OTHER_WORDS = ("chatglm", "phi-msft", "qwen")  # the same, with keys of their own
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TEXTS = ("text_config", "llm_config")


def copied(config: Config) -> Config:
    """A copy that shares nothing with the original."""
    made: Config = json.loads(json.dumps(config))
    return made


def text_of(config: Config) -> Config:
    """The object with the text dimensions."""
    return next((config[key] for key in TEXTS if isinstance(config.get(key), dict)), config)


def has_class(text: Config) -> bool:
    """Whether transformers has the very class, which reads the same keys."""
    return text.get("model_type") not in (*SAME_LAYOUT, *OTHER_WORDS)


def native(config: Config) -> Config:
    """What to build the class from: the same shapes, in the words of a class of transformers."""
    kind = config["model_type"]
    if kind == "chatglm":
        grouped = config.get("multi_query_attention")
        return {
            "model_type": "glm",
            "hidden_size": config["hidden_size"],
            "num_hidden_layers": config["num_layers"],
            "num_attention_heads": config["num_attention_heads"],
            "num_key_value_heads": config[
                "multi_query_group_num" if grouped else "num_attention_heads"
            ],
            "head_dim": config["kv_channels"],
            "intermediate_size": config["ffn_hidden_size"],
            "vocab_size": config["padded_vocab_size"],
            "attention_bias": config["add_qkv_bias"],
            "tie_word_embeddings": config.get("tie_word_embeddings", False),
            "pad_token_id": 0,
        }
    if kind == "phi-msft":
        return {
            "model_type": "phi",
            "hidden_size": config["n_embd"],
            "num_hidden_layers": config["n_layer"],
            "num_attention_heads": config["n_head"],
            "num_key_value_heads": config.get("n_head_kv"),
            "intermediate_size": config.get("n_inner") or 4 * config["n_embd"],
            "vocab_size": config["vocab_size"],
            "tie_word_embeddings": config.get("tie_word_embeddings", False),
        }
    made = {**copied(config), "model_type": SAME_LAYOUT.get(kind, kind)}
    if kind == "minicpm":
        made.setdefault("tie_word_embeddings", True)
    if kind == "qwen":
        made["model_type"] = "qwen2"
        made["intermediate_size"] //= 2
        made["num_key_value_heads"] = made["num_attention_heads"]
        made["head_dim"] = made["kv_channels"]
    complete(made)
    return made


def complete(config: Config) -> None:
    """Add what has no parameters, may be absent from a file, and is asked for by some class."""
    vision: Any = config.get("vision_config")
    text = text_of(config)
    if config["model_type"] in ("llava", "llava_next") and "hidden_size" in (vision or {}):
        # the heads split it, and their default is for another width
        vision.setdefault("num_attention_heads", 16)
    if config["model_type"] in ("qwen3_vl", "qwen3_vl_moe", "mllama") and not any(
        text.get(key) for key in ("rope_scaling", "rope_parameters")
    ):
        text["rope_scaling"] = {"rope_type": "default", "mrope_section": [24, 20, 20]}


def shallow(config: Config, layers: int = 12, experts: int = 16) -> Config:
    """A copy with fewer layers and experts, so that it is built fast; all else as it was."""
    made = copied(config)
    text = text_of(made)
    for key in EXPERTS:
        if isinstance(text.get(key), int) and text[key] > experts:
            text[key] = experts
    for key in ("num_experts_per_tok", "moe_k", "n_group", "topk_group", "top_k_experts"):
        if isinstance(text.get(key), int):
            text[key] = min(text[key], 2)
    for key in ("moe_topk", "num_shared_expert"):
        if isinstance(text.get(key), list):
            text[key] = [min(each, 2) for each in text[key]]
    depth = next((k for k in DEPTHS if isinstance(text.get(k), int)), None)
    if depth is not None:
        deepen(text, depth, min(layers, text[depth]))
    return made


def deepen(text: Config, key: str, layers: int) -> None:
    """Cut the text part to a number of layers, with everything that is said of single layers."""
    before = text[key]
    text[key] = layers
    for name, value in text.items():
        pattern = isinstance(value, list) or ("pattern" in name and isinstance(value, str))
        if pattern and len(value) in (before, before + 1):
            text[name] = value[:layers]
    for name in ("cross_attention_layers", "moe_layers", "mlp_only_layers", "hybrid_layer_ids"):
        if isinstance(text.get(name), list):
            text[name] = [place for place in text[name] if place < layers]
    if text.get("num_kv_shared_layers"):
        text["num_kv_shared_layers"] = text["num_kv_shared_layers"] * layers // before
    linear = text.get("linear_attn_config")
    if isinstance(linear, dict):  # counted from 1
        for name in ("full_attn_layers", "kda_layers"):
            linear[name] = [place for place in linear[name] if place <= layers]
