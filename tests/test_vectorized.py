"""Whole estimates over arrays against the exact evaluator, one configuration after the other."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.loading import load_rules
from fitcheck.engine.record import replace
from fitcheck.engine.report import Prepared
from fitcheck.engine.rules import Rules
from fitcheck.engine.vectorized import VectorRun, evaluate, stack

RULES = rules_for()
QUANTITIES = [formula.id for formula in RULES.formulas.values() if formula.per is None]
SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}
LARGE = {
    **SMALL,
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
RESERVED = {  # the scope of the validated reserves of the T4
    "precision": "fp16",
    "quant": "nf4",
    "double_quant": False,
    "lora_r": 16,
    "grad_checkpoint": True,
    "optimizer": "adamw",
    "optimizer_dtype": "fp32",
    "seq_len": 1024,
}


def prepared(model: Any = SMALL, gpu: str = "t4", rules: Rules = RULES) -> Prepared:
    return prepare(rules, model, gpu=gpu, vram_mib=None, source="catalogue", flags={})


def random_flags(rng: random.Random) -> dict[str, Any]:
    lora, adamw = rng.random() < 0.75, rng.random() < 0.6
    quant = rng.choice(("none", "nf4", "int8")) if lora else "none"
    flags = {
        "quant": quant,
        "double_quant": quant == "nf4" and rng.random() < 0.5,
        "precision": rng.choice(("fp32", "fp16", "bf16")),
        "lora": lora,
        "lora_r": rng.choice((1, 16, rng.randint(1, 4096))) if lora else 16,
        "batch_size": int(2 ** rng.uniform(0, 12)),
        "grad_accum": rng.randint(1, 64),
        "seq_len": rng.choice((1024, int(2 ** rng.uniform(0, 17)))),
        "optimizer": "adamw" if adamw else rng.choice(("adam8bit", "sgd", "sgd-momentum")),
        "optimizer_dtype": rng.choice(("fp32", "bf16")) if adamw else "fp32",
        "grad_checkpoint": rng.random() < 0.7,
        "flash_attn": rng.random() < 0.5,
    }
    return {**flags, **RESERVED} if lora and rng.random() < 0.3 else flags


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def assert_same(got: Any, exact: Any, what: Any) -> None:
    """Equal to one part in 10^12; words and truths exactly."""
    if isinstance(exact, (bool, str)):
        assert got == exact, what
    else:
        assert abs(Fraction(float(got)) - exact) <= abs(Fraction(exact)) / 10**12, what


@pytest.mark.parametrize("gpu", ["t4", "4090"])
@pytest.mark.parametrize("model", [SMALL, LARGE], ids=["small", "large"])
def test_random_configurations(model: Any, gpu: str) -> None:
    rng = random.Random(f"{gpu} {model['hidden_size']}")
    start, rows = prepared(model, gpu), [random_flags(rng) for _ in range(150)]
    together = VectorRun.over(RULES, start, columns(rows))
    found = {name: together.array(name) for name in QUANTITIES}
    for index, row in enumerate(rows):
        run = start.changed(**row).run_with(())
        for name in QUANTITIES:
            assert_same(found[name][index], run.value(name), (name, row))


def test_every_kind_of_run_was_among_them() -> None:
    rng = random.Random("t4 576")
    rows = [random_flags(rng) for _ in range(150)]
    run = VectorRun.over(RULES, prepared(), columns(rows))
    assert set(run.array("recommendation_basis")) == {"validated_reserve", "point_estimate_margin"}
    for name in ("fits", "thin_margin"):
        assert set(run.array(name).tolist()) == {True, False}
    run.value("overhead")
    assert {profile.id for profile in run.best["overhead"].values} >= {"default", "t4-eager-nf4"}


def test_models_and_cards_side_by_side() -> None:
    two_groups = prepared(LARGE).run_with(()).facts
    groups = [*two_groups.lists["layer_groups"], *prepared(SMALL).model.lists["layer_groups"]]
    facts = [
        prepared(SMALL, "t4").run_with(()).facts,
        prepared(LARGE, "4090").run_with(()).facts,
        prepared("meta-llama/Llama-3.1-8B", "a100-80gb").run_with(()).facts,
        replace(two_groups, lists={**two_groups.lists, "layer_groups": groups}),
    ]
    flags = {"batch_size": [1, 2, 3, 4], "quant": ["nf4", "none", "int8", "nf4"]}
    together = VectorRun.over(RULES, stack(facts), flags)
    for index in range(4):
        exact = together.configuration(index)
        changed = {name: values[index] for name, values in flags.items()}
        assert exact.facts.records == facts[index].records
        assert exact.facts.lists == facts[index].lists
        assert exact.facts.settings.values == {**facts[index].settings.values, **changed}
        for name in QUANTITIES:
            assert_same(together.array(name)[index], exact.value(name), (name, index))


def test_a_layer_group_with_a_count_of_zero_is_left_out() -> None:
    facts = prepared(LARGE).changed(grad_checkpoint=True).run_with(()).facts
    large, small = facts.lists["layer_groups"][0], prepared().model.lists["layer_groups"][0]
    counted = {**large, "count": np.array([40, 0])}
    mixed = replace(facts, lists={**facts.lists, "layer_groups": [counted, small]})
    got = evaluate(RULES, mixed, {}, "total")
    for index, groups in enumerate(([large, small], [small])):
        one = replace(facts, lists={**facts.lists, "layer_groups": groups})
        run = VectorRun.over(RULES, one, {})
        assert got[index] == run.configuration(0).value("total") == run.array("total")


def test_axes_broadcast() -> None:
    axes = {"batch_size": np.arange(1, 4)[:, None], "seq_len": np.array([128, 4096])}
    got = evaluate(RULES, prepared(), axes, "total")
    assert got.shape == (3, 2) and got.dtype == np.float64
    one = prepared().changed(batch_size=3, seq_len=128).run_with(())
    assert got[2, 0] == one.value("total")
    assert evaluate(RULES, prepared(), axes, "compute_bytes").tolist() == [[2, 2]] * 3
    assert evaluate(RULES, prepared(), {"batch_size": 3, "seq_len": 128}, "total") == got[2, 0]
    assert evaluate(RULES, prepared(), {"batch_size": []}, "total").shape == (0,)


def test_lists_of_words_differ() -> None:
    targets = np.empty(2, object)
    targets[:] = ["q,v", ("o_proj", "gate_proj", "up_proj")]
    got = evaluate(RULES, prepared(), {"lora_targets": targets, "lora_r": [4, 8]}, "total")
    for index, (words, rank) in enumerate(((("q_proj", "v_proj"), 4), (targets[1], 8))):
        run = prepared().changed(lora_targets=words, lora_r=rank).run_with(())
        assert got[index] == run.value("total")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"batchsize": [1, 2]}, "Did you mean `batch_size`"),
        ({"batch_size": [4, 0]}, "--batch-size 0 is out of range"),
        ({"batch_size": np.array([1.0, 2.5])}, "has to be a whole number, not 2.5"),
        ({"batch_size": [float("nan")]}, "has to be a whole number"),
        ({"batch_size": ["many"]}, "has to be a whole number, not 'many'"),
        ({"batch_size": [True]}, "has to be a whole number, not True"),
        ({"quant": ["nf4", "nf5"]}, "--quant nf5 is not modelled"),
        ({"quant": [1, 2]}, "--quant 1.0 is not modelled"),
        ({"flash_attn": [0, 1]}, "--flash-attn is a switch"),
        ({"quant": ["none", "nf4"], "lora": [True, False]}, "--quant nf4 with --no-lora"),
        ({"lora": [True, False], "lora_r": [32, 8]}, "--lora-r has no meaning"),
    ],
)
def test_flags_are_checked(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(InputProblem, match=says.replace("(", r"\(")):
        evaluate(RULES, prepared(), flags, "total")


def test_a_default_is_no_choice() -> None:
    rank = {"lora": [True, False], "lora_r": [32, 16]}
    assert evaluate(RULES, prepared(), rank, "lora_parameters").tolist()[1] == 0


def test_a_refused_configuration_says_what_the_exact_evaluator_says(tmp_path: Path) -> None:
    text = """\
