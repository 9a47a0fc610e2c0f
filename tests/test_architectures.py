"""Which configs are estimated, which are refused and how, and what a broken one is told.

Where the sibling folder ``shared`` is present, every config collected there is read too.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from fitcheck import Refusal, Report, estimate
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem

SHARED = Path(__file__).resolve().parents[2] / "shared" / "configs"
Config = dict[str, Any]

LLAMA: Config = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def without(*keys: str) -> Config:
    return {key: value for key, value in LLAMA.items() if key not in keys}


def problem(config: Config) -> str:
    with pytest.raises(InputProblem) as caught:
        estimate(config)
    return str(caught.value)


# --- collected configs ---------------------------------------------------------------------------


def collected() -> list[dict[str, str]]:
    """The rows of the index, or none where the folder is absent."""
    index = SHARED / "INDEX.csv"
    if not index.is_file():
        return []
    with index.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


INDEX = collected()
needs_shared = pytest.mark.skipif(
    not INDEX, reason=f"{SHARED} is not there: collected configs are kept outside the repository"
)
ROWS = INDEX or [{"model_id": "absent"}]
each_config = pytest.mark.parametrize("row", ROWS, ids=[row["model_id"] for row in ROWS])

# No estimate stands for these: what each refusal has to name.
NOT_MODELLED = {
    "microsoft/Phi-3-small-8k-instruct": "phi3small",
    "moonshotai/Kimi-K3": "which are not modelled",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "its layers differ (block_configs in config.json)",
    "openai/whisper-large-v3": "encoder",
}


def path_of(row: dict[str, str]) -> Path:
    return SHARED / f"{row['model_id'].replace('/', '--')}.json"


@needs_shared
@each_config
def test_a_collected_config_is_counted_exactly_or_refused(row: dict[str, str]) -> None:
    config = str(path_of(row))
    if row["model_id"] in NOT_MODELLED:
        with pytest.raises(Refusal) as caught:
            estimate(config, source="local")
        says = str(caught.value)
        assert says.isprintable() and len(says) < 400 and says.endswith(".")
        assert NOT_MODELLED[row["model_id"]] in says
        return
    report = estimate(config, source="local", lora_targets="all-linear")
    if not row["status"].endswith("-unverified"):  # the dimensions of those may be wrong
        assert report["parameters"] == int(row["exact_params_total"] or row["published_hub_count"])
    assert told(report, "text-alone") == bool(report.prepared.model.lists["tower_groups"])
    assert len(report.warnings) == told(report, "text-alone") + told(report, "carried-later")
    assert report.unsettled == ()


def told(report: Report, limit: str) -> bool:
    """Whether a limit that is told to the reader holds."""
    return any(c.id == limit and c.says in report.warnings for c in report.caveats)


@needs_shared
def test_what_is_refused_is_among_the_collected_configs() -> None:
    assert set(NOT_MODELLED) <= {row["model_id"] for row in INDEX}


# Dense types that need no key beyond those of `LLAMA`.
DENSE = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "smollm3",
    "seed_oss",
    "olmo2",
    "olmo3",
    "granite",
    "exaone4",
    "hunyuan_v1_dense",
]


# --- refusals ------------------------------------------------------------------------------------

# Types that no file models: the files that go by keys, and those that know a type by its name.
REFUSED: dict[str, list[Config]] = {
    "mixture-of-experts": [
        {"model_type": "unheard-of", "num_local_experts": 8, "num_experts_per_tok": 2},
        {"model_type": "unheard-of", "num_experts": 128},
        {"model_type": "unheard-of", "n_routed_experts": 256, "kv_lora_rank": 512},
        {"model_type": "unheard-of", "moe_num_experts": 64},
        {"model_type": "unheard-of", "num_experts": 1},
    ],
    "multimodal-flat": [
        {"model_type": "unheard-of", "vision_config": {}},
        {"model_type": "unheard-of", "audio_config": {"num_mel_bins": 128}},
        {"model_type": "phi3_v", "img_processor": {"name": "clip"}},
        {"model_type": "unheard-of", "embd_layer": {"embedding_cls": "image_audio"}},
    ],
    "multimodal-nested": [
        {"model_type": "unheard-of", "hidden_size": None, "text_config": {"hidden_size": 4096}}
    ],
    "latent-attention": [{"model_type": "unheard-of", "kv_lora_rank": 256}],
    "hybrid-layers": [
        {"model_type": "unheard-of", "mamba_d_state": 128},
        {"model_type": "unheard-of", "mamba_d_ssm": 3072},
        {"model_type": "unheard-of", "state_size": 16},
        {"model_type": "unheard-of", "lru_width": 2560},
        {"model_type": "unheard-of", "conv_L_cache": 3},
        {"model_type": "unheard-of", "hybrid_override_pattern": "M-*"},
        {"model_type": "unheard-of", "mamba_n_heads": 48, "num_experts_per_tok": 0},
        {"model_type": "unheard-of", "linear_conv_kernel_dim": 4, "num_experts": 512},
    ],
    "per-layer-shapes": [
        {"model_type": "unheard-of", "block_configs": [{"attention": {"no_op": True}}]},
        {"model_type": "unheard-of", "ffn_multipliers": [0.5, 4.0]},
        {"model_type": "unheard-of", "num_kv_shared_layers": 15},
    ],
    "nemotron-nas": [
        {"model_type": "nemotron-nas", "block_configs": [{"attention": {"no_op": True}}]}
    ],
    "phi3small": [{"model_type": "phi3small"}],
    "kimi-k3": [{"model_type": "kimi_k3", "linear_attn_config": {"kda_layers": [1]}}],
    "gemma4-per-layer": [
        {"model_type": "gemma4_text", "per_layer_config": {"0": {"head_dim": 128}}}
    ],
    "encoder-decoder": [{"model_type": "t5", "is_encoder_decoder": True}],
    "whisper": [{"model_type": "whisper", "is_encoder_decoder": True, "hidden_size": None}],
    "encoder-only": [{"model_type": kind} for kind in ("bert", "roberta", "modernbert")],
    "not-llama-shaped": [{"model_type": kind} for kind in ("cpmant", "moshi", "RefinedWeb")],
    "encoder-decoder-types": [{"model_type": kind} for kind in ("bart", "trocr", "musicgen")],
    "looped-layers": [{"model_type": kind} for kind in ("dory", "hrm_text")],
    "block-residuals": [{"model_type": "inkling2_text", "n_routed_experts": 384}],
    "phi4-multimodal": [{"model_type": kind} for kind in ("phi4_multimodal", "phi4mm")],
    "other-generators": [{"model_type": kind} for kind in ("blt", "reformer", "xlm")],
    "timm-towers": [{"model_type": kind} for kind in ("fast_vlm", "perception_lm")],
    "q-former-models": [{"model_type": kind} for kind in ("blip-2", "instructblip")],
    "sam-towers": [{"model_type": kind} for kind in ("got_ocr2", "deepseek_vl_hybrid")],
    "image-tokenizers": [{"model_type": kind} for kind in ("chameleon", "emu3", "janus")],
    "seeing-encoder-decoders": [{"model_type": kind} for kind in ("florence2", "kosmos-2")],
    "no-language-models": [{"model_type": kind} for kind in ("diffusion_gemma", "pi0")],
    "omni-models": [{"model_type": kind} for kind in ("qwen2_5_omni", "qwen3_omni_moe")],
}

# What was refused before a file modelled it: the type, the keys that it was refused for, its file.
MODELLED = [
    ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}, "mixtral"),
    ({"model_type": "qwen3_moe", "num_experts": 128}, "qwen3-moe"),
    ({"model_type": "ernie4_5_moe", "moe_num_experts": 64}, "ernie4-5-moe"),
    ({"model_type": "deepseek_v3", "n_routed_experts": 256, "kv_lora_rank": 512}, "deepseek-v3"),
    ({"model_type": "minicpm3", "kv_lora_rank": 256}, "minicpm3"),
    ({"model_type": "qwen2_5_vl", "vision_config": {}}, "qwen2-5-vl"),
    (
        {
            "model_type": "llava",
            "text_config": LLAMA,
            "vision_config": {"model_type": "clip_vision_model"},
        },
        "llava",
    ),
    ({"model_type": "bamba", "mamba_d_state": 128}, "bamba"),
    ({"model_type": "falcon_h1", "mamba_d_ssm": 3072}, "falcon-h1"),
    ({"model_type": "mamba", "state_size": 16}, "mamba"),
    ({"model_type": "recurrent_gemma", "lru_width": 2560}, "recurrent-gemma"),
    ({"model_type": "lfm2", "conv_L_cache": 3}, "lfm2"),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*"}, "nemotron-h"),
    ({"model_type": "granitemoehybrid", "layer_types": ["attention"] * 32}, "granite-hybrid"),
    ({"model_type": "qwen3_next", "linear_conv_kernel_dim": 4, "num_experts": 512}, "qwen3-next"),
    ({"model_type": "gemma3n_text", "num_kv_shared_layers": 15}, "gemma3n-text"),
    ({"model_type": "phi3"}, "phi3"),
    ({"model_type": "internlm2"}, "internlm"),
    ({"model_type": "baichuan"}, "baichuan"),
    ({"model_type": "glm"}, "glm"),
    ({"model_type": "glm4"}, "glm"),
    ({"model_type": "qwen"}, "qwen"),
    ({"model_type": "exaone"}, "exaone"),
    ({"model_type": "gpt2"}, "gpt2"),
    ({"model_type": "gpt_neox"}, "gpt-neox"),
    ({"model_type": "phi"}, "phi"),
    ({"model_type": "falcon"}, "falcon"),
    ({"model_type": "cohere"}, "cohere"),
    ({"model_type": "bitnet"}, "bitnet"),
]


@pytest.mark.parametrize(("config", "file"), MODELLED, ids=str)
def test_a_shape_that_was_refused_is_modelled_by_its_name(config: Config, file: str) -> None:
    report = estimate({**LLAMA, **config}, lora_targets="all-linear")
    assert report.prepared.model.architecture == file
    assert report.prepared.model.verified
    assert len(report.warnings) == told(report, "text-alone") + told(report, "carried-later")


@pytest.mark.parametrize(
    ("file", "config"), [(f, c) for f, configs in REFUSED.items() for c in configs], ids=str
)
def test_a_shape_that_is_not_modelled_is_refused(file: str, config: Config) -> None:
    (architecture,) = [a for a in rules_for().architectures if a.id == file]
    config = {"_name_or_path": "Some-Model", **LLAMA, **config}
    with pytest.raises(Refusal) as caught:
        estimate(config)
    assert str(caught.value) == architecture.refusal("Some-Model", config)
    assert str(caught.value).startswith("Some-Model ")


def test_every_refusing_file_has_an_example_and_names_the_direction() -> None:
    refusing = {a.id: a.data["refuse"] for a in rules_for().architectures if "refuse" in a.data}
    assert set(refusing) == set(REFUSED)
    named = {
        "under": ["under-count", "report a fit where"],
        "over": ["over-count"],
        "unknown": ["either direction", "by up to a third", "nobody knows", "could be checked"],
    }
    for name, refuse in refusing.items():
        assert any(word in refuse["says"] for word in named[refuse["direction"]]), name
        assert "not modelled" in refuse["says"], name
        assert "not possible" not in refuse["says"], name


def test_a_refusal_does_not_depend_on_a_null() -> None:
    for configs in REFUSED.values():
        for config in configs:
            keys = config.keys() - {"model_type", "hidden_size"}
            if keys:
                assert estimate({**LLAMA, **dict.fromkeys(keys)})["parameters"] == 8_030_261_248
    assert estimate({**LLAMA, "is_encoder_decoder": False})["total"] > 0


def test_an_unverified_type_is_estimated_warned_about_and_capped() -> None:
    report = estimate({**LLAMA, "model_type": "unheard-of"}, gpu="b200", qlora=True)
    assert report["parameters"] == 8_030_261_248
    assert report.status == "uncertain"
    (warning,) = report.warnings
    assert warning.startswith("model_type unheard-of was never checked")
    assert report.unsettled == ("model_type unheard-of is not verified",)
    verified = estimate(LLAMA, gpu="b200", qlora=True)
    assert (verified.status, verified.warnings, verified.unsettled) == ("safe", (), ())


@pytest.mark.parametrize("kind", DENSE)
def test_verified_types(kind: str) -> None:
    report = estimate({**LLAMA, "model_type": kind})
    assert report.prepared.model.verified
    assert (report.warnings, report.unsettled) == ((), ())


def test_nothing_is_verified_of_a_type_that_no_file_names() -> None:
    (fallback,) = [a for a in rules_for().architectures if a.own.get("matches") == {}]
    assert fallback.id == "llama"
    assert "verified" not in fallback.data


# --- broken configs ------------------------------------------------------------------------------

# field: its meaning in messages, and the largest value it takes
INTEGERS = {
    "hidden_size": ("hidden size", 1_048_576),
    "num_hidden_layers": ("decoder layers", 65_536),
    "num_attention_heads": ("query heads", 65_536),
    "num_key_value_heads": ("key and value heads", 65_536),
    "head_dim": ("width of one head", 65_536),
    "intermediate_size": ("MLP width", 16_777_216),
    "vocab_size": ("vocabulary size", 16_777_216),
}
REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
each_integer = pytest.mark.parametrize("field", INTEGERS)


@each_integer
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("4096", '"4096"'),
        ("", '""'),
        (True, "true"),
        (False, "false"),
        (4096.5, "4096.5"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        ([4096], "[4096]"),
        ({}, "{}"),
        ("y" * 200, '"' + "y" * 56 + "..."),
    ],
    ids=str,
)
def test_wrong_type(field: str, value: Any, shown: str) -> None:
    says = problem({**LLAMA, field: value})
    assert says == f"config.json field '{field}' is {shown}; it has to be a whole number."


@each_integer
@pytest.mark.parametrize("value", [0, -1, -4096])
def test_zero_and_negative(field: str, value: int) -> None:
    says = problem({**LLAMA, field: value})
    assert says == f"config.json field '{field}' is {value}; it has to be at least 1."


@each_integer
@pytest.mark.parametrize(
    ("value", "shown"),
    [(2**31, "2147483648"), (10**30, "a number of more than 20 digits")],
    ids=["2**31", "10**30"],
)
def test_absurd_size(field: str, value: int, shown: str) -> None:
    largest = INTEGERS[field][1]
    assert problem({**LLAMA, field: value}) == (
        f"config.json field '{field}' is {shown}, past every real model; the largest value "
        f"accepted is {largest:,}."
    )
    assert problem({**LLAMA, field: largest + 1}).endswith(f"accepted is {largest:,}.")


def test_the_largest_model_that_is_accepted() -> None:
    config = {**LLAMA, **{field: largest for field, (_, largest) in INTEGERS.items()}}
    report = estimate(config, batch_size=1_048_576, seq_len=16_777_216)
    assert report.status == "does_not_fit"
    json.dumps(report.to_dict(), allow_nan=False)


@each_integer
def test_whole_floats_are_whole_numbers(field: str) -> None:
    plain = estimate({**LLAMA, "head_dim": 128})
    value = float({**LLAMA, "head_dim": 128}[field])
    report = estimate({**LLAMA, "head_dim": 128, field: value})
    assert report["total"] == plain["total"]
    assert all(not isinstance(v, float) for v in report.prepared.model.fields.values())


@pytest.mark.parametrize("field", REQUIRED)
def test_missing_field(field: str) -> None:
    assert problem(without(field)) == (
        f"config.json has no '{field}' ({INTEGERS[field][0]}), so config cannot be estimated."
    )


@pytest.mark.parametrize("field", REQUIRED)
def test_null_is_as_good_as_missing(field: str) -> None:
    assert problem({**LLAMA, field: None}).startswith(f"config.json has no '{field}'")


@pytest.mark.parametrize("field", REQUIRED)
def test_a_null_field_is_not_proposed_for_itself(field: str) -> None:
    assert "is it meant?" not in problem({**LLAMA, field: None})


def test_a_misspelt_field_is_proposed() -> None:
    says = problem({**without("hidden_size"), "hiden_size": 4096})
    assert says == (
        "config.json has no 'hidden_size' (hidden size), so config cannot be estimated. "
        "There is 'hiden_size': is it meant?"
    )


@pytest.mark.parametrize("config", [{}, {"a": 1}, {"model_type": "llama"}], ids=str)
def test_an_empty_config_names_the_first_field(config: Config) -> None:
    assert problem(config).startswith("config.json has no 'hidden_size'")


def test_what_stands_in_for_an_absent_field() -> None:
    config = without("num_key_value_heads", "intermediate_size", "tie_word_embeddings")
    report = estimate(config)
    fields = report.prepared.model.fields
    assert (fields["num_kv_heads"], fields["head_dim"]) == (32, 128)
    assert (fields["intermediate_size"], fields["tie_word_embeddings"]) == (16384, False)
    assert report.warnings == (
        "config.json has no intermediate_size: 4 x hidden_size = 16,384 is taken, which can be 10 "
        "to 30 % off.",
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [("true", '"true"'), ("false", '"false"'), (0, "0"), (1, "1"), ([], "[]"), ("", '""')],
    ids=str,
)
def test_a_tie_flag_is_true_or_false(value: Any, shown: str) -> None:
    assert problem({**LLAMA, "tie_word_embeddings": value}) == (
        f"config.json field 'tie_word_embeddings' is {shown}; it has to be true or false, without "
        "quotes."
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(5, "5"), ([], "[]"), (True, "true"), ({}, "{}")], ids=str
)
def test_a_model_type_is_a_word(value: Any, shown: str) -> None:
    says = problem({**LLAMA, "model_type": value})
    assert says == f"config.json field 'model_type' has to be a word, not {shown}."


def test_heads_that_do_not_divide_the_hidden_size() -> None:
    config = {**LLAMA, "num_attention_heads": 48}
    assert problem(config) == (
        "config.json has no 'head_dim', and hidden_size / num_attention_heads = 85.3333 is not "
        "whole. Add 'head_dim' (width of one head; hidden size over heads where the config says "
        "nothing)."
    )
    assert estimate({**config, "model_type": "seed_oss", "head_dim": 80})["total"] > 0
    assert "beside a head_dim" in problem({**config, "head_dim": 80})  # LlamaConfig refuses it


def test_more_key_value_heads_than_heads() -> None:
    assert problem({**LLAMA, "num_key_value_heads": 33}) == (
        "config.json field 'num_key_value_heads' is 33, more than the 32 of "
        "'num_attention_heads'; it has to be at most as many."
    )


def test_control_characters_never_reach_the_terminal() -> None:
    assert problem({**LLAMA, "hidden_size": "\x1b[31m"}).isprintable()


@pytest.mark.parametrize("key", ["model_type", "_name_or_path"])
def test_words_of_a_config_are_printable_and_short(key: str) -> None:
    report = estimate({**LLAMA, key: "\x1b[31m" + "x" * 1000})
    assert all(said.isprintable() and len(said) < 400 for said in (*report.warnings, str(report)))
