"""Configs that no class can be built from, or that break in its forward pass, are refused by field.

What is refused, and what is not, was compared with transformers 5.24.0 on the meta device: the
published configs, each with one field changed, built and run.
"""

from __future__ import annotations

from typing import Any

import pytest

from fitcheck import estimate
from fitcheck.engine.errors import InputProblem

Config = dict[str, Any]
SIZES: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "intermediate_size": 96,
    "vocab_size": 1000,
}
FULL = "full_attention"
MIXTURE: Config = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
GROUPS: Config = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "n_group": 4,
    "topk_group": 2,
}
MAMBA: Config = {"mamba_n_heads": 16, "mamba_d_head": 8, "mamba_expand": 2, "mamba_n_groups": 4}
NEMOTRON: Config = {
    "hybrid_override_pattern": "M*E-",
    "mamba_num_heads": 16,
    "mamba_head_dim": 8,
    "n_groups": 4,
    **GROUPS,
}
DELTA: Config = {"linear_num_value_heads": 8, "linear_num_key_heads": 4}

# model_type, what it has beside the sizes, the change, what the message has to name
IMPOSSIBLE: list[tuple[str, Config, Config, list[str]]] = [
    # words and lengths of lists
    ("qwen3", {}, {"layer_types": [FULL, "banana", FULL, FULL]}, ["'layer_types'", "banana", FULL]),
    ("qwen3", {}, {"layer_types": [FULL] * 3}, ["'layer_types'", "3 entries", "4 layers"]),
    ("qwen3", {}, {"layer_types": []}, ["'layer_types'", "0 entries"]),
    ("qwen3", {}, {"layer_types": ["chunked_attention"] * 4}, ["chunked_attention", FULL]),
    ("llama", {}, {"layer_types": ["banana"] * 4}, ["has banana, which", "llama"]),
    ("gemma3_text", {}, {"layer_types": [FULL] * 5}, ["5 entries"]),
    ("gpt_oss", {}, {"layer_types": ["linear_attention"] * 4}, ["linear_attention"]),
    ("lfm2", {}, {"layer_types": ["conv", "sliding_attention", "conv", FULL]}, ["one of", "conv"]),
    ("llama4_text", {}, {"layer_types": ["sliding_attention"] * 4}, ["chunked_attention"]),
    ("qwen3_5_text", DELTA, {"layer_types": ["moe"] * 4}, ["linear_attention"]),
    ("granitemoehybrid", MAMBA, {"layers_block_type": ["mamba"] * 3}, ["3 entries"]),
    ("zamba2", {}, {"layers_block_type": ["mamba"] * 3 + ["x"]}, ["has x, which"]),
    ("mimo_v2_flash", GROUPS, {"mlp_layer_types": ["dense"] * 3 + ["x"]}, ["'mlp_layer_types'"]),
    ("mimo_v2_flash", GROUPS, {"mlp_layer_types": ["dense"] * 3}, ["3 entries"]),
    ("nemotron_h", NEMOTRON, {"hybrid_override_pattern": "Mx*yx"}, ["override_pattern'", "x, y,"]),
    ("nemotron_h", NEMOTRON, {"layers_block_type": ["mlp", "fish"]}, ["fish", "linear_attention"]),
    # heads
    ("llama", {}, {"num_key_value_heads": 16}, ["'num_key_value_heads'", "more than the 8"]),
    ("llama", {}, {"num_key_value_heads": 3}, ["divide by the 3"]),
    ("llama", {}, {"num_key_value_heads": 0}, ["at least 1"]),
    ("llama", {}, {"num_attention_heads": -8}, ["'num_attention_heads'", "at least 1"]),
    ("qwen3", {}, {"head_dim": None, "hidden_size": 65, "model_type": "mistral"}, ["head_dim"]),
    ("llama", {}, {"hidden_size": 68}, ["'hidden_size' is 68", "beside a head_dim"]),
    ("gemma2", {}, {"hidden_size": 68}, ["divide by the 8"]),
    ("olmoe", MIXTURE, {"hidden_size": 68}, ["not the hidden size of 68"]),
    ("bitnet", {}, {"head_dim": 4}, ["not the hidden size of 64"]),
    ("mimo_v2_flash", GROUPS, {"num_key_value_heads": 8}, ["twice the 8"]),
    # experts
    ("qwen3_moe", MIXTURE, {"num_experts_per_tok": 9}, ["'num_experts_per_tok' is 9", "the 8 of"]),
    ("mixtral", {"num_local_experts": 8}, {"num_experts_per_tok": 9}, ["'num_local_experts'"]),
    ("ernie4_5_moe", {"moe_num_experts": 8}, {"moe_k": 9}, ["'moe_k' is 9", "'moe_num_experts'"]),
    ("qwen3_moe", MIXTURE, {"num_experts_per_tok": 0}, ["at least 1"]),
    ("deepseek_v3", GROUPS, {"n_group": 3}, ["'n_routed_experts' is 8", "3 of 'n_group'"]),
    ("deepseek_v3", GROUPS, {"topk_group": 5}, ["'topk_group' is 5", "4 of 'n_group'"]),
    ("deepseek_v3", GROUPS, {"n_group": 0}, ["'n_group' is 0"]),
    # states
    ("bamba", MAMBA, {"mamba_d_head": 4}, ["'mamba_d_head' is 4"]),
    ("bamba", MAMBA, {"mamba_n_groups": 3}, ["'mamba_n_heads' is 16", "3 of 'mamba_n_groups'"]),
    ("nemotron_h", NEMOTRON, {"n_groups": 3}, ["3 of 'n_groups'"]),
    ("mamba2", {"num_heads": 16, "n_groups": 4}, {"n_groups": 3}, ["3 of 'n_groups'"]),
    ("qwen3_5_text", DELTA, {"linear_num_key_heads": 3}, ["'linear_num_value_heads' is 8"]),
]


