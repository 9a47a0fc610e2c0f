"""Counts that have to be exact: of collected configs, of pitfalls that a config sets, of changes.

The first part needs the sibling folder ``shared``: configs, and what transformers builds from them.
The rest states small configs whose counts are worked out beside them.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from fitcheck import Report, estimate
from fitcheck.engine.errors import InputProblem, Refusal

SHARED = Path(__file__).resolve().parents[2] / "shared"
NEWER, OLDER = "5.24.0", "4.57.6"
QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")

Config = dict[str, Any]
Modules = Counter[tuple[str, int, int, bool]]


# --- collected configs ---------------------------------------------------------------------------

REFUSED = {"openai/whisper-large-v3"}  # has an exact count, and an encoder that is not modelled
# Its collected count takes the experts for packed, which the quantizer does only to a checkpoint
# that is stored packed (test_transformers_builds.py runs it); the rest is what it packs.
UNPACKED = {"meta-llama/Llama-4-Scout-17B-16E-Instruct"}
# Its caches keep a window and one entry for many tokens, which the list of caches cannot say.
NO_CACHE = {"deepseek-ai/DeepSeek-V4-Flash"}


def collected() -> list[dict[str, str]]:
    """The rows of the index with an exact count, or none where the folder is absent."""
    index = SHARED / "configs" / "INDEX.csv"
    if not index.is_file():
        return []
    with index.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    certain = [row for row in rows if not row["status"].endswith("-unverified")]
    return [row for row in certain if row["exact_params_total"] and row["model_id"] not in REFUSED]


ROWS = collected()
needs_shared = pytest.mark.skipif(
    not ROWS, reason=f"{SHARED} is not there: collected configs are kept outside the repository"
)
GIVEN = ROWS or [{"model_id": "absent"}]
each_row = pytest.mark.parametrize("row", GIVEN, ids=[row["model_id"] for row in GIVEN])
each_version = pytest.mark.parametrize("version", [NEWER, OLDER])


def read(kind: str, row: Mapping[str, str]) -> Any:
    path = SHARED / kind / f"{row['model_id'].replace('/', '--')}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def truth(model_id: str) -> Any:
    return read("truth", {"model_id": model_id})


def linears(model_id: str, version: str) -> list[dict[str, Any]] | None:
    """The linear modules of the class, equal ones together; None where it could not be built."""
    known = truth(model_id)
    found = known["linear_modules_v5" if version == NEWER else "linear_modules_v457"]
    if found == "same as v5":
        found = known["linear_modules_v5"]
    return found or None


def counted(row: Mapping[str, str], **flags: Any) -> Report:
    flags = {"lora_targets": "all-linear", **flags}
    return estimate(read("configs", row), precision="bf16", **flags)


def modules(report: Report) -> Modules:
    """The linear modules of the canonical model, with experts of their own if they have any."""
    found: Modules = Counter()
    for group in report.prepared.model.lists["all_groups"]:
        for m in group["modules"]:
            if m["kind"] not in ("stacked", "patched"):
                key = (m["name"], m["d_in"], m["d_out"], bool(m["bias"]))
                found[key] += group["count"] * m["copies"]
    return found


@needs_shared
def test_almost_every_collected_config_is_counted() -> None:
    assert len(ROWS) >= 120
    assert {*UNPACKED, *NO_CACHE} <= {row["model_id"] for row in ROWS}


@needs_shared
@each_row
def test_parameters(row: dict[str, str]) -> None:
    report = counted(row)
    assert report["parameters"] == int(row["exact_params_total"])
    assert report["embedding_parameters"] == int(row["params_embedding"])
    assert report["head_parameters"] == int(row["params_lm_head"])
    assert report["expert_parameters"] == int(row["params_experts"])
    assert report["tower_parameters"] == int(row["params_vision"])
    parts = ("linear_parameters", "float_parameters", "bias_parameters")
    assert report["parameters"] == sum(report[name] for name in parts)


@needs_shared
def test_parameters_of_a_class_outside_transformers() -> None:
    config = read("configs", {"model_id": "apple/OpenELM-270M"})
    assert total(config) == 271_527_168  # what its repository says


@needs_shared
@each_row
def test_parameters_that_bitsandbytes_packs(row: dict[str, str]) -> None:
    packed = (truth(row["model_id"]).get("bnb_v5") or {}).get("params")
    before = row["params_linear_quantizable_tf457"]
    assert packed is not None or before, "nothing to compare with"
    if packed is not None:
        experts = int(row["params_experts"]) if row["model_id"] in UNPACKED else 0
        assert counted(row)["linear_parameters"] == packed - experts
    if before:
        assert counted(row, transformers=OLDER)["linear_parameters"] == int(before)


@needs_shared
@each_row
@each_version
def test_linear_modules(row: dict[str, str], version: str) -> None:
    found = linears(row["model_id"], version)
    if found is None:
        pytest.skip(f"no class was built with transformers {version}")
    tied = truth(row["model_id"])["counts"]["tied"]
    expected: Modules = Counter()
    for m in found:
        if not (tied and m["is_output_head"]):
            key = (m["leaf"], m["in_features"], m["out_features"], bool(m["bias"]))
            expected[key] += m["count"]
    assert modules(counted(row, transformers=version)) == expected


@needs_shared
@each_row
@pytest.mark.parametrize("tokens", [64, 8192])
def test_cache(row: dict[str, str], tokens: int) -> None:
    measured = row[f"kv_bytes_T{tokens}_bf16_tf5"]
    if not measured:
        pytest.skip("its cache was not measured")
    found = counted(row, seq_len=tokens)["cache_bytes"]
    if row["model_id"] in NO_CACHE:
        assert found >= int(measured)  # said too high rather than too low
    else:
        assert found == int(measured)


@needs_shared
@each_row
@each_version
def test_adapters(row: dict[str, str], version: str) -> None:
    found = linears(row["model_id"], version)
    if found is None:
        pytest.skip(f"no class was built with transformers {version}")
    widths: Counter[str] = Counter()
    for m in found:
        if not m["is_output_head"]:
            widths[m["leaf"]] += m["count"] * (m["in_features"] + m["out_features"])
    everywhere = counted(row, lora_r=1, transformers=version)
    assert everywhere["lora_parameters"] == sum(widths.values())
    there = [name for name in QKVO if name in widths]
    if there:
        some = counted(row, lora_r=8, lora_targets=there, transformers=version)
        assert some["lora_parameters"] == 8 * sum(widths[name] for name in there)
    for name in set(QKVO) - set(there):
        with pytest.raises(Refusal, match=f"no linear module of this model is called {name}"):
            counted(row, lora_targets=[name], transformers=version)


@needs_shared
@pytest.mark.parametrize(
    ("model_id", "chosen", "experts"),
    [
        ("Qwen/Qwen3-30B-A3B", 8, 128),
        ("mistralai/Mixtral-8x7B-v0.1", 2, 8),
        ("deepseek-ai/DeepSeek-V3", 8, 256),
        ("openai/gpt-oss-20b", 4, 32),
        # transformers gives every expert every token, but the router chooses one
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 1, 16),
        ("meta-llama/Llama-2-7b-hf", 1, 1),
    ],
)
def test_parameters_that_a_token_meets(model_id: str, chosen: int, experts: int) -> None:
    (row,) = [row for row in ROWS if row["model_id"] == model_id]
    idle = int(row["params_experts"]) * (experts - chosen) // experts
    assert counted(row)["active_parameters"] == int(row["exact_params_total"]) - idle


# --- pitfalls of a config.json -------------------------------------------------------------------

LLAMA: Config = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
SMALL_CLIP: Config = {
    "model_type": "clip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}
SMALL_SIGLIP: Config = {**SMALL_CLIP, "model_type": "siglip_vision_model"}


def total(config: Config, *without: str, **changes: Any) -> int:
    """The parameters of a config with some keys taken away and others set."""
    kept = {key: value for key, value in config.items() if key not in without}
    found = estimate({**kept, **changes}, lora_targets="all-linear")["parameters"]
    assert isinstance(found, int)
    return found


def text_only(config: Config, **flags: Any) -> Report:
    return estimate(config, lora_targets="all-linear", **flags)


def test_llama_by_hand() -> None:
    """The base of most tests below: 2 V h, and in a layer q, k, v, o, three matrices, two norms."""
    layer = 64 * 64 + 2 * 64 * 16 + 64 * 64 + 3 * 64 * 96 + 2 * 64
    assert total(LLAMA) == 2 * 1000 * 64 + 4 * layer + 64


# 1. An absent key is the default of the class.


def test_gemma3_leaves_out_heads_and_vocabulary() -> None:
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "num_hidden_layers": 34,
        "intermediate_size": 10240,
    }
    report = text_only({"model_type": "gemma3", "text_config": text, "vision_config": SMALL_SIGLIP})
    assert report["parameters"] - report["tower_parameters"] == 3_880_263_168


def test_llava_leaves_out_every_dimension_of_its_text() -> None:
    text = {"model_type": "llama", "vocab_size": 32064}
    report = text_only({"model_type": "llava", "text_config": text, "vision_config": SMALL_CLIP})
    found = report["parameters"] - report["tower_parameters"]
    assert found == 6_738_415_616 + 2 * 64 * 4096  # Llama-2-7B with 64 words more


def test_falcon_leaves_out_the_width_of_its_mlp() -> None:
    falcon = {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 32,
        "num_attention_heads": 71,
        "vocab_size": 65024,
        "multi_query": True,
        "parallel_attn": True,
        "bias": False,
        "new_decoder_architecture": False,
    }
    assert total(falcon) == total(falcon, ffn_hidden_size=None) == 6_921_720_704


DEEPSEEK_V2: Config = {
    "model_type": "deepseek_v2",
    "hidden_size": 2048,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 102400,
    "tie_word_embeddings": False,
}


def test_null_is_not_absent() -> None:
    plain = 2048 * 16 * 192
    latent = 2048 * 1536 + 1536 + 1536 * 16 * 192  # the rank of the class
    assert total(DEEPSEEK_V2) == 15_706_484_224
    assert total(DEEPSEEK_V2, "q_lora_rank") == 15_706_484_224 + 27 * (latent - plain)


# 2. A wrong dialect is refused.

PHI_MSFT: Config = {
    "model_type": "phi-msft",
    "n_embd": 2560,
    "n_layer": 32,
    "n_head": 32,
    "n_head_kv": None,
    "n_inner": None,
    "n_positions": 2048,
    "vocab_size": 51200,
    "tie_word_embeddings": False,
}


def test_the_old_dialect_of_phi() -> None:
    assert total(PHI_MSFT) == 2_779_683_840
    with pytest.raises(InputProblem, match=r"config\.json has no 'hidden_size'"):
        total(PHI_MSFT, model_type="phi")


# 3. Whether embeddings and head are one.


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("qwen2", False), ("qwen3", False), ("gemma", True), ("gemma2", True)],
)
def test_a_tie_is_the_default_of_the_type(model_type: str, tied: bool) -> None:
    config = {**LLAMA, "model_type": model_type, "head_dim": 8}
    absent = total(config, "tie_word_embeddings")
    assert absent == total(config, tie_word_embeddings=tied)
    assert total(config) == total(config, tie_word_embeddings=True) + 1000 * 64


VISION_3VL: Config = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 4,
    "in_channels": 3,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [0],
}


@pytest.mark.parametrize(
    ("model_type", "text_type", "vision", "parameters", "tied"),
    [
        # as transformers 5.24 builds them; "tied" names (flag in the text, flag at the top)
        ("llava", "llama", SMALL_CLIP, 285_760, {(None, 1), (1, None), (1, 1), (1, 0), (0, 1)}),
        (
            "gemma3",
            "gemma3_text",
            SMALL_SIGLIP,
            290_560,
            {(None, None), (1, None), (0, None), (None, 1), (1, 1), (0, 1)},
        ),
        ("qwen3_vl", "qwen3_vl_text", VISION_3VL, 348_448, {(None, 1), (1, 1), (0, 1)}),
    ],
)
def test_the_tie_of_a_nested_file(
    model_type: str, text_type: str, vision: Config, parameters: int, tied: set[tuple[Any, Any]]
) -> None:
    plain = {key: value for key, value in LLAMA.items() if key != "tie_word_embeddings"}
    plain |= {"model_type": text_type} | ({} if text_type == "llama" else {"head_dim": 8})
    for inner in (None, True, False):
        for outer in (None, True, False):
            text = plain if inner is None else {**plain, "tie_word_embeddings": inner}
            config = {"model_type": model_type, "text_config": text, "vision_config": vision}
            config |= {} if outer is None else {"tie_word_embeddings": outer}
            less = 1000 * 64 if (inner, outer) in tied else 0
            assert total(config) == parameters - less, (inner, outer)


# 4. What a repository holds is not what is built.

QWEN3_06B: Config = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


def test_a_stored_head_is_not_built_again() -> None:
    assert total(QWEN3_06B) == 596_049_920  # the file holds 751,632,384


def test_layers_that_predict_further_tokens_are_not_built() -> None:
    assert total(DEEPSEEK_V2, model_type="deepseek_v3", num_nextn_predict_layers=1) == total(
        DEEPSEEK_V2, model_type="deepseek_v3"
    )


# 5. Keys of newer releases.


def test_keys_of_newer_releases() -> None:
    newer = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}, "dtype": "bfloat16"}
    assert total({**LLAMA, **newer}) == total(
        {**LLAMA, "rope_theta": 1e4, "rope_scaling": None, "torch_dtype": "bfloat16"}
    )


def test_a_pattern_and_a_list_of_layers_are_the_same() -> None:
    gemma = {**LLAMA, "model_type": "gemma3_text", "head_dim": 8, "num_hidden_layers": 12}
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 2
    listed, pattern = {"layer_types": kinds}, {"sliding_window_pattern": 6}
    caches = [
        text_only({**gemma, "sliding_window": 128, **keys}, seq_len=4096)["cache_bytes"]
        for keys in (listed, pattern)
    ]
    assert caches[0] == caches[1] == 2 * 32 * (10 * 127 + 2 * 4096)


# 6. Heads.


def test_no_key_value_heads_are_as_many_as_heads() -> None:
    assert total(LLAMA, num_key_value_heads=None) == total(LLAMA, num_key_value_heads=8)
    assert total(LLAMA, "num_key_value_heads") == total(LLAMA, num_key_value_heads=8)


def test_a_head_may_be_wider_than_its_share() -> None:
    assert total(LLAMA, head_dim=None) == total(LLAMA, head_dim=8) == total(LLAMA)
    assert total(LLAMA, head_dim=16) == total(LLAMA) + 4 * 64 * 8 * (2 * 8 + 2 * 2)


def test_latent_attention_has_no_use_for_a_head_dim() -> None:
    assert total(DEEPSEEK_V2, head_dim=72) == total(DEEPSEEK_V2)


MAMBA2: Config = {
    "model_type": "mamba2",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_heads": 8,
    "head_dim": 16,
    "expand": 2,
    "state_size": 16,
    "n_groups": 1,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}


def test_the_heads_of_mamba2_are_those_of_its_state() -> None:
    inner = 8 * 16
    conv = inner + 2 * 16
    mixer = 3 * 8 + conv * 4 + conv + 64 * (inner + conv + 8) + inner + inner * 64
    assert total(MAMBA2) == 2 * 1000 * 64 + 2 * (mixer + 64) + 64


# 7. Keys that say something else than the class does.

FALCON_MAMBA: Config = {
    "model_type": "falcon_mamba",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "state_size": 16,
    "time_step_rank": 4,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
QWEN3_MOE: Config = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "head_dim": 8,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
MINIMAX_M2: Config = {
    **LLAMA,
    "model_type": "minimax_m2",
    "head_dim": 8,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
HUNYUAN_MOE: Config = {
    **LLAMA,
    "model_type": "hunyuan_v1_moe",
    "head_dim": 8,
    "num_experts": 4,
    "num_shared_expert": 1,
    "moe_topk": 2,
}
MIMO_V2: Config = {
    **LLAMA,
    "model_type": "mimo_v2_flash",
    "head_dim": 8,
    "v_head_dim": 8,
    "swa_num_attention_heads": 8,
    "swa_num_key_value_heads": 4,
    "swa_head_dim": 8,
    "swa_v_head_dim": 8,
    "hybrid_layer_pattern": [0, 1, 1, 0],
    "moe_layer_freq": [0, 1, 1, 1],
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "sliding_window": 128,
}


def test_the_inner_width_of_falcon_mamba_is_its_intermediate_size() -> None:
    inner, state, rank = 128, 16, 4
    mixer = inner * state + inner + inner * 4 + inner + 2 * 64 * inner
    mixer += inner * (rank + 2 * state) + rank * inner + inner + inner * 64
    assert total(FALCON_MAMBA) == 2 * 1000 * 64 + 2 * (mixer + 64) + 64
    assert total(FALCON_MAMBA, expand=16) == total(FALCON_MAMBA)


@pytest.mark.parametrize(
    ("config", "decoy"),
    [
        (QWEN3_MOE, {"shared_expert_intermediate_size": 4096}),
        (MINIMAX_M2, {"shared_intermediate_size": 4096}),
        (HUNYUAN_MOE, {"moe_intermediate_size": [4096] * 4}),
        (MIMO_V2, {"swa_num_key_value_heads": 8}),
        (LLAMA, {"sliding_window": 128}),
    ],
    ids=lambda value: value.get("model_type", str(value)),
)
def test_what_the_class_does_not_read(config: Config, decoy: Config) -> None:
    assert total({**config, **decoy}) == total(config)


def test_the_decoys_stand_beside_keys_that_count() -> None:
    assert total(QWEN3_MOE, moe_intermediate_size=64) == total(QWEN3_MOE) + 4 * 8 * 3 * 64 * 32
    more = 4 * (4 + 1) * 3 * 64 * 32  # the experts and the shared one
    assert total(HUNYUAN_MOE, intermediate_size=128) == total(HUNYUAN_MOE) + more
    assert total(MIMO_V2, num_key_value_heads=4) > total(MIMO_V2)


def test_a_window_that_is_not_used() -> None:
    qwen = {**LLAMA, "model_type": "qwen2", "sliding_window": 128, "max_window_layers": 0}
    whole, windowed = (
        text_only({**qwen, "use_sliding_window": used}, seq_len=1024)["cache_bytes"]
        for used in (False, True)
    )
    assert whole == 4 * 1024 * 2 * 2 * 8 * 2
    assert windowed == whole * 127 // 1024


@pytest.mark.parametrize(
    ("model_type", "keys"),
    [
        ("falcon", {"bias": False, "parallel_attn": True, "new_decoder_architecture": False}),
        ("gpt_bigcode", {"n_embd": 64, "n_layer": 4, "n_head": 8, "n_positions": 128}),
    ],
)
def test_multi_query_is_one_head_of_keys_and_values(model_type: str, keys: Config) -> None:
    config = {**LLAMA, "model_type": model_type, **keys}
    caches = [
        text_only({**config, "multi_query": one}, seq_len=64)["cache_bytes"]
        for one in (True, False)
    ]
    assert caches[0] == 4 * 64 * 2 * 8 * 2
    assert caches[1] == 8 * caches[0]


def test_no_experts_are_a_dense_mlp() -> None:
    granite = {
        **LLAMA,
        "model_type": "granitemoehybrid",
        "layer_types": ["attention"] * 4,
        "shared_intermediate_size": 96,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
    }
    assert total(granite) == total(LLAMA)
    report = text_only(granite)
    assert report["expert_parameters"] == 0
    assert {group["ffn"] for group in report.prepared.model.lists["layer_groups"]} == {"dense"}


# 8. Types.


def test_a_list_where_a_number_is_wanted() -> None:
    listed = {"moe_topk": [2] * 4, "num_shared_expert": [1] * 4}
    assert total({**HUNYUAN_MOE, **listed}) == total(HUNYUAN_MOE)


def test_an_automatic_rank() -> None:
    config = {**FALCON_MAMBA, "model_type": "mamba"}
    assert total(config, time_step_rank="auto") == total(config)  # 64 / 16
    with pytest.raises(InputProblem, match="'time_step_rank' is \"automatic\""):
        total(config, time_step_rank="automatic")


def test_a_pattern_of_letters() -> None:
    exaone = {**LLAMA, "model_type": "exaone4", "head_dim": 8, "sliding_window": 128}
    found = text_only({**exaone, "sliding_window_pattern": "LLLG"}, seq_len=1024)["cache_bytes"]
    assert found == 2 * 2 * 8 * 2 * (3 * 127 + 1024)


def test_a_pattern_that_is_longer_than_the_layers() -> None:
    """The entry past the last layer belongs to the layer that predicts further tokens."""
    if not ROWS:
        pytest.skip(f"{SHARED} is not there, and the config of this family is large")
    (row,) = [row for row in ROWS if row["model_type"] == "deepseek_v4"]
    config = read("configs", row)
    assert len(config["compress_ratios"]) == config["num_hidden_layers"] + 1
    shorter = {**config, "compress_ratios": config["compress_ratios"][:-1]}
    assert total(shorter) == total(config) == int(row["exact_params_total"])


@pytest.mark.parametrize("value", ["true", "False", 1, 0])
def test_a_truth_in_quotes_is_refused(value: Any) -> None:
    with pytest.raises(InputProblem, match=r"'attention_bias' is .*has to be true or false"):
        total(LLAMA, attention_bias=value)


# 9. Nesting.

VISION_2VL: Config = {
    "depth": 2,
    "embed_dim": 32,
    "hidden_size": 64,
    "num_heads": 4,
    "in_chans": 3,
    "mlp_ratio": 4,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}


def test_older_files_keep_the_text_keys_at_the_top() -> None:
    """In the tower `hidden_size` is the width that it gives to the text."""
    text = {key: value for key, value in LLAMA.items() if key != "model_type"}
    flat = {"model_type": "qwen2_vl", **text, "vision_config": VISION_2VL}
    nested = {
        "model_type": "qwen2_vl",
        "text_config": {"model_type": "qwen2_vl_text", **text},
        "vision_config": VISION_2VL,
        "tie_word_embeddings": False,
    }
    biases = 4 * (64 + 2 * 16)
    for config in (flat, nested):
        report = text_only(config)
        assert report["parameters"] - report["tower_parameters"] == total(LLAMA) + biases
    assert total(flat) == total(nested)


def test_the_type_of_the_text_decides_and_may_be_absent() -> None:
    nested = {"model_type": "llava", "text_config": LLAMA, "vision_config": SMALL_CLIP}
    without = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert total(nested, text_config=without) == total(nested)
    qwen = {**LLAMA, "model_type": "qwen2"}
    assert total(nested, text_config=qwen) == total(nested) + 4 * (64 + 2 * 16)


# 10. LFM2.

LFM2: Config = {
    **LLAMA,
    "model_type": "lfm2",
    "intermediate_size": 12288,
    "layer_types": ["conv", "full_attention", "conv", "conv"],
    "conv_L_cache": 3,
    "conv_bias": False,
    "block_multiple_of": 256,
    "block_ffn_dim_multiplier": 1.0,
}


def test_lfm2_adjusts_its_width_and_prefers_its_own_key() -> None:
    adjusted, kept = total(LFM2), total(LFM2, block_auto_adjust_ff_dim=False)
    assert kept - adjusted == 4 * 3 * 64 * (12288 - 8192)
    assert total(LFM2, intermediate_size=1, block_ff_dim=12288) == adjusted


# --- a family in one file ------------------------------------------------------------------------

INVENTED = """\
# One matrix for queries, keys and values; every second layer has an MLP twice as wide.
id: stepladder
title: Stepladder, a family that does not exist
status: stable
extends: decoder
matches: {model_type: [stepladder]}
verified: [stepladder]
fields:
  hidden_size: {from: [width], type: integer, min: 1, max: 1_048_576, meaning: hidden size}
  step: {from: [step_every], type: integer, min: 1, max: 64, otherwise: 2, meaning: which are wide}
