"""Which caveats a run has, and where they are said."""

from __future__ import annotations

from typing import Any

import pytest

from fitcheck import estimate

MAMBA = "state-spaces/mamba-2.8b-hf"
HYBRID = "ai21labs/Jamba-v0.1"
LONG: dict[str, Any] = {"seq_len": 8192, "lora_targets": "all-linear"}
SCORES = {"flash-needs-ampere", "long-eager", "plain-back-end"}


def ids(model: str, **flags: Any) -> set[str]:
    report = estimate(model, **{**LONG, **flags})
    return {c.id for c in report.caveats if c.formula == "score_matrix"}


@pytest.mark.parametrize("flash", [True, False])
def test_scores_have_no_caveat_where_no_layer_attends(flash: bool) -> None:
    assert ids(MAMBA, gpu="t4", flash_attn=flash) == set()
    told = {"flash-needs-ampere", "plain-back-end"} if flash else {"long-eager"}
    assert ids("meta-llama/Llama-3.1-8B", gpu="t4", flash_attn=flash) == told <= SCORES
    assert ids(HYBRID, gpu="t4", flash_attn=flash) == told  # some of its layers attend


def test_what_is_told_and_may_be_too_low_is_a_warning() -> None:
    report = estimate("google/gemma-3-4b-it", gpu="b200", quant="nf4")
    (alone,) = (c for c in report.caveats if c.id == "text-alone")
    assert (alone.level, alone.direction) == ("tell", "under")
    data = report.to_dict()
    assert alone.says in data["warnings"] and alone.says not in data["notes"]
    packed = estimate("Qwen/Qwen3-30B-A3B", gpu="b200", quant="nf4")
    (little,) = (c for c in packed.caveats if c.id == "little-packed")
    assert (little.level, little.direction) == ("tell", "unknown")
    assert little.says in packed.to_dict()["notes"] and little.says not in packed.warnings


@pytest.mark.parametrize("model", [MAMBA, HYBRID, "google/gemma-3-4b-it", "Qwen/Qwen3-30B-A3B"])
def test_every_caveat_is_said_once(model: str) -> None:
    report = estimate(model, gpu="t4", quant="nf4", **LONG)
    data = report.to_dict()
    said = [*data["warnings"], *data["notes"]]
    assert {c.says for c in report.caveats} <= set(said) and len(said) == len(set(said))