id: share_left
title: Headroom over usable memory
unit: "1"
counts: A test.
reads: [headroom, usable]
cases: [{id: only, expr: headroom / usable}]
"""
    (tmp_path / "share_left.yaml").write_text(text, encoding="utf-8")
    rules = load_rules([str(tmp_path)])
    facts = prepared(rules=rules).run_with(()).facts
    tiny = {**facts.records["card"], "listed": False, "total": np.array([2**34, 2**20])}
    cards = replace(facts, records={**facts.records, "card": tiny})
    run = VectorRun.over(rules, cards, {})
    assert run.array("usable")[1] == 0
    with pytest.raises(FitcheckError) as exact:
        run.configuration(1).value("share_left")
    with pytest.raises(FitcheckError) as together:
        run.array("share_left")
    assert str(together.value) == str(exact.value) and "division by zero" in str(exact.value)


RULE_FILES = {
    "lists": "title: l\nlists: {stages: {count: ceil(grad_accum / 2), meaning: stages of a test}}",
    "stage_bytes": """\
id: stage_bytes
title: Bytes of a stage
unit: byte
per: stages
counts: A test.
symbols:
  i: {from: "stages[].index", unit: "1", min: 0, integer: true, meaning: index}
reads: [lora]
cases:
  - {id: only, expr: lora * (i + 1), says: a test, evidence: [e]}
