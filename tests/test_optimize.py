"""`fitcheck optimize`: what it proposes is what the printed command then says."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from typing import Any

import pytest

from fitcheck.cli import start
from fitcheck.cli.errors import guarded
from fitcheck.engine.api import estimate
from fitcheck.engine.template import MIB

LLAMA, QWEN, SMALL = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B", "Qwen/Qwen2.5-0.5B"


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = guarded(lambda: start.run(words))
    return status, out.getvalue(), err.getvalue()


def optimized(*words: str) -> tuple[int, dict[str, Any]]:
    status, out, _ = run("optimize", *words, "--json")
    return status, json.loads(out)


RUNS = [
    (LLAMA, "--qlora", "--lora-r", "64", "--batch-size", "4", "--flash-attn", "--gpu", "4090"),
    (LLAMA, "--gpu", "4090", "--seq-len", "8192"),
    (LLAMA, "--gpu", "3060-12", "--seq-len", "4096", "--precision", "fp32"),
    (LLAMA, "--no-lora", "--gpu", "h200"),
    (LLAMA, "--qlora", "--vram-mib", "16000"),
    (SMALL, "--qlora", "--gpu", "4090", "--batch-size", "3"),
    (SMALL, "--qlora", "--gpu", "t4", "--precision", "fp16", "--seq-len", "1024", "--flash-attn"),
    ("Qwen/Qwen3-30B-A3B", "--qlora", "--gpu", "h100", "--stack", "transformers=4.57.6"),
    (QWEN, "--infer", "--seq-len", "32768", "--concurrent", "8", "--gpu", "l4"),
    (QWEN, "--infer", "--engine", "vllm", "--max-model-len", "32768", "--gpu", "4090"),
    (QWEN, "--infer", "--engine", "llama.cpp", "--seq-len", "16384", "--gpu", "3060-12"),
    (QWEN, "--infer", "--gpu", "h100"),
]


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_the_printed_command_gives_the_printed_answer(words: tuple[str, ...]) -> None:
    status, found = optimized(*words)
    proposals = [p for p in found["proposals"] if p["changes"]]
    assert found["proposals"]
    for proposal in proposals:
        command = shlex.split(proposal["command"])
        assert command[0] == "fitcheck"
        code, out, _ = run(*command[1:], "--json")
        said = json.loads(out)
        assert said["memory_mib"]["total"] == proposal["total_mib"]
        assert said["verdict"]["status"] == proposal["status"]
        assert (code == 0) is proposal["safe_fits"]
    safe = found["now"]["safe_fits"] or any(p["safe_fits"] for p in found["proposals"])
    assert status == (0 if safe else 1)


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_steps_lead_from_the_run_to_the_proposal(words: tuple[str, ...]) -> None:
    _, found = optimized(*words)
    for proposal in found["proposals"]:
        steps = proposal["steps"]
        together = {name: value for step in steps for name, value in step["changes"].items()}
        assert {n: together[n] for n in proposal["changes"]} == proposal["changes"]
        if steps:
            assert steps[-1]["total_mib"] == proposal["total_mib"]
            assert steps[-1]["status"] == proposal["status"]


def test_each_step_is_a_full_estimate() -> None:
    words = (LLAMA, "--gpu", "3060-12", "--seq-len", "8192")
    _, found = optimized(*words)
    (fits,) = [p for p in found["proposals"] if p["goal"] == "fits"]
    assert len(fits["steps"]) > 1
    flags: dict[str, Any] = {"seq_len": 8192}
    for step in fits["steps"]:
        flags.update(step["changes"])
        alone = estimate(LLAMA, gpu="3060-12", **flags)
        assert step["total_mib"] == round(alone["total"] / MIB, 2)
        assert step["status"] == alone.status


def recommended(*words: str) -> dict[str, Any]:
    _, found = optimized(*words)
    (one,) = [p for p in found["proposals"] if p["goal"] == "recommended"]
    return dict(one)


def test_a_power_of_two_below_the_ceiling_with_an_effective_batch_of_16() -> None:
    words = (SMALL, "--qlora", "--flash-attn", "--seq-len", "512", "--gpu", "h100")
    most = estimate(SMALL, gpu="h100", qlora=True, flash_attn=True, seq_len=512)["max_batch_size"]
    settled = {"batch_size": 1, "grad_accum": 1, **recommended(*words)["changes"]}
    batch, steps = settled["batch_size"], settled["grad_accum"]
    assert batch & (batch - 1) == 0 and batch <= most * 3 / 4 < batch * 2
    assert batch * steps >= 16


def test_a_larger_effective_batch_is_kept() -> None:
    words = (SMALL, "--qlora", "--batch-size", "2", "--grad-accum", "32", "--gpu", "4090")
    changes = recommended(*words)["changes"]
    assert changes.get("batch_size", 2) * changes.get("grad_accum", 32) >= 64


def test_a_recommendation_is_safe_where_any_micro_batch_is() -> None:
    """Three quarters of the ceiling fit here, and only half of that leaves a fifth free."""
    flags: dict[str, Any] = {"qlora": True, "flash_attn": True, "seq_len": 512}
    at_most = estimate(LLAMA, gpu="4090", **flags)["recommended_batch_size"]
    assert not estimate(LLAMA, gpu="4090", **flags, batch_size=at_most).safe
    found = recommended(LLAMA, "--qlora", "--flash-attn", "--seq-len", "512", "--gpu", "4090")
    assert found["safe_fits"] and found["changes"]["batch_size"] == at_most // 2
    assert len(found["steps"]) == 2


def test_a_safe_run_gets_only_the_recommendation() -> None:
    status, found = optimized(SMALL, "--qlora", "--gpu", "4090")
    assert status == 0 and found["now"]["safe_fits"]
    assert [p["goal"] for p in found["proposals"]] == ["recommended"]
    assert found["exhausted"] is found["card"] is None


def test_a_run_that_only_fits_gets_what_makes_it_safe() -> None:
    words = (
        LLAMA,
        "--qlora",
        "--flash-attn",
        "--batch-size",
        "2",
        "--lora-r",
        "64",
        "--gpu",
        "4090",
    )
    _, found = optimized(*words)
    assert found["now"]["status"] == "uncertain"
    assert "fits" not in [p["goal"] for p in found["proposals"]]
    (safe,) = [p for p in found["proposals"] if p["goal"] == "safe"]
    assert safe["safe_fits"]


def test_where_every_lever_is_pulled_in_vain_a_card_for_the_rest_is_named() -> None:
    words = ("meta-llama/Llama-3.1-70B", "--gpu", "3060-8")
    status, found = optimized(*words)
    assert status == 1 and found["proposals"] == []
    last, card = found["exhausted"], found["card"]
    assert last["status"] == "does_not_fit" and last["changes"]["quant"] == "nf4"
    there = estimate("meta-llama/Llama-3.1-70B", gpu=card["key"], **last["changes"])
    assert there["fits"] and there.safe is card["safe_fits"]
    _, text, _ = run("optimize", *words)
    assert "no change is enough: with --quant nf4" in text and f"--gpu {card['key']}" in text


def test_levers_that_apply_late_are_pulled_too() -> None:
    """Of a full fine-tune the block scales can only be quantized once adapters train."""
    _, found = optimized("meta-llama/Llama-3.1-405B", "--no-lora", "--gpu", "4090")
    assert found["exhausted"]["changes"]["double_quant"] is True
    changes = {**found["exhausted"]["changes"], "lora": True}
    alone = estimate("meta-llama/Llama-3.1-405B", gpu="4090", **changes)
    assert found["exhausted"]["total_mib"] == round(alone["total"] / MIB, 2)


def test_what_is_printed_names_the_ceiling_the_steps_and_the_command() -> None:
    words = (LLAMA, "--gpu", "3060-12", "--seq-len", "8192")
    status, out, _ = run("optimize", *words)
    assert "DOES NOT FIT" in out and "max micro-batch 0" in out
    assert "step 1" in out and "step 2" in out
    assert "fitcheck meta-llama/Llama-3.1-8B" in out and "--gpu 3060-12" in out
    assert status in (0, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "MODEL is missing"),
        ((LLAMA, "--gpu", "409O"), "Did you mean 4090?"),
        ((LLAMA, "4090"), "unexpected extra argument"),
        ((LLAMA, "--concurrent", "4"), "No such option"),
        ((LLAMA, "--lora-r", "none"), "--lora-r has to be a whole number"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], told: str) -> None:
    status, out, err = run("optimize", *words)
    assert (status, out) == (2, "") and told in err


def test_the_command_of_an_engine_is_read() -> None:
    whole = "vllm serve Qwen/Qwen3-8B --max-model-len 32768"
    _, found = optimized("--infer", "--from-command", whole, "--gpu", "4090")
    _, same = optimized(QWEN, "--infer", "--engine", "vllm", "--seq-len", "32768", "--gpu", "4090")
    assert found["now"]["status"] and same["now"]["status"]
    assert found["serving"]["engine"] == same["serving"]["engine"] == "vllm"
