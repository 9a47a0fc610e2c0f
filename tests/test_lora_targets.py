"""Which modules get adapters: names, all-linear, patterns and 3-D parameters."""

from __future__ import annotations

from typing import Any

import pytest

from fitcheck import estimate
from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal
from fitcheck.engine.evaluation import EvaluationError
from fitcheck.engine.selecting import is_pattern, layers_of, selected

DENSE = "Qwen/Qwen2.5-7B"
MIXTURE = "Qwen/Qwen3-30B-A3B"


def adapters(model: str, **flags: Any) -> int:
    found: int = estimate(model, gpu="b200", lora_r=1, **flags)["lora_parameters"]
    return found


Q = "model.layers.#.self_attn.q_proj"
EXPERT = "model.layers.#.mlp.experts.N.up_proj"


@pytest.mark.parametrize(
    ("words", "path", "layers"),
    [
        (("q_proj",), Q, 4),
        (("proj",), Q, 0),
        (("self_attn.q_proj",), Q, 4),
        (("attn.q_proj",), Q, 0),
        (("model.layers.5.self_attn.q_proj", "6.self_attn.q_proj"), Q, 2),  # names end paths too
        (("lm_head",), "lm_head", 4),
        ((), "lm_head", 0),
        # a pattern has to match the whole path
        ((r".*q_proj",), Q, 4),
        ((r".*\.(q|v)_proj",), Q, 4),
        ((r".*\.(k|v)_proj",), Q, 0),
        ((r"q_proj|v_proj",), Q, 0),
        ((r"self_attn\.q_proj",), Q, 0),
        ((r"layers\.\d+\.self_attn\.q_proj",), Q, 0),
        ((r"model\.layers\.\d+\.self_attn\.q_proj",), Q, 4),
        ((r"model\.layers\.\d\..*",), Q, 3),  # 2, 5 and 6
        ((r".*\.(5|16)\..*",), Q, 2),
        ((r".*experts\.\d+\.up_proj",), EXPERT, 4),
    ],
)
def test_in_how_many_layers_a_module_is_picked(
    words: tuple[str, ...], path: str, layers: int
) -> None:
    assert [n for span in layers_of("2 5-6 16") for n in span] == [2, 5, 6, 16]
    assert selected(words, path, "2 5-6 16") == layers


def test_patterns_count_as_in_peft() -> None:
    every = adapters(DENSE, lora_targets="q_proj")
    for pattern in (r".*q_proj", r".*self_attn\.q_proj", r"model\.layers\.\d+\.self_attn\.q_proj"):
        assert adapters(DENSE, lora_targets=pattern) == every
    few = adapters(DENSE, lora_targets=r"model\.layers\.(0|3|27|28)\..*q_proj")
    assert few * 28 == every * 3  # Qwen2.5-7B has 28 layers
    for pattern in (r"self_attn\.q_proj", r"layers\.\d+\.self_attn\.q_proj", "q_proj|v_proj"):
        with pytest.raises(Refusal, match="no linear module"):
            adapters(DENSE, lora_targets=pattern)


@pytest.mark.parametrize(
    ("model", "pattern", "layers"),
    [
        ("openai-community/gpt2", r"transformer\.h\.[01]\.attn\.c_attn", 2),
        ("google/gemma-3-4b-it", r"model\.language_model\.layers\.\d\.self_attn\.q_proj", 10),
        ("google/gemma-3-4b-it", r"model\.vision_tower\..*q_proj", 27),
        ("state-spaces/mamba-2.8b-hf", r"backbone\.layers\.63\.mixer\.in_proj", 1),
    ],
)
def test_paths_begin_as_the_class_names_them(model: str, pattern: str, layers: int) -> None:
    lists = estimate(model, gpu="b200", lora=False).prepared.model.lists
    (width,) = {
        m["d_in"] + m["d_out"]
        for kind in ("layer_groups", "tower_groups")
        for g in lists[kind]
        for m in g["modules"]
        if selected((pattern,), m["whole"], g["places"])
    }
    assert adapters(model, lora_targets=pattern) == layers * width