def parameters(config: Config, **flags: Any) -> int:
    found: int = estimate(config, gpu="b200", lora=False, **flags)["parameters"]
    return found


@pytest.mark.parametrize(
    ("kind", "rest", "change", "named"),
    IMPOSSIBLE,
    ids=[f"{kind}-{next(iter(change))}-{n}" for n, (kind, _, change, _) in enumerate(IMPOSSIBLE)],
)
def test_what_cannot_be_built_is_refused(
    kind: str, rest: Config, change: Config, named: list[str]
) -> None:
    config = {"model_type": kind, **SIZES, **rest}
    if "layers_block_type" not in change:
        assert parameters(config) > 0  # the change alone makes it impossible
    with pytest.raises(InputProblem) as caught:
        estimate({**config, **change}, gpu="b200", lora=False)
    assert all(text in str(caught.value) for text in named), caught.value
    assert len(str(caught.value)) < 600


# What the classes build and run although it looks wrong; each counted as without the change.
@pytest.mark.parametrize(
    ("kind", "rest", "change"),
    [
        ("llama", {}, {"layer_types": ["chunked_attention"] * 4}),  # known, and not read
        ("llama", {}, {"layer_types": ["mamba"] * 4}),
        ("qwen3", {}, {"layer_types": [FULL] * 4}),
        ("phimoe", {"num_local_experts": 8}, {"num_experts_per_tok": 9}),  # its router takes two
        ("granite", {}, {"head_dim": 8}),
    ],
)
def test_what_can_be_built_is_not_refused(kind: str, rest: Config, change: Config) -> None:
    config = {"model_type": kind, **SIZES, **rest}
    assert parameters({**config, **change}) == parameters(config)


def test_before_5_a_class_looks_at_no_list_that_is_not_its_own() -> None:
    config = {"model_type": "llama", **SIZES, "layer_types": ["banana"]}
    assert parameters(config, transformers="4.57.6") > 0
    config = {"model_type": "qwen3", **SIZES, "layer_types": ["banana"]}
    with pytest.raises(InputProblem, match="banana"):
        parameters(config, transformers="4.57.6")


def test_granite_runs_where_llama_is_refused() -> None:
    assert parameters({"model_type": "granite", **SIZES, "hidden_size": 68}) > 0


def test_one_expert_needs_no_choice() -> None:
    config = {"model_type": "jamba", **SIZES, "num_experts": 1, "num_experts_per_tok": 2}
    assert parameters(config) > 0