layer_groups:
  - count: num_layers
    each: i
    fields:
      mixer: '"full"'
      ffn: '"dense"'
      window: 0
      hidden_size: hidden_size
      intermediate_size: intermediate_size * (2 if (i + 1) % step == 0 else 1)
    blocks: [norms, {use: fused_attention, set: {qkv_name: '"qkv"', o_name: '"o_proj"'}}, gated_mlp]
evidence:
  made-up: {kind: assumption, where: a test, says: no such class exists}
"""
STEPLADDER: Config = {
    "model_type": "stepladder",
    "width": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 1000,
}


def test_an_invented_family_is_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "profiles" / "architectures"
    folder.mkdir(parents=True)
    (folder / "stepladder.yaml").write_text(INVENTED, encoding="utf-8")
    report = estimate(
        STEPLADDER, rules=str(tmp_path), lora_targets=["qkv", "o_proj"], lora_r=4, seq_len=64
    )
    model = report.prepared.model
    assert (model.architecture, model.verified) == ("stepladder", True)
    assert [g["count"] for g in model.lists["layer_groups"]] == [3, 3]
    attention = 64 * (64 + 2 * 16) + 64 * 64
    mlps = 3 * 3 * 64 * 96 + 3 * 3 * 64 * 192
    assert report["parameters"] == 2 * 1000 * 64 + 6 * (attention + 2 * 64) + mlps + 64
    assert report["lora_parameters"] == 6 * 4 * ((64 + 96) + (64 + 64))
    assert report["cache_bytes"] == 6 * 64 * 2 * 2 * 8 * 2
    assert report["total"] > 0
    assert report.status == "uncertain"  # a changed rule is never safe
    with pytest.raises(InputProblem, match=r"config\.json has no 'hidden_size'"):
        estimate(STEPLADDER)


# --- changes whose effect is known ---------------------------------------------------------------


def differs(config: Config, by: int, **changes: Any) -> None:
    assert total(config, **changes) - total(config) == by


def test_words_widths_and_layers() -> None:
    layer = (total(LLAMA) - total(LLAMA, num_hidden_layers=2)) // 2
    differs(LLAMA, 2 * 128 * 64, vocab_size=1128)
    differs(LLAMA, 4 * 3 * 64 * 256, intermediate_size=352)
    differs(LLAMA, -4 * 2 * 64 * 8, num_key_value_heads=1)
    differs(LLAMA, 4 * layer, num_hidden_layers=8)
    differs(LLAMA, -1000 * 64, tie_word_embeddings=True)


def test_biases() -> None:
    differs(LLAMA, 4 * (64 + 2 * 16 + 64), attention_bias=True)
    differs(LLAMA, 4 * (96 + 96 + 64), mlp_bias=True)
    differs({**LLAMA, "model_type": "mistral"}, 0, attention_bias=True)  # the class has none
    qwen3 = {**LLAMA, "model_type": "qwen3", "head_dim": 8}
    differs(qwen3, 4 * (64 + 2 * 16 + 64), attention_bias=True)


def test_experts() -> None:
    differs(QWEN3_MOE, 4 * 8 * (3 * 64 * 32 + 64), num_experts=16)
    dense = 3 * 64 * 96 - 8 * (3 * 64 * 32 + 64)
    differs(QWEN3_MOE, dense, mlp_only_layers=[1])
    differs(QWEN3_MOE, 2 * dense, decoder_sparse_step=2)
    differs(QWEN3_MOE, 0, num_experts_per_tok=4)
    differs(DEEPSEEK_V2, 26 * 64 * (3 * 2048 * 1408 + 2048), n_routed_experts=128)
    differs(DEEPSEEK_V2, 26 * 3 * 2048 * 1408, n_shared_experts=3)


def test_a_tie_without_an_effect() -> None:
    """NemotronH does not read the flag."""
    nemotron = {
        **LLAMA,
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M-*-",
        "head_dim": 8,
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "n_groups": 1,
        "conv_kernel": 4,
    }
    differs(nemotron, 0, tie_word_embeddings=True)


def test_windows_of_mimo_v2_have_twice_the_heads() -> None:
    more = text_only({**MIMO_V2, "num_key_value_heads": 1})
    heads = {
        group["mixer"]: [m["d_out"] for m in group["modules"] if m["name"] == "k_proj"]
        for group in more.prepared.model.lists["layer_groups"]
    }
    assert heads == {"full": [8], "sliding": [16]}


def test_the_last_layer_of_gemma4_sees_every_token() -> None:
    if not ROWS:
        pytest.skip(f"{SHARED} is not there, and the config of this family is large")
    (row,) = [row for row in ROWS if row["model_id"] == "google/gemma-4-26B-A4B"]
    text = read("configs", row)["text_config"]
    kinds = text["layer_types"][:4]
    assert kinds[-1] == "sliding_attention"
    shallow = text_only({**text, "num_hidden_layers": 4, "layer_types": kinds})
    found = shallow.prepared.model.lists["layer_groups"]
    assert Counter({g["mixer"]: g["count"] for g in found}) == {"sliding": 3, "full": 1}
