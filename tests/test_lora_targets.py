"""Which modules get adapters: names, all-linear, patterns and 3-D parameters."""

from __future__ import annotations

from typing import Any

import pytest

from fitcheck import estimate
from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal
from fitcheck.engine.evaluation import EvaluationError
from fitcheck.engine.selecting import is_pattern, selects

DENSE = "Qwen/Qwen2.5-7B"
MIXTURE = "Qwen/Qwen3-30B-A3B"


def adapters(model: str, **flags: Any) -> int:
    found: int = estimate(model, gpu="b200", lora_r=1, **flags)["lora_parameters"]
    return found


@pytest.mark.parametrize(
    ("words", "path", "picked"),
    [
        (("q_proj",), "self_attn.q_proj", True),
        (("proj",), "self_attn.q_proj", False),
        (("self_attn.q_proj",), "self_attn.q_proj", True),
        (("attn.q_proj",), "self_attn.q_proj", False),
        ((r".*\.(q|v)_proj",), "self_attn.v_proj", True),
        ((r".*\.(q|v)_proj",), "self_attn.k_proj", False),
        ((r"model\.layers\.\d+\.mlp\..*",), "mlp.up_proj", True),
        (("lm_head",), "lm_head", True),
        ((), "lm_head", False),
    ],
)
def test_what_picks_a_module(words: tuple[str, ...], path: str, picked: bool) -> None:
    assert selects(words, path) is picked


def test_a_pattern_that_picks_single_layers_is_refused() -> None:
    assert is_pattern("a.*") and not is_pattern("mlp.up_proj")
    with pytest.raises(EvaluationError, match="picks single layers"):
        selects((r"model\.layers\.3\..*",), "mlp.up_proj")
    with pytest.raises(FitcheckError, match="picks single layers"):
        estimate(DENSE, gpu="b200", lora_targets=r"model\.layers\.3\..*q_proj")


def test_a_pattern_is_the_sum_of_the_names_it_picks() -> None:
    names = adapters(DENSE, lora_targets="q_proj,v_proj")
    assert adapters(DENSE, lora_targets=r".*self_attn\.(q|v)_proj") == names
    assert adapters(DENSE, lora_targets="full") == adapters(DENSE, lora_targets="all-linear")


@pytest.mark.parametrize("text", ["(", "a{2,1}", "[", "x" * 400 + "+"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(InputProblem, match="lora-targets"):
        estimate(DENSE, lora_targets=text)


def test_experts_get_adapters_by_parameter() -> None:
    plain = adapters(MIXTURE, lora_targets="q_proj")
    both = adapters(MIXTURE, lora_targets="q_proj", lora_target_parameters="gate_up_proj,down_proj")
    assert both - plain == 48 * 128 * (2048 + 1536 + 768 + 2048)  # A and B of every expert
    report = estimate(MIXTURE, gpu="b200", lora_target_parameters="down_proj")
    (copies,) = (c for c in report.caveats if c.id == "parameter-copies")
    assert (copies.level, copies.direction) == ("warn", "under")
    assert str(48 * 128 * 768 * 2048) in copies.says.replace(",", "")
    assert not any(c.id == "parameter-copies" for c in estimate(MIXTURE, gpu="b200").caveats)
    says = [c.says for c in estimate(MIXTURE, gpu="b200").caveats if c.id == "experts-untouched"]
    assert "--lora-target-parameters gives them adapters" in says[0]


def test_targets_that_peft_carries_over_to_experts_are_warned_of() -> None:
    """Of the families that PEFT names, under transformers 5, and only by an expert's names."""

    def warned(model: str, targets: str, **flags: Any) -> bool:
        report = estimate(model, gpu="b200", lora_targets=targets, **flags)
        found = [c for c in report.caveats if c.id == "converted-targets"]
        assert all((c.level, c.direction) == ("warn", "under") for c in found)
        return bool(found)

    assert warned(MIXTURE, "all-linear")
    assert warned(MIXTURE, "q_proj,gate_proj", transformers="4.57.6") is False
    assert not warned(MIXTURE, "q_proj,v_proj")
    assert not warned("openai/gpt-oss-20b", "all-linear")
    assert not warned(DENSE, "all-linear")


def test_parameters_that_are_not_there() -> None:
    with pytest.raises(Refusal, match=r"no 3-D parameter of this model is called\s+absent"):
        estimate(MIXTURE, gpu="b200", lora_target_parameters="absent")
    with pytest.raises(Refusal, match="no 3-D parameter"):  # before 5.0 they are matrices
        estimate(MIXTURE, gpu="b200", lora_target_parameters="down_proj", transformers="4.57.6")
    with pytest.raises(InputProblem, match="has no meaning with --no-lora"):
        estimate(MIXTURE, gpu="b200", lora=False, lora_target_parameters="down_proj")


def test_targets_reach_towers_too() -> None:
    report = estimate("google/gemma-3-4b-it", gpu="b200", lora_r=1, lora_targets="q_proj")
    towers = [
        g["count"] * (m["d_in"] + m["d_out"])
        for g in report.prepared.model.lists["tower_groups"]
        for m in g["modules"]
        if m["name"] == "q_proj"
    ]
    assert sum(towers) > 0 and report["lora_parameters"] > sum(towers)
    assert any("priced with text alone" in text for text in report.remarks)