def test_a_pattern_that_picks_single_experts_is_refused() -> None:
    assert is_pattern("a.*") and not is_pattern("mlp.up_proj")
    with pytest.raises(EvaluationError, match="picks some of the equal modules"):
        selected((r".*experts\.3\.up_proj",), EXPERT, "0-3")
    with pytest.raises(FitcheckError, match="not modelled"):
        adapters(MIXTURE, lora_targets=r".*experts\.3\.up_proj", transformers="4.57.6")


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
    says = [c.says for c in estimate(MIXTURE, gpu="b200").caveats if c.id == "experts-untouched"]
    assert "--lora-target-parameters gives them adapters" in says[0]


@pytest.mark.parametrize(("peft", "made"), [("0.18.0", 6), ("0.20.0", 6), ("0.21.0", 2)])
def test_what_peft_makes_of_3d_parameters_is_priced(peft: str, made: int) -> None:
    """Kept and made bytes as live tensors of small models showed them (formulas/A_copies.yaml)."""
    each = 128 * 768 * 2048  # elements of down_proj in one layer; gate_up_proj has twice as many
    run: dict[str, Any] = {"gpu": "b200", "flash_attn": True, "peft": peft}
    plain = estimate(MIXTURE, **run)
    adapted = estimate(MIXTURE, lora_target_parameters="gate_up_proj,down_proj", **run)
    copies = 48 * 3 * each * 2 + 2 * each * made
    assert (plain["A_copies"], adapted["A_copies"]) == (0, copies)
    inputs = 48 * 2 * 2048 * 8 * (2048 + 768)  # of the 8 experts that see each of 2,048 tokens
    assert adapted["activations"] - plain["activations"] == copies + inputs
    again = estimate(MIXTURE, lora_target_parameters="down_proj", grad_checkpoint=True, **run)
    assert again["A_copies"] == each * (2 + made)


def test_targets_that_peft_carries_over_to_experts() -> None:
    """As PEFT 0.21 builds it (test_transformers_builds.py); before 0.19 experts are left out."""
    layers, experts, width, hidden, rank = 48, 128, 768, 2048, 1
    up = experts * 2 * rank * (hidden + 2 * width)  # gate and up, one parameter of twice the rank
    down, router = experts * rank * (width + hidden), rank * (hidden + experts)
    attention = adapters(MIXTURE)
    carried = estimate(MIXTURE, gpu="b200", lora_targets="all-linear", lora_r=rank, peft="0.21.2")
    assert carried["parameter_adapters"] == layers * (up + down + router)
    assert carried["lora_parameters"] == attention + layers * (up + down + router)
    assert carried["A_copies"] > 0
    before = estimate(MIXTURE, gpu="b200", lora_targets="all-linear", lora_r=rank)
    assert before["lora_parameters"] == attention  # the stack's own PEFT is 0.18.1
    assert any("--stack peft=0.21.2 counts that" in says for says in before.warnings)
    assert not any("carries them over" in says for says in carried.warnings)
    named = adapters(MIXTURE, lora_targets="q_proj,k_proj,v_proj,o_proj,down_proj", peft="0.21.2")
    assert named == attention + layers * down
    for half in ("gate_proj", "q_proj,up_proj"):
        with pytest.raises(Refusal, match="PEFT refuses one without the other"):
            estimate(MIXTURE, lora_targets=half, peft="0.21.2")


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
    assert any("priced with text alone" in text for text in report.warnings)


def test_the_derivation_shows_the_modules_that_are_picked_and_in_how_many_layers() -> None:
    report = estimate(DENSE, gpu="b200", lora_r=1, lora_targets=r"model\.layers\.[0-3]\..*q_proj")
    text = " ".join(report.derive("lora").split())
    assert "= 4 * 1 * 1 * (3,584 + 3,584)" in text and "k_proj] +" not in text
    assert "table at each kind, quant=none" in text
