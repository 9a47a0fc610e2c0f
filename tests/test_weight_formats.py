"""Formats of stored weights: recipes, packed matrices, quantization_config, headers of files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fitcheck import InputProblem, Refusal, estimate
from fitcheck.engine.api import rules_for
from fitcheck.engine.evaluation import EvaluationError
from fitcheck.engine.paths import data_folder
from fitcheck.engine.selecting import layers_in, named
from fitcheck.engine.sources.gguf_file import Header, config_of

LLAMA = "meta-llama/Llama-3.1-8B"
# ggml-org/llama.cpp@311c2c9f0ebd, tools/quantize/README.md: bits a weight of Llama-3.1-8B
PUBLISHED = {
    "IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403,
    "IQ2_M": 2.9294, "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628,
    "IQ4_XS": 4.4597, "IQ4_NL": 4.6818, "Q2_K_S": 2.9697, "Q2_K": 3.1593, "Q3_K_S": 3.6429,
    "Q3_K_L": 4.2979, "Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036,
    "Q6_K": 6.5633, "Q8_0": 8.5008, "F16": 16.0005,
}  # fmt: skip
SMALL = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 300,
}  # fmt: skip
MATRICES = {
    "self_attn.q_proj": (256, 256), "self_attn.k_proj": (128, 256), "self_attn.v_proj": (128, 256),
    "self_attn.o_proj": (256, 256), "mlp.gate_proj": (512, 256), "mlp.up_proj": (512, 256),
    "mlp.down_proj": (256, 512),
}  # fmt: skip


def weights(model: Any, quant: str | None = None, **flags: Any) -> int:
    """Bytes of the weights in serving."""
    report = estimate(model, mode="serving", quant=quant, **flags)
    found = report["serving_weights"]
    assert isinstance(found, int)
    return found


def stored(**quantization: Any) -> dict[str, Any]:
    return {**SMALL, "quantization_config": quantization}


# recipes


@pytest.mark.parametrize(("quant", "bits"), PUBLISHED.items(), ids=str)
def test_a_recipe_has_the_published_bits(quant: str, bits: float) -> None:
    found = weights(LLAMA, quant, source="catalogue")
    assert round(found * 8 / 8_030_261_248, 4) == bits


def test_every_recipe_and_format_is_a_value_of_the_flag() -> None:
    rules = rules_for((), "serving")
    files = {profile.id for profile in rules.profiles["formats"]}
    assert files == {*rules.flags.flags["quant"].values}
    assert {*PUBLISHED} <= files
    assert "Q4_K_M" not in rules_for().flags.flags["quant"].values


def test_capitals_of_a_value_do_not_matter() -> None:
    assert weights(LLAMA, "q4_k_m", source="catalogue") == 4_912_898_048
    with pytest.raises(InputProblem, match="--quant q4_k is not modelled"):
        weights(LLAMA, "q4_k", source="catalogue")


def test_rows_that_are_no_multiple_of_256_take_another_type() -> None:
    # 896 is no multiple of 256: what reads it is Q5_0, Q8_0 in place of Q6_K; down_proj reads 4,864
    model = "Qwen/Qwen2.5-0.5B"
    fallback = weights(model, "Q4_K_M", source="catalogue")
    narrow = 24 * (2 * 896 * 896 + 128 * 896 + 2 * 4864 * 896)
    more, layers = 12, 24  # 3 + 3 + 6 layers of the 24 get more bits
    values = 128 * 896 * (more * 272 + (layers - more) * 176) // 256
    downs = 4864 * 896 * (more * 210 + (layers - more) * 144) // 256
    other = (24 * (2 * 896 + 896 + 2 * 128) + 896) * 4
    assert fallback == narrow * 176 // 256 + values + downs + 151_936 * 896 * 272 // 256 + other


def test_the_band_of_an_importance_matrix() -> None:
    report = estimate(LLAMA, source="catalogue", mode="serving", quant="IQ4_XS")
    downs = 4 * 4096 * 14336 // 256 * (176 - 136)  # in the first eighth of the layers
    assert report["serving_total_high"] - report["serving_total_low"] == pytest.approx(
        downs * 1.05, abs=2
    )


def test_more_bits_for_70b_and_for_eight_experts() -> None:
    shared = {**SMALL, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 32}
    sizes = {
        n: estimate({**shared, "num_hidden_layers": n}, mode="serving", quant="Q4_K_S")
        for n in (79, 80)
    }
    assert [sizes[n]["value_size"] for n in (79, 80)] == [144, 176]
    values = 32 * 256 // 256
    assert sizes[80]["recipe_values"] == values * 80 * 176  # the first four are Q5_K as well
    assert sizes[79]["recipe_values"] == values * (4 * 176 + 75 * 144)
    mixtral = "mistralai/Mixtral-8x7B-v0.1"
    eight = estimate(mixtral, source="catalogue", mode="serving", quant="Q4_K_M")
    assert eight["eight_experts"] and eight["value_size"] == 272  # Q8_0


def test_towers_and_odd_names_are_told() -> None:
    report = estimate("google/gemma-3-4b-it", source="catalogue", mode="serving", quant="Q4_K_M")
    assert report["recipe_ends"] > 2 * report["tower_parameters"]
    mamba = estimate(
        "state-spaces/mamba-2.8b-hf", source="catalogue", mode="serving", quant="Q4_K_M"
    )
    assert any("matrices of other names" in text for text in mamba.remarks)


# packed matrices


def test_a_published_checkpoint_of_experts() -> None:
    # metadata.total_size of model.safetensors.index.json of openai/gpt-oss-20b, recalled
    report = estimate("openai/gpt-oss-20b", source="catalogue", mode="serving")
    assert report["serving_weights"] == 13_761_264_768
    assert report.to_dict()["serving"]["quantization"] == "mxfp4"
    assert report.to_dict()["serving"]["quantization_from"].startswith("the quantization_config")


def awq(out: int, into: int) -> dict[str, tuple[tuple[int, ...], str]]:
    groups = into // 128
    return {
        "qweight": ((into, out // 8), "int32"),
        "qzeros": ((groups, out // 8), "int32"),
        "scales": ((groups, out), "float16"),
    }


def gptq(out: int, into: int) -> dict[str, tuple[tuple[int, ...], str]]:
    groups = into // 64
    return {
        "qweight": ((into // 8, out), "int32"),
        "qzeros": ((groups, out // 8), "int32"),
        "scales": ((groups, out), "float16"),
        "g_idx": ((into,), "int32"),
    }


def fp8_block(out: int, into: int) -> dict[str, tuple[tuple[int, ...], str]]:
    return {
        "weight": ((out, into), "int8"),  # numpy has no fp8
        "weight_scale_inv": ((-(-out // 128), -(-into // 128)), "float32"),
    }


def nvfp4(out: int, into: int) -> dict[str, tuple[tuple[int, ...], str]]:
    return {
        "weight_packed": ((out, into // 2), "uint8"),
        "weight_scale": ((out, into // 16), "uint8"),
        "weight_global_scale": ((1,), "float32"),
        "input_global_scale": ((1,), "float32"),
    }


FOUR_BITS = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
CHECKPOINTS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True}),
    "fp8-block": (fp8_block, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "nvfp4": (
        nvfp4,
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": FOUR_BITS}},
            "ignore": ["lm_head"],
        },
    ),
}


def write_folder(folder: Path, quantization: Mapping[str, Any], make: Callable[..., Any]) -> None:
    """A model folder with the tensors that a library would store."""
    np = pytest.importorskip("numpy")
    save = pytest.importorskip("safetensors.numpy")
    tensors = {
        "model.embed_tokens.weight": np.zeros((300, 256), "float16"),
        "lm_head.weight": np.zeros((300, 256), "float16"),
        "model.norm.weight": np.zeros(256, "float16"),
    }
    for layer in range(2):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{norm}.weight"] = np.zeros(256, "float16")
        for name, (out, into) in MATRICES.items():
            for part, (shape, dtype) in make(out, into).items():
                tensors[f"model.layers.{layer}.{name}.{part}"] = np.zeros(shape, dtype)
    config = {**SMALL, "quantization_config": quantization}
    folder.joinpath("config.json").write_text(json.dumps(config), encoding="utf-8")
    save.save_file(tensors, str(folder / "model.safetensors"))


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_formula_is_what_the_tensors_take(tmp_path: Path, name: str) -> None:
    make, quantization = CHECKPOINTS[name]
    write_folder(tmp_path, quantization, make)
    whole = estimate(tmp_path, mode="serving")
    derived = weights(tmp_path / "config.json")
    size = (tmp_path / "model.safetensors").stat().st_size
    header = int.from_bytes((tmp_path / "model.safetensors").read_bytes()[:8], "little")
    assert whole["serving_weights"] == size - header - 8 == derived
    assert whole.prepared.settings.values["quant"] == name
    assert whole.run.value("weight_layout") == "stored"
    assert whole.prepared.model.stored["stored_embedding_bytes"] == 300 * 256 * 2
    assert whole.prepared.model.stored["stored_head_bytes"] == 300 * 256 * 2
    assert any("headers of the files" in text for text in whole.remarks)
    assert whole.grade("serving_weights").grade == "derived"


@pytest.mark.parametrize(
    ("quantization", "quant", "changes"),
    [
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "gptq-8bit", {}),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq", {}),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8", {}),
        ({"quant_method": "fbgemm_fp8"}, "fp8", {}),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", {}),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4", {}),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            "nf4",
            {"double_quant": True},
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head"]},
            "fp8",
            {},
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", {}),
        ({"quant_method": "mxfp4"}, "mxfp4", {}),
        *(
            (
                {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": w}},
                },
                quant,
                {},
            )
            for quant, w in {
                "w4a16": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128},
                "w8a8": {"num_bits": 8, "type": "int", "strategy": "channel", "group_size": None},
                "fp8": {"num_bits": 8, "type": "float", "strategy": "channel"},
                "fp8-block": {"num_bits": 8, "type": "float", "strategy": "block"},
            }.items()
        ),
    ],
    ids=str,
)
def test_a_config_says_its_format(
    quantization: dict[str, Any], quant: str, changes: dict[str, Any]
) -> None:
    report = estimate(stored(**quantization), mode="serving")
    values = report.prepared.settings.values
    assert values["quant"] == quant
    assert {name: values[name] for name in changes} == changes
    assert any(f"stored as {quant}" in text for text in report.remarks)
    assert not any("--quant says" in text for text in report.remarks)
    explicit = estimate(SMALL, mode="serving", quant=quant, **changes)
    if quantization.get("group_size") != -1:  # that has another number of groups
        assert report["serving_weights"] == explicit["serving_weights"]
    assert "quantization_from" not in explicit.to_dict()["serving"]


def test_a_format_in_the_text_part_counts_too() -> None:
    outer = {
        "model_type": "llama",
        **SMALL,
        "text_config": {"quantization_config": {"quant_method": "fp8"}},
    }
    assert estimate(outer, mode="serving").prepared.settings.values["quant"] == "fp8"


def test_training_prices_the_base_as_before() -> None:
    config = stored(quant_method="awq", bits=4, group_size=128)
    assert estimate(config)["weights"] == estimate(SMALL)["weights"]
    assert any("--quant says" in text for text in estimate(config).remarks)


@pytest.mark.parametrize(
    ("quantization", "says"),
    [
        ({"quant_method": "hqq"}, "has the method 'hqq'"),
        ({"quant_method": "gptq", "bits": 3}, "has the method 'gptq' (3 bits"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "'MIXED_PRECISION'"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "blocks 64"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {}}, "in several ways"),
        (
            {"quant_method": "gptq", "bits": 4, "modules_in_block_to_quantize": [["q"]]},
            "some of them",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"targets": ["re:.*mlp.*"], "weights": FOUR_BITS}},
            },
            "some of them",
        ),
        ({"quant_method": "gptq", "bits": 4, "lm_head": True}, "packs the output head too"),
        ({"quant_method": ["awq"]}, "it has to be text"),
        ({"quant_method": "awq", "bits": "four"}, "it has to be a whole number"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "a list of text"),
        ({}, "has the method ''"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {
                            "num_bits": 4,
                            "type": "int",
                            "strategy": "group",
                            "symmetric": False,
                        }
                    }
                },
            },
            "zero points",
        ),
    ],
    ids=str,
)
def test_what_is_not_modelled_is_refused(quantization: dict[str, Any], says: str) -> None:
    with pytest.raises(InputProblem) as caught:
        estimate(stored(**quantization), mode="serving")
    assert says in str(caught.value)


def test_a_contradiction_is_refused() -> None:
    config = stored(quant_method="awq", bits=4)
    with pytest.raises(Refusal, match=r"stored as awq, and --quant asks for nf4"):
        estimate(config, mode="serving", quant="nf4")
    with pytest.raises(Refusal, match=r"stored as awq, and --quant asks for none"):
        estimate(config, mode="serving", quant="none")
    assert weights(config, "awq") == weights(config)
    with pytest.raises(Refusal, match=r"--quant gguf takes the bytes from a file"):
        estimate(SMALL, mode="serving", quant="gguf")
    proposals = estimate(config, mode="serving", vram_mib=600).to_dict()["proposals"]
    assert all("quant" not in proposal["changes"] for proposal in proposals)


def test_modules_that_stay_as_they_are() -> None:
    whole = weights(stored(quant_method="fbgemm_fp8"))
    left = weights(stored(quant_method="fbgemm_fp8", modules_to_not_convert=["model.layers.1.mlp"]))
    matrices = 3 * 512 * 256
    scales = 4 * (512 + 512 + 256) + 3 * 8
    assert left - whole == matrices * 2 - matrices - scales
    everything = weights(stored(quant_method="fbgemm_fp8", modules_to_not_convert=["model.layers"]))
    assert everything == weights(SMALL, "none")


def test_modules_that_bitsandbytes_is_told_to_skip() -> None:
    config = stored(load_in_4bit=True, llm_int8_skip_modules=["lm_head", "model.layers.0.mlp"])
    matrices = 3 * 512 * 256
    assert weights(config) - weights(SMALL, "nf4") == matrices * (2 - 0.5625)


def test_cards_that_unpack_are_told() -> None:
    model = "openai/gpt-oss-20b"
    old = estimate(model, source="catalogue", mode="serving", gpu="v100-32")
    assert any("unpacks MXFP4 to bf16" in text for text in old.warnings)
    assert not any("MXFP4" in text for text in estimate(model, mode="serving", gpu="h100").warnings)
    config = stored(quant_method="fp8")
    assert any(
        "no fp8 units" in w for w in estimate(config, mode="serving", gpu="a100-80").warnings
    )
    assert not estimate(config, mode="serving", gpu="h100").warnings


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        (["lm_head"], 0),
        (["self_attn"], 4),
        (["model.layers.2"], 1),
        (["layers.2.self_attn.q_proj", "model.layers.16"], 2),
        (["q_pro"], 0),
        (["model.layers.*.self_attn"], 4),
        (["model.layers.1*"], 1),
        (["*q_proj*"], 4),
        ([r"re:.*self_attn\.q_proj$"], 4),
        ([r"re:model\.layers\.(5|6)\..*"], 2),
        (["re:self_attn"], 0),
        ([], 0),
    ],
    ids=str,
)
def test_lists_of_a_checkpoint(words: list[str], layers: int) -> None:
    assert named(words, "model.layers.#.self_attn.q_proj", "2 5-6 16") == layers


@pytest.mark.parametrize("word", ["re:(a+)+$", "re:[", "*a*a*a*a*a*", "re:" + "a" * 400], ids=len)
def test_an_intricate_pattern_is_refused(word: str) -> None:
    with pytest.raises(EvaluationError):
        named([word], "model.layers.#.self_attn.q_proj", "0-3")
    with pytest.raises(Exception, match=r"intricate|no regular expression"):
        weights(stored(quant_method="fp8", modules_to_not_convert=[word]))


def test_layers_of_a_span() -> None:
    assert layers_in("0-3 7", 0, 8, 1) == 5
    assert layers_in("0-31", 6, 28, 3) == 8
    assert layers_in("4", 5, 9, 1) == 0
    for wrong in ((0, 8, 0), (0, 8, -1)):
        with pytest.raises(EvaluationError):
            layers_in("0-3", *wrong)


# properties

ORDER = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q3_K_S", "Q2_K_S")
LADDER = ("none", "w8a8", "int8", "gptq", "awq", "w4a16")


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    heads = draw(st.sampled_from([4, 8, 16]))
    return {
        **SMALL,
        "hidden_size": 256 * draw(st.integers(1, 16)),
        "num_hidden_layers": draw(st.integers(8, 90)),  # in fewer, Q4_K_S picks more than Q4_K_M
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([1, 2, heads])),
        "head_dim": 64,
        "intermediate_size": 256 * draw(st.integers(1, 40)),
        "vocab_size": draw(st.integers(256, 200_000)),
        "tie_word_embeddings": draw(st.booleans()),
    }


@settings(max_examples=25, deadline=None)
@given(configs())
def test_more_bits_are_not_smaller(config: dict[str, Any]) -> None:
    sizes = [weights(config, quant) for quant in ORDER]
    assert sizes == sorted(sizes, reverse=True)
    packed = [weights(config, quant) for quant in LADDER]
    assert max(packed) == packed[0] and packed[3] >= packed[4] >= packed[5]


@settings(max_examples=15, deadline=None)
@given(configs(), st.sampled_from([*ORDER, *LADDER, "fp8", "fp8-block", "nvfp4", "IQ4_XS", "Q4_0"]))
def test_a_larger_model_takes_more(config: dict[str, Any], quant: str) -> None:
    before = weights(config, quant)
    for key in ("hidden_size", "intermediate_size", "vocab_size"):
        assert weights({**config, key: config[key] + 256}, quant) > before


# GGUF files


def write_gguf(path: Path, architecture: str = "llama", **change: Any) -> None:
    """A small Llama in Q4_K with a Q6_K head, as the library of llama.cpp writes it."""
    np = pytest.importorskip("numpy")
    gguf = pytest.importorskip("gguf")
    shape_of = pytest.importorskip("gguf.quants").quant_shape_to_byte_shape
    q4, q6 = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K
    writer = gguf.GGUFWriter(str(path), architecture)
    numbers = {
        "context_length": 2048, "embedding_length": 256, "block_count": 2,
        "feed_forward_length": 512, "attention.head_count": 4, "attention.head_count_kv": 2,
        **change,
    }  # fmt: skip
    for key, value in numbers.items():
        add = writer.add_array if isinstance(value, list) else writer.add_uint32
        add(key if key.startswith("split.") else f"{architecture}.{key}", value)
    writer.add_token_list([b"token"] * 300)

    def add_tensor(name: str, shape: tuple[int, ...], kind: Any = None) -> None:
        if kind is None:
            writer.add_tensor(name, np.zeros(shape, "float32"))
        else:
            writer.add_tensor(name, np.zeros(shape_of(shape, kind), "uint8"), raw_dtype=kind)

    add_tensor("token_embd.weight", (300, 256), q4)
    add_tensor("output.weight", (300, 256), q6)
    add_tensor("output_norm.weight", (256,))
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    for layer in range(2):
        for name, shape in zip(names, MATRICES.values(), strict=True):
            add_tensor(f"blk.{layer}.{name}.weight", shape, q4)
        add_tensor(f"blk.{layer}.attn_norm.weight", (256,))
        add_tensor(f"blk.{layer}.ffn_norm.weight", (256,))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


BYTES = (300 * 256 + 2 * sum(a * b for a, b in MATRICES.values())) * 144 // 256
BYTES += 300 * 256 * 210 // 256 + 5 * 256 * 4


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write_gguf(path)
    return path


def test_a_gguf_file_is_a_model(small: Path) -> None:
    report = estimate(small, mode="serving")
    assert report["serving_weights"] == BYTES
    model = report.prepared.model
    assert model.name == "small" and model.model_type == "llama"
    assert model.counted_parameters == report["built_parameters"]
    assert model.stored["stored_embedding_bytes"] == 300 * 256 * 144 // 256
    assert model.stored["stored_head_bytes"] == 300 * 256 * 210 // 256
    assert report["kv_cache_per_token"] == estimate(SMALL, mode="serving")["kv_cache_per_token"]
    block = report.to_dict()["serving"]
    assert (block["quantization"], block["quantization_from"]) == (
        "gguf", "the header of the GGUF file",
    )  # fmt: skip
    assert estimate(small)["activations"] == estimate(SMALL)["activations"]  # training, too
    with pytest.raises(Refusal, match="stored as gguf, and --quant asks for Q4_K_M"):
        estimate(small, mode="serving", quant="Q4_K_M")


def test_a_model_in_parts(tmp_path: Path) -> None:
    first = tmp_path / "m-00001-of-00002.gguf"
    write_gguf(first, **{"split.count": 2})
    with pytest.raises(InputProblem, match=r"first of 2 parts, and 'm-00002-of-00002.gguf' is not"):
        estimate(first, mode="serving")
    gguf = pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    writer = gguf.GGUFWriter(str(tmp_path / "m-00002-of-00002.gguf"), "llama")
    writer.add_tensor("rope_freqs.weight", np.zeros(32, "float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert weights(first) == BYTES + 128
    other = tmp_path / "renamed.gguf"
    other.write_bytes(first.read_bytes())
    with pytest.raises(InputProblem, match="give the first of them"):
        estimate(other, mode="serving")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda data: b"", "as a GGUF file"),
        (lambda data: b"GGUF", "it ends at byte 4"),
        (lambda data: b"\0" * 100, "magic"),
        (lambda data: data[:900], "it ends at byte 900"),
        (lambda data: data[:-1000], "before what its header promises"),
        (lambda data: data[:8] + b"\xff" * 8 + data[16:], "as a GGUF file"),
        (lambda data: data[:16] + b"\xff" * 8 + data[24:], "as a GGUF file"),
    ],
    ids=["empty", "magic only", "zeros", "cut header", "cut data", "tensors", "fields"],
)
def test_a_wrong_gguf_file(small: Path, tmp_path: Path, make: Any, says: str) -> None:
    path = tmp_path / "wrong.gguf"
    path.write_bytes(make(small.read_bytes()))
    with pytest.raises(InputProblem, match="Could not read") as caught:
        estimate(path, mode="serving")
    assert says in str(caught.value)


@settings(max_examples=150, deadline=2000)
@given(st.lists(st.tuples(st.integers(0, 2600), st.integers(0, 255)), min_size=1, max_size=12))
def test_a_hostile_header_gets_words(small: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(small.read_bytes())
    for place, byte in changes:
        data[place] = byte
    path = small.with_name("hostile.gguf")
    path.write_bytes(data)
    try:
        estimate(path, mode="serving")
    except (InputProblem, Refusal) as problem:
        assert str(problem)


def test_other_architectures_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    write_gguf(path, "falcon")
    with pytest.raises(InputProblem, match=r"architecture 'falcon', which .* known are deepseek2"):
        estimate(path, mode="serving")
    write_gguf(path, **{"attention.head_count_kv": [2, 1]})
    with pytest.raises(InputProblem, match="head_count_kv differs from layer to layer"):
        estimate(path, mode="serving")
    write_gguf(path, block_count=3)  # says a layer more than it holds
    estimate(path, mode="serving")
    write_gguf(path, block_count=1)
    with pytest.raises(Refusal, match="something in it is not described"):
        estimate(path, mode="serving")


FAMILIES = {
    "llama": "mistralai/Mistral-7B-v0.3",
    "qwen2": "Qwen/Qwen2.5-7B",
    "qwen3": "Qwen/Qwen3-8B",
    "qwen3moe": "Qwen/Qwen3-30B-A3B",
    "gemma2": "google/gemma-2-9b",
    "gemma3": "google/gemma-3-1b-it",
    "phi3": "microsoft/Phi-3.5-mini-instruct",
    "gpt-oss": "openai/gpt-oss-20b",
    "deepseek2": "deepseek-ai/DeepSeek-V3",
}


@pytest.mark.parametrize(("architecture", "model"), FAMILIES.items(), ids=str)
def test_metadata_mean_the_config(architecture: str, model: str) -> None:
    stem = model.lower().replace("/", "--")
    config = yaml.safe_load(Path(data_folder("profiles/models"), f"{stem}.yaml").read_text())[
        "config"
    ]
    data = yaml.safe_load(Path(data_folder("profiles/gguf"), f"{architecture}.yaml").read_text())
    metadata: dict[str, Any] = {"general.architecture": architecture}
    for variant in data["variants"][:1] if architecture == "deepseek2" else ():
        metadata.update(variant["equals"])
    specs = {
        k: s
        for v in ({}, *data["variants"])
        for k, s in {**data["config"], **v.get("config", {})}.items()
    }
    for key, spec in specs.items():
        if "from" in spec and "minus" not in spec and config.get(key) is not None:
            metadata[spec["from"][0]] = config[key]
    for key, spec in specs.items():
        if "minus" in spec and config.get(key) is not None:
            metadata[spec["from"][0]] = config[key] + metadata.get(spec["minus"], 0)
    vocabulary = (config["hidden_size"], config["vocab_size"])
    sizes = {"token_embd.weight": 1, **({} if tied(model) else {"output.weight": 1})}
    found = config_of("x.gguf", Header(metadata, {"token_embd.weight": vocabulary}, sizes))
    known = estimate(model, source="catalogue", lora=False)["built_parameters"]
    assert estimate(found, lora=False)["built_parameters"] == known
    assert found["quantization_config"] == {"quant_method": "gguf"}


def tied(model: str) -> bool:
    report = estimate(model, source="catalogue", lora=False)
    return bool(report.prepared.model.fields["tie_word_embeddings"])


def test_experts_of_mixtral_and_plain_queries() -> None:
    metadata = {
        "general.architecture": "llama",
        "llama.expert_count": 8,
        "llama.expert_used_count": 2,
    }
    found = config_of("x.gguf", Header(metadata, {}, {}))
    assert (found["model_type"], found["num_local_experts"]) == ("mixtral", 8)
    found = config_of("x.gguf", Header({"general.architecture": "deepseek2"}, {}, {}))
    assert found["model_type"] == "deepseek_v2" and found["q_lora_rank"] is None


# folders


def test_an_index_alone_says_the_sum(tmp_path: Path) -> None:
    config = stored(quant_method="awq", bits=4)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    index = {"metadata": {"total_size": 900_000}, "weight_map": {"a": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert weights(tmp_path) == 900_000
    assert weights(tmp_path / "config.json") != 900_000
    for wrong, says in (
        ({"weight_map": {"a": "../x.safetensors"}}, "has no weight_map"),
        ({"weight_map": []}, "has no weight_map"),
        ({"metadata": {"total_size": -1}, "weight_map": {"a": "m.safetensors"}}, "1 are missing"),
    ):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(InputProblem, match=says):
            weights(tmp_path)


def test_shards_are_added_up_and_a_missing_one_is_told(tmp_path: Path) -> None:
    make, quantization = CHECKPOINTS["awq"]
    write_folder(tmp_path, quantization, make)
    before = weights(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1.safetensors")
    np, save = pytest.importorskip("numpy"), pytest.importorskip("safetensors.numpy")
    save.save_file({"more": np.zeros(10, "int8")}, str(tmp_path / "model-2.safetensors"))
    index = {"weight_map": {"a": "model-1.safetensors", "more": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert weights(tmp_path) == before + 10
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(InputProblem, match="names 2 files and 1 are missing"):
        weights(tmp_path)


@pytest.mark.parametrize(
    "make", [lambda d: d[:50], lambda d: d[:-9], lambda d: b"\xff" * 8 + d[8:], lambda d: b""]
)
def test_a_wrong_safetensors_file(tmp_path: Path, make: Any) -> None:
    packed, quantization = CHECKPOINTS["awq"]
    write_folder(tmp_path, quantization, packed)
    path = tmp_path / "model.safetensors"
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(InputProblem, match="Could not read"):
        weights(tmp_path)


def test_missing_libraries_are_named(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, quantization = CHECKPOINTS["awq"]
    write_folder(tmp_path, quantization, make)
    before = weights(tmp_path)
    for name in [n for n in sys.modules if n.partition(".")[0] == "gguf" or "gguf_header" in n]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(InputProblem, match=r"pip install 'fitcheck-llm\[gguf\]'"):
        weights(small)
    report = estimate(tmp_path, mode="serving")
    assert report["serving_weights"] == before  # by the formula
    assert any("pip install 'fitcheck-llm[safetensors]'" in text for text in report.remarks)


def test_an_unpacked_model_keeps_its_precision(tmp_path: Path) -> None:
    write_folder(tmp_path, {}, lambda out, into: {"weight": ((out, into), "float16")})
    (tmp_path / "config.json").write_text(json.dumps(SMALL), encoding="utf-8")
    assert weights(tmp_path, precision="fp32") == 2 * weights(tmp_path)
    assert weights(tmp_path) == weights(SMALL)
    stored_bytes = estimate(tmp_path, mode="serving").prepared.model.stored["stored_bytes"]
    assert stored_bytes == weights(SMALL)
