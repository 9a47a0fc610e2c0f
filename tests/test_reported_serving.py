"""What people reported against other estimators: the dimensions of each case, in every engine."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import Report, estimate

REPO = Path(__file__).resolve().parents[1]
SHARED = REPO.parent / "shared" / "cases" / "reported.yaml"
FACTS = {
    case["id"]: case
    for case in yaml.safe_load(
        (REPO / "tests/golden/reported_serving.yaml").read_text(encoding="utf-8")
    )["serving"]
}
MIB, GIB = 1 << 20, 1 << 30
# an engine at each of its files of versions
VLLM = [("vllm", v) for v in (None, "0.8", "0.9", "0.14", "0.18", "0.20", "0.26")]
LLAMA_CPP = [("llama.cpp", v) for v in (None, "5137", "5554", "6975", "7832", "9455")]
OTHERS = [("hf-transformers", None), ("sglang", None), ("tgi", None), ("tensorrt-llm", None)]
ENGINES = [*OTHERS, *VLLM, *LLAMA_CPP]
CELLS = [engine for engine in LLAMA_CPP if engine[1] not in (None, "5137")]


def common(case: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    """The config keys that every family has; what a case does not say has no part in a cache."""
    model = case["model"]
    heads = model.get("heads", 2 * model["kv_heads"] if "kv_heads" in model else 16)
    return {
        "hidden_size": model.get("hidden", 2048),
        "num_hidden_layers": model["layers"],
        "num_attention_heads": heads,
        "num_key_value_heads": model.get("kv_heads", heads),
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "tie_word_embeddings": False,
    } | keys


def plain(case: Mapping[str, Any], kind: str = "llama", **keys: Any) -> dict[str, Any]:
    return common(case, model_type=kind, head_dim=case["model"]["head_dim"], **keys)


def mixed(case: Mapping[str, Any], kind: str, full: int, **keys: Any) -> dict[str, Any]:
    """Layers with a window, and `full` without one."""
    layers = case["model"]["layers"]
    every = layers // full
    types = [
        "full_attention" if (i + 1) % every == 0 and i < full * every else "sliding_attention"
        for i in range(layers)
    ]
    assert types.count("full_attention") == full
    window = case["model"]["window"]
    return plain(case, kind, layer_types=types, sliding_window=window, **keys)


def latent(case: Mapping[str, Any], kind: str, **keys: Any) -> dict[str, Any]:
    experts = {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2}
    shapes = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128}
    rest = {"v_head_dim": 128, "moe_intermediate_size": 512, "first_k_dense_replace": 1}
    return common(case, model_type=kind, **experts, **shapes, **rest, **keys)


def hybrid(case: Mapping[str, Any]) -> dict[str, Any]:
    model = case["model"]
    linear = {
        "key_head_dim": 128,
        "value_head_dim": 128,
        "num_key_heads": 16,
        "num_value_heads": 32,
    }
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512}
    return plain(
        case,
        "qwen3_next",
        full_attention_interval=model["layers"] // model["attention_layers"],
        linear_conv_kernel_dim=4,
        shared_expert_intermediate_size=512,
        **{f"linear_{name}": value for name, value in linear.items()},
        **experts,
    )


def convolutions(case: Mapping[str, Any]) -> dict[str, Any]:
    heads = case["model"]["kv_heads_per_layer"]
    types = ["full_attention" if n else "conv" for n in heads]
    keys = {"num_key_value_heads": max(heads), "hidden_size": 1024, "conv_L_cache": 3}
    return common(case, model_type="lfm2", layer_types=types) | keys


def config_of(name: str) -> dict[str, Any]:
    case = FACTS[name]
    windowed = {"sliding_window": case["model"].get("window")}
    special = {
        "sliding-engine-dependent": lambda: mixed(
            case, "gpt_oss", 12, num_local_experts=4, num_experts_per_tok=2
        ),
        "five-to-one-windows": lambda: mixed(case, "gemma3_text", 10),
        "hybrid-one-in-four": lambda: hybrid(case),
        "mla-latent": lambda: latent(
            case,
            "deepseek_v3",
            q_lora_rank=1536,
            n_group=1,
            topk_group=1,
            num_attention_heads=128,
            num_key_value_heads=128,
        ),
        "unlike-k-and-v": lambda: latent(case, "deepseek_v2", num_attention_heads=16),
        "per-layer-kv-heads": lambda: convolutions(case),
        "uniform-window-silently-ignored": lambda: plain(case, "mistral", **windowed),
        "head-dim-not-derived": lambda: plain(case, "qwen3"),
        "head-dim-not-derived-small": lambda: plain(case, "qwen3"),
    }
    return special[name]() if name in special else plain(case)


def serve(name: str, engine: tuple[str, str | None], **flags: Any) -> Report:
    run, (kind, version) = FACTS[name].get("run", {}), engine
    flags = {
        "seq_len": run.get("context", 4096),
        "concurrent": run.get("sequences", 1),
        "precision": {"f16": "fp16"}.get(run.get("kv", "bf16"), run.get("kv", "bf16")),
    } | flags
    if version is not None:
        flags["engine_version"] = version
    config = config_of(name)
    return estimate(config, mode="serving", gpu="h100", source="catalogue", engine=kind, **flags)


def cache(name: str, engine: tuple[str, str | None], **flags: Any) -> int:
    return int(serve(name, engine, **flags)["kv_cache"])


def said(name: str, figure: str, unit: int = GIB) -> tuple[float, float]:
    """A reported figure in bytes, and half a unit of its last digit."""
    value = FACTS[name]["expect"][figure]
    digits = len(str(value).partition(".")[2])
    return value * unit, unit * 10.0**-digits / 2


def test_the_copy_is_the_original() -> None:
    if not SHARED.exists():
        pytest.skip("the file that the facts are a copy of is not beside this checkout")
    original = yaml.safe_load(SHARED.read_text(encoding="utf-8"))["serving"]
    assert list(FACTS.values()) == original


def test_every_case_has_a_test() -> None:
    tested = Path(__file__).read_text(encoding="utf-8").partition("def cache(")[2]
    assert not [name for name in FACTS if f'"{name}"' not in tested]


# without windows and states every engine keeps the same, in whole pages

PAGED = {"control-gqa": "cache_gib", "head-dim-not-derived-small": "cache_gib"}


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize("name", PAGED)
def test_full_attention_is_the_same_everywhere(name: str, engine: tuple[str, str | None]) -> None:
    value, half = said(name, PAGED[name])
    assert abs(cache(name, engine) - value) <= half


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_the_width_of_a_head_is_no_quotient(engine: tuple[str, str | None]) -> None:
    name = "head-dim-not-derived"
    per_token = FACTS[name]["expect"]["cache_bytes_per_token_bf16"]
    assert serve(name, engine)["kv_cache_per_token"] == per_token
    assert cache(name, engine) == 4096 * per_token


@pytest.mark.parametrize("engine", LLAMA_CPP, ids=str)
def test_a_quantised_cache(engine: tuple[str, str | None]) -> None:
    for kv_dtype, figure in (("q8_0", "cache_gib_q8_0"), ("auto", "cache_gib_f16")):
        value, half = said("quantised-cache", figure)
        assert abs(cache("quantised-cache", engine, kv_dtype=kv_dtype) - value) <= half


# windows

EXACT = ("hf-transformers", None)


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_alternating_windows_depend_on_the_engine(engine: tuple[str, str | None]) -> None:
    name = "sliding-engine-dependent"
    windowed, half = said(name, "windowed_cache_gib")
    whole, _ = said(name, "engine_that_unifies_pages_gib")
    found = cache(name, engine)
    page = 32 * 12 * 16 * 2048  # of 32 requests in 12 layers: 16 tokens of 2,048 bytes
    micro_batch = 32 * 12 * 768 * 2048  # cells of a window of 128 and 512 tokens, padded to 256
    if engine == EXACT:
        assert abs(found - windowed) <= half
    elif engine in CELLS:
        assert found == whole / 2 + micro_batch > windowed
        shared = cache(name, engine, shared_cells=True)
        assert shared == whole / 2 + 12 * 4608 * 2048  # 32 windows of 128, and one of 512
    elif engine[0] == "vllm" and engine[1] != "0.8":
        assert found == whole + page  # a prompt fits one forward pass, and a page more
        assert cache(name, engine, chunk=512) < whole
    else:
        assert found == whole


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_five_windows_to_one(engine: tuple[str, str | None]) -> None:
    name = "five-to-one-windows"
    value, half = said(name, "cache_gib")
    found, per_token = cache(name, engine), 2 * 16 * 128 * 2
    every_token = 62 * 131072 * per_token
    if engine == EXACT:
        assert abs(found - value) <= half
    elif engine in CELLS:
        assert found == per_token * (10 * 131072 + 52 * 1536)  # 1,024 and 512 tokens
    elif engine[0] == "vllm" and engine[1] != "0.8":
        passes = 2 if engine[1] in (None, "0.26") else 1
        tokens = -(-(1023 + passes * 8192) // 16) * 16 + 16
        # 10 layers without a window make groups of 10; 52 with one fill 6 of them
        assert found == per_token * (10 * 131072 + 60 * tokens)
    else:
        assert found == every_token
    assert value - half <= found <= every_token


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_a_window_in_every_layer(engine: tuple[str, str | None]) -> None:
    name = "uniform-window-silently-ignored"
    honoured, _ = said(name, "engine_that_honours_it_mib", MIB)
    ignored, _ = said(name, "engine_that_does_not_mib", MIB)
    found, token = cache(name, engine), 32 * 2 * 8 * 128 * 2
    if engine == EXACT:
        assert found == honoured - token  # the newest token of a window is not kept
    elif engine[0] == "vllm" and engine[1] != "0.8":
        assert honoured < found < ignored / 4
    else:  # llama.cpp reads windows of mixed families only
        assert found == ignored
    assert cache(name, engine, window_cache=False) == ignored


# states, latents, unlike layers


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize(
    ("name", "figure", "unit"),
    [("hybrid-one-in-four", "cache_gib", GIB), ("per-layer-kv-heads", "cache_mib", MIB)],
)
def test_hybrids_keep_tokens_in_some_layers(
    name: str, figure: str, unit: int, engine: tuple[str, str | None]
) -> None:
    value, _ = said(name, figure, unit)
    report = serve(name, engine)
    tokens = FACTS[name]["run"]["context"]
    assert report["kv_cache_per_token"] * tokens == value
    # states and whole pages come on top, and are far from the cache of the layers that have none
    assert value < report["kv_cache"] < 1.04 * value


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_latents(engine: tuple[str, str | None]) -> None:
    name = "mla-latent"
    per_token = FACTS[name]["expect"]["cache_bytes_per_token_bf16"]
    found = Fraction(cache(name, engine), 4096)
    if engine[0] == "tgi" or engine == ("llama.cpp", None):
        assert found == 61 * 128 * (192 + 128) * 2 > 71 * per_token  # those of every head
    elif engine[0] == "llama.cpp" and engine[1] in ("5137", "5554", "6975"):
        twice = per_token * Fraction(17, 9)  # the latent once more as values
        assert twice <= found < twice * Fraction(1001, 1000)
    else:
        assert found == per_token


@pytest.mark.parametrize("engine", [("tgi", None), ("llama.cpp", None), ("llama.cpp", "4500")])
def test_keys_wider_than_values(engine: tuple[str, str | None]) -> None:
    value, _ = said("unlike-k-and-v", "cache_mib", MIB)
    assert cache("unlike-k-and-v", engine) == value