evidence: {e: {kind: assumption, where: here, says: a test}}
""",
    "largest_stage": """\
id: largest_stage
title: Largest stage
unit: byte
counts: A test.
flags: [precision]
reads: [stage_bytes]
tables:
  factor: {axes: [precision], unit: "1", meaning: a test, cells: {fp16: 2, bf16: 3}, evidence: [e]}
cases:
  - id: half
    when: precision != "fp32"
    expr: factor * max(stage_bytes[s] for s in stages)
    says: a test
    evidence: [e]
  - id: full
    when: precision == "fp32"
    expr: sum(stage_bytes[s] for s in stages)
    says: a test
    evidence: [e]
evidence: {e: {kind: assumption, where: here, says: a test}}
""",
}


def test_declared_lists_and_cells_that_only_some_need(tmp_path: Path) -> None:
    (tmp_path / "formulas").mkdir()
    for name, text in RULE_FILES.items():
        (tmp_path / "formulas" / f"{name}.yaml").write_text(text, encoding="utf-8")
    rules = load_rules([str(tmp_path)])
    start = prepared(rules=rules)
    flags = {"grad_accum": [1, 4, 9, 64], "precision": ["fp32", "fp16", "bf16", "fp32"]}
    got = evaluate(rules, start, flags, "largest_stage")
    for index in range(4):
        one = {name: values[index] for name, values in flags.items()}
        assert got[index] == start.changed(**one).run_with(()).value("largest_stage")


@pytest.mark.parametrize(("wrong", "says"), [("int8", "No case"), ("nf4", "hold at once")])
def test_one_case_has_to_hold(tmp_path: Path, wrong: str, says: str) -> None:
    text = """\
id: fitting
title: Neither none nor two
unit: truth
counts: A test.
flags: [quant]
cases:
  - {id: one, when: quant != "int8", expr: "true"}
  - {id: two, when: quant == "nf4", expr: "false"}
"""
    (tmp_path / "fitting.yaml").write_text(text, encoding="utf-8")
    rules = load_rules([str(tmp_path)])
    run = VectorRun.over(rules, prepared(rules=rules), {"quant": ["none", wrong, "none"]})
    with pytest.raises(FitcheckError, match=says) as together:
        run.array("fitting")
    with pytest.raises(FitcheckError) as exact:
        run.configuration(1).value("fitting")
    assert str(together.value) == str(exact.value)
    assert run.configuration(2).value("fitting") is True


def test_without_numpy_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from fitcheck.engine.api import prepare, rules_for\n"
        "from fitcheck.engine.vectorized import evaluate\n"
        "start = prepare(rules_for(), 'meta-llama/Llama-3.1-8B', gpu='t4', vram_mib=None,\n"
        "                source='catalogue', flags={})\n"
        "try: evaluate(rules_for(), start, {'batch_size': [1, 2]}, 'total')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "FitcheckError Arrays need NumPy: pip install numpy.\n", done.stderr
