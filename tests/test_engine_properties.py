"""What has to hold for the estimate of every engine, whatever the model."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fitcheck import InputProblem, Report, estimate
from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.errors import FitcheckError, Refusal

REPO = Path(__file__).resolve().parents[1]
PROFILES = [
    yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((REPO / "profiles/engines/serving").glob("*.yaml"))
]
# each file of versions at the first version that it takes
ENGINES = [
    (p["matches"]["engine"], p["matches"].get("engine_version", ">=").split(",")[0][2:])
    for p in PROFILES
]
CATALOGUE = [
    yaml.safe_load(path.read_text(encoding="utf-8"))["hub_id"]
    for path in sorted((REPO / "profiles/models").glob("*.yaml"))
]
UNPRICED = {"microsoft/bitnet-b1.58-2B-4T", "nvidia/Qwen3.6-27B-NVFP4"}  # their weights
PRICED = [model for model in CATALOGUE if model not in UNPRICED]
LLAMA, GEMMA, MISTRAL = (
    "meta-llama/Llama-3.1-8B",
    "google/gemma-3-27b-it",
    "mistralai/Mistral-7B-v0.1",
)
DEEPSEEK, QWEN = "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3.5-27B"
KINDS = [  # every kind of layer that the catalogue has
    LLAMA,
    GEMMA,
    QWEN,
    "deepseek-ai/DeepSeek-V3.2",
    "deepseek-ai/DeepSeek-V4-Flash",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "tiiuae/Falcon-H1-7B-Base",
    "state-spaces/mamba-2.8b-hf",
    "google/gemma-3n-E4B",
    "meta-llama/Llama-3.2-11B-Vision",
    "google/recurrentgemma-2b",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
]
engines = pytest.mark.parametrize("engine", ENGINES, ids=lambda e: "-".join(filter(None, e)))


def serve(
    model: str = LLAMA, engine: tuple[str, str] = ("vllm", ""), gpu: str = "h200", **flags: Any
) -> Report:
    if engine[1]:
        flags["engine_version"] = engine[1]
    return estimate(model, mode="serving", gpu=gpu, source="catalogue", engine=engine[0], **flags)


def of_stages(report: Report, quantity: str) -> list[int]:
    run = report.run
    return [run.value_at(quantity, stage) for stage in run.items("stages")]


# more is never less


@settings(max_examples=60)
@given(
    model=st.sampled_from(KINDS),
    engine=st.sampled_from(ENGINES),
    tokens=st.integers(1, 100_000),
    more=st.integers(0, 100_000),
    requests=st.integers(1, 64),
    further=st.integers(0, 64),
    cards=st.sampled_from([(1, 1), (2, 1), (1, 3), (4, 2)]),
)
def test_totals_rise(
    model: str,
    engine: tuple[str, str],
    tokens: int,
    more: int,
    requests: int,
    further: int,
    cards: tuple[int, int],
) -> None:
    fixed = {"tensor_parallel": cards[0], "pipeline_parallel": cards[1]}
    one = serve(model, engine, seq_len=tokens, concurrent=requests, **fixed)
    longer = serve(model, engine, seq_len=tokens + more, concurrent=requests, **fixed)
    wider = serve(model, engine, seq_len=tokens, concurrent=requests + further, **fixed)
    assert one["serving_total"] <= min(longer["serving_total"], wider["serving_total"])
    assert one["serving_total_low"] <= one["serving_total"] <= one["serving_total_high"]
    parts = ("serving_weights", "kv_cache", "serving_adapters", "prefill_activations")
    beside = one["cuda_graphs"] + one["serving_overhead"]
    assert one["serving_total"] == sum(one[part] for part in parts) + beside
    assert one["kv_cache"] == requests * one["kv_cache_per_request"]


@engines
def test_only_the_tokens_count_for_full_attention(engine: tuple[str, str]) -> None:
    caches = [serve(LLAMA, engine, seq_len=8192 // n, concurrent=n)["kv_cache"] for n in (1, 2, 4)]
    assert {*caches} == {1 << 30}
    assert serve(LLAMA, engine, seq_len=8192, concurrent=7)["kv_cache"] == 7 << 30


@engines
def test_full_windows_grow_no_further(engine: tuple[str, str]) -> None:
    kept = serve(GEMMA, engine)["windows_kept"]
    for model, full in ((GEMMA, 10), (MISTRAL, 0)):
        short = serve(model, engine, seq_len=102_400)
        long = serve(model, engine, seq_len=204_800)
        grown = (long["kv_cache"] - short["kv_cache"]) / short["kv_cache"]
        if not short["windows_kept"]:
            assert grown == 1
        elif model == GEMMA:
            assert long["kv_cache"] - short["kv_cache"] == full * 102_400 * 2 * 16 * 128 * 2
        else:
            assert kept and grown == 0


@engines
@pytest.mark.parametrize("model", KINDS)
def test_the_next_page_takes_what_is_said_of_its_tokens(
    model: str, engine: tuple[str, str]
) -> None:
    page = serve(model, engine)["page_tokens"]
    for tokens in (page, 200_000 // page * page):
        before, after = (serve(model, engine, seq_len=tokens + n) for n in (0, page))
        added = after["kv_cache"] - before["kv_cache"]
        said = page * before["kv_cache_per_token"]
        # layers that keep windows and all tokens are said to grow in both while one of them does
        both = model == "deepseek-ai/DeepSeek-V4-Flash" and engine[0] == "vllm"
        full = (not before["windows_kept"] or tokens > 100_000) and not both
        assert abs(added - said) <= 1 if full else added <= said + 1


# several cards


@pytest.mark.parametrize("cards", [2, 4, 8, 16])
def test_cards_of_a_tensor_add_up(cards: int) -> None:
    whole = serve()["serving_weights"]
    each = serve(tensor_parallel=cards)["serving_weights"]
    norms = (2 * 32 + 1) * 4096 * 2
    repeated = max(0, cards - 8) // 8 * 32 * 2 * 4096 * 1024 * 2  # keys and values of 8 heads
    assert cards * each == whole + (cards - 1) * norms + repeated
    assert serve(tensor_parallel=cards)["kv_cache"] * min(cards, 8) == serve()["kv_cache"]


@pytest.mark.parametrize("model", PRICED)
def test_two_cards_hold_the_model(model: str) -> None:
    whole = serve(model)["serving_weights"]
    assert 0 <= 2 * serve(model, tensor_parallel=2)["serving_weights"] - whole <= whole / 20
    stages = serve(model, pipeline_parallel=2)
    tied = stages.prepared.model.fields["tie_word_embeddings"]
    again = stages["outer_parameters"] * stages["compute_bytes"]
    again += stages["embedding_bytes"] if tied else 0
    more = sum(of_stages(stages, "stage_weights")) - whole
    # where layers are packed, what stands around them has their average, which is less
    packed = stages.run.flag("quant") != "none"
    assert (-2 if packed else again - 2) <= more <= again + 2


@engines
@pytest.mark.parametrize("model", KINDS)
def test_stages_add_up(model: str, engine: tuple[str, str]) -> None:
    one = serve(model, engine, seq_len=5000)
    layers = one.prepared.model.fields["num_layers"]
    for count in (2, 3, 7):
        report = serve(model, engine, seq_len=5000, pipeline_parallel=count)
        begins, ends = of_stages(report, "stage_begin"), of_stages(report, "stage_end")
        assert begins == [0, *ends[:-1]] and ends[-1] == layers
        assert max(map(int.__sub__, ends, begins)) - min(map(int.__sub__, ends, begins)) <= 1
        caches = of_stages(report, "stage_request")
        assert report["kv_cache"] in caches
        if engine[0] != "vllm" or model in (
            LLAMA,
            MISTRAL,
        ):  # groups of its layers are a stage's own
            assert abs(sum(caches) - one["kv_cache"]) <= count


@engines
@pytest.mark.parametrize("model", [DEEPSEEK, LLAMA])
def test_shared_tokens(model: str, engine: tuple[str, str]) -> None:
    flags = {"tensor_parallel": 8, "seq_len": 8192}
    if engine[0] in ("hf-transformers", "llama.cpp", "ollama", "tgi"):
        with pytest.raises(InputProblem, match="--context-parallel 8 is not in"):
            serve(model, engine, context_parallel=8, **flags)
    elif model == LLAMA:
        with pytest.raises(Refusal, match="heads of keys and values"):
            serve(model, engine, context_parallel=2, **flags)
        split = serve(model, engine, context_parallel=2, tensor_parallel=16, seq_len=8192)
        assert 2 * split["kv_cache"] == serve(model, engine, **flags)["kv_cache"]
    else:
        split = serve(model, engine, context_parallel=8, **flags)["kv_cache"]
        assert 8 * split == serve(model, engine, **flags)["kv_cache"]


@pytest.mark.parametrize("version", ["", "4500", "7000", "9455"])
def test_layers_on_the_host(version: str) -> None:
    engine, whole = ("llama.cpp", version), serve(GEMMA, ("llama.cpp", version), seq_len=8192)
    some = [serve(GEMMA, engine, seq_len=8192, gpu_layers=n) for n in (0, 1, 30, 61, 62)]
    for name in ("serving_weights", "kv_cache"):
        found = [report[name] for report in some]
        assert found == sorted(found) and found[-1] == whole[name]
    assert some[0]["kv_cache"] == 0
    with pytest.raises(InputProblem, match="leaves layers on the host"):
        serve(GEMMA, ("vllm", ""), gpu_layers=30)


# searches


@engines
@pytest.mark.parametrize("model", [LLAMA, GEMMA, QWEN])
def test_the_most_that_fits_fits(model: str, engine: tuple[str, str]) -> None:
    flags = {"seq_len": 4096, "concurrent": 2}
    report = serve(model, engine, **flags)
    for name, flag in (("max_concurrent", "concurrent"), ("max_context", "seq_len")):
        most = report[name]
        assert most > 0 and not report.run.searches[name].capped
        assert serve(model, engine, **{**flags, flag: most})["serving_fits"]
        assert not serve(model, engine, **{**flags, flag: most + 1})["serving_fits"]


@engines
def test_the_pool_is_what_the_rest_leaves(engine: tuple[str, str]) -> None:
    report = serve(LLAMA, engine)
    rest = report["serving_total"] - report["kv_cache"]
    assert report["cache_pool"] == report["serving_budget"] - rest
    assert report["serving_budget"] <= report["usable"]
    if engine[0] == "tensorrt-llm":  # a log of 1.1.0rc3: 0.9 x (total - peak)
        share = serve(LLAMA, engine, memory_fraction=0.85)["cache_pool"]
        assert share == int(Fraction(85, 100) * (report["usable"] - rest))


# every engine, version and kind of layer


@engines
@pytest.mark.parametrize("model", KINDS)
def test_an_answer_or_words(model: str, engine: tuple[str, str]) -> None:
    huge = {
        "seq_len": 16_777_216,
        "concurrent": 1_048_576,
        "max_loras": 65_536,
        "chunk": 16_777_216,
    }
    for flags in (huge, {"tensor_parallel": 65_536}, {"pipeline_parallel": 5, "eager": True}):
        try:
            report = serve(model, engine, **flags)
        except FitcheckError as problem:
            assert str(problem)
            continue
        parts = {component.bytes for component in report.components}
        assert all(type(value) is int and value >= 0 for value in parts)
        assert report["serving_fits"] == (report["serving_total"] <= report["serving_budget"])
    data = serve(model, engine).to_dict()
    assert all(type(value) is int and value >= 0 for value in data["memory_bytes"].values())
    assert data["verdict"]["max_concurrent"] >= data["verdict"]["fits"]


@pytest.mark.parametrize("model", sorted(UNPRICED))
def test_weights_without_a_price_are_refused(model: str) -> None:
    with pytest.raises(InputProblem, match=r"quantization_config .* is not modelled"):
        serve(model)


@pytest.mark.parametrize("model", PRICED)
def test_transformers_keeps_what_the_shared_rule_says(model: str) -> None:
    for tokens in (64, 8192, 100_000):
        flags = {"seq_len": tokens, "precision": "bf16"}
        shared = prepare(
            rules_for(), model, gpu="h200", vram_mib=None, source="catalogue", flags=flags
        )
        expected = shared.run_with(()).value("cache_bytes")
        assert serve(model, ("hf-transformers", ""), **flags)["kv_cache"] == expected
