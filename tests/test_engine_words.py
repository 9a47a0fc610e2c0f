"""Words, dtypes and output of every engine."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from fractions import Fraction
from io import StringIO
from typing import Any

import pytest

from fitcheck import InputProblem, Report, estimate
from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run as run_click

LLAMA, GEMMA, DEEPSEEK = (
    "meta-llama/Llama-3.1-8B",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
)


def serve(
    model: str = LLAMA, engine: tuple[str, str] = ("vllm", ""), gpu: str = "h200", **flags: Any
) -> Report:
    if engine[1]:
        flags["engine_version"] = engine[1]
    return estimate(model, mode="serving", gpu=gpu, source="catalogue", engine=engine[0], **flags)


# words and dtypes


def test_unknown_words() -> None:
    for flags, says in (
        ({"engine": ("vlm", "")}, "vllm"),
        ({"engine": ("vllm", "newest")}, "engine_version|version"),
        ({"kv_dtype": "fp7"}, "fp8"),
        ({"v_dtype": "auto"}, "same"),
        ({"kv_dtype": "fp8_ds_mla", "engine": ("tgi", "")}, "vLLM and SGLang"),
        ({"context_parallel": 4}, "--tensor-parallel"),
        ({"pipeline_parallel": 65}, "64"),
        ({"max_model_len": 5}, "There is no flag"),
    ):
        with pytest.raises(InputProblem, match=says):
            serve(**flags)
    # a version that no file knows is one of the engine
    assert serve(engine=("vllm", "99.0"))["kv_cache"] == serve()["kv_cache"]


WIDTHS = {
    "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "nvfp4": "9/16", "q8_0": "34/32", "q5_1": "24/32",
    "q5_0": "22/32", "q4_1": "20/32", "q4_0": "18/32", "iq4_nl": "18/32",
}  # fmt: skip


@pytest.mark.parametrize("name", WIDTHS)
def test_bytes_of_a_cached_element(name: str) -> None:
    halves, width = 32 * 4096 * 8 * 128, Fraction(WIDTHS[name])
    flags = {"engine": ("hf-transformers", ""), "seq_len": 4096}
    assert serve(kv_dtype=name, **flags)["kv_cache"] == 2 * halves * width
    assert serve(v_dtype=name, **flags)["kv_cache"] == halves * (2 + width)
    assert serve(kv_dtype=name, v_dtype="q8_0", **flags)["kv_cache"] == halves * (
        width + Fraction(34, 32)
    )


def test_scales_of_heads_and_latents() -> None:
    scaled = 32 * 4096 * 8 * (2 * 128 + 2 * 4)
    assert serve(kv_dtype="int8", seq_len=4096)["kv_cache"] == scaled
    for kv_dtype, each in (("auto", 1152), ("fp8", 576), ("fp8_ds_mla", 656)):
        latent = serve(DEEPSEEK, kv_dtype=kv_dtype, seq_len=4096, tensor_parallel=8)
        assert latent["kv_cache"] == 61 * 4096 * each
    sparse = serve("deepseek-ai/DeepSeek-V3.2", seq_len=4096)["kv_cache"]
    assert sparse == 4096 * 78_324


def test_a_latent_that_cannot_be_cached_is_71_times_larger() -> None:
    expanded = serve(DEEPSEEK, ("tgi", ""), seq_len=8192)["kv_cache"]
    assert expanded == serve(DEEPSEEK, seq_len=8192)["kv_cache"] * Fraction(640, 9)


# what comes out


def test_the_keys_of_the_json() -> None:
    data = serve(engine=("vllm", "0.20"), seq_len=8192).to_dict()
    parts = ["weights", "kv_cache", "lora_slots", "activations", "cuda_graphs", "overhead"]
    for memory in ("memory_mib", "memory_bytes"):
        assert {*data[memory]} >= {*parts, "total", "total_low", "total_high"}
    assert {*data["pool"]} == {"bytes", "mib", "tokens"}
    assert data["stack"]["engine_version"] == data["serving"]["engine_version"] == "0.20"
    assert data["verdict"]["budget_mib"] == data["verdict"]["gpu_capacity_mib"] * 0.92
    assert data["serving"]["shared_cells"] is False


@pytest.mark.parametrize(
    ("words", "cells"), [("-np 4", 4 * 1536), ("-np 4 -kvu", 4608), ("-np 4 --swa-full", 8192)]
)
def test_cells_of_slots(words: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = StringIO()
    line = f"infer {GEMMA} --engine llama.cpp --engine-version 9500 -c 8192 {words} --json"
    with redirect_stdout(out):
        guarded(lambda: run_click([*line.split(), "--gpu", "h200"]))
    data = json.loads(out.getvalue())
    assert data["serving"]["num_concurrent"] == 4 and data["serving"]["seq_len"] == 2048
    kept = min(cells, 8192) * 52 + 8192 * 10
    assert data["memory_bytes"]["kv_cache"] == kept * 2 * 16 * 128 * 2
