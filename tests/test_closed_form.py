"""Closed forms of searches: equal to the search wherever there is one, and a proof of their own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fitcheck import estimate
from fitcheck.engine import expression as ex
from fitcheck.engine.algebra import compile_tree
from fitcheck.engine.api import rules_for
from fitcheck.engine.closed_form import closed_form
from fitcheck.engine.evaluation import NO_LOOP, EvaluationError
from fitcheck.engine.lines import LINES, UNKNOWN, Lines, NotAffine
from fitcheck.engine.local_values import LOCAL

MODEL = "meta-llama/Llama-3.1-8B"
SEARCHES = [f for f in rules_for().formulas.values() if f.search]
FLAGS = st.fixed_dictionaries(
    {
        "quant": st.sampled_from(["none", "int8", "nf4"]),
        "flash_attn": st.booleans(),
        "grad_checkpoint": st.booleans(),
        "batch_size": st.integers(1, 64),
        "seq_len": st.integers(1, 9000),
        "lora_r": st.integers(1, 300),
        "gpu": st.sampled_from(["t4", "4090", "h100", "b200"]),
    }
)


class Values:
    """What `LOCAL` looks names up in: numbers, truths and the unknown."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    def name(self, name: str) -> Any:
        return self.given[name]


def line(text: str, **given: Any) -> Any:
    return compile_tree(ex.parse(text), LINES, LOCAL)(Values({"n": UNKNOWN, **given}), NO_LOOP)


@settings(max_examples=60, deadline=None)
@given(FLAGS)
def test_a_closed_form_is_what_the_search_finds_and_what_an_estimate_confirms(
    flags: dict[str, Any],
) -> None:
    report = estimate(MODEL, **flags)
    for formula in SEARCHES:
        form, value = closed_form(report.run, formula), report[formula.id]
        if form is None:
            continue
        assert form.value == value
        for tried in (value, value + 1) if value else (1,):
            total = form.fixed + form.each * tried
            exact = estimate(MODEL, **{**flags, formula.search.flag: tried})[form.quantity]
            assert exact >= total - form.slack  # the largest of several lines
            if form.lines == 1:
                assert exact <= total + form.slack


@pytest.mark.parametrize(
    ("flags", "name", "there"),
    [
        ({"flash_attn": True}, "max_batch_size", True),
        ({"flash_attn": True}, "max_seq_len", True),
        ({"flash_attn": True}, "max_lora_r", True),
        ({"flash_attn": False}, "max_batch_size", True),
        ({"flash_attn": False}, "max_seq_len", False),  # the score matrix grows with the square
        ({"flash_attn": False}, "max_lora_r", True),
    ],
)
def test_where_there_is_a_closed_form(flags: dict[str, Any], name: str, there: bool) -> None:
    report = estimate(MODEL, gpu="h100", quant="nf4", **flags)
    form = closed_form(report.run, report.prepared.rules.formulas[name])
    assert (form is not None) == there
    text = report.derive(name)
    assert ("Closed form:" in text) == there
    assert "each a full evaluation" in text


def test_the_rank_of_a_run_without_adapters_is_no_quantity() -> None:
    report = estimate(MODEL, gpu="h100", lora=False)
    assert "max_lora_r" not in report and report.get("max_lora_r") is None
    assert "max_lora_r" not in set(report) and "max_seq_len" in set(report)
    assert "LoRA rank" not in report.explain()


def test_the_explanation_says_how_far_each_flag_could_go() -> None:
    report = estimate(MODEL, gpu="4090", qlora=True, flash_attn=True, seq_len=2048)
    text = report.explain()
    for name in ("max_batch_size", "max_seq_len", "max_lora_r"):
        title = report.prepared.rules.formulas[name].title
        assert f"- {title[0].lower()}{title[1:]}: {report[name]:,}" in text
    assert estimate(MODEL, gpu="4090", qlora=True, flash_attn=True, seq_len=report["max_seq_len"])[
        "fits"
    ]


@pytest.mark.parametrize(
    ("text", "lines", "slack"),
    [
        ("3 + 2 * n", ((3, 2),), 0),
        ("(n + 1) * 4 / 8 - n / 2", ((Fraction(1, 2), 0),), 0),
        ("n * 0", 0, 0),
        ("n ** 1", ((0, 1),), 0),
        ("max(n, 5)", ((5, 0), (0, 1)), 0),
        ("max(n, 1)", ((0, 1),), 0),
        ("max(n, 5) + max(n, 7)", ((12, 0), (7, 1), (0, 2)), 0),
        ("ceil(n / 2)", ((Fraction(1, 2), Fraction(1, 2)),), Fraction(1, 2)),
        ("floor(2 * n)", ((0, 2),), 0),
        ("2 * n if n >= 1 else n * n", ((0, 2),), 0),
        ("n if n < 2 * n else n * n", ((0, 1),), 0),
        ("7 if n == 0 else n", ((0, 1),), 0),
        ("max(3, 2)", 3, 0),
        ("7 % 4 + 2 ** 3", 11, 0),
    ],
)
def test_what_a_line_is(text: str, lines: Any, slack: Any) -> None:
    found = line(text)
    if not isinstance(found, Lines):
        assert (found, 0) == (lines, slack)
        return
    assert (found.lines, found.slack) == (lines, slack)
    for n in (1, 2, 3, 10, 1001):
        exact = compile_tree(ex.parse(text), LINES, LOCAL)(Values({"n": n}), NO_LOOP)
        assert abs(max(o + s * n for o, s in found.lines) - exact) <= found.slack


@pytest.mark.parametrize(
    "text",
    [
        "n * n",
        "n ** 2",
        "1 / n",
        "n / n",
        "n % 2",
        "min(n, 5)",
        "-max(n, 5)",
        "power_of_two_floor(n)",
        "1 if n > 5 else 2",
        "1 if n == 5 else 2",
        "1 if max(n, 4) != 2 * n else 2",
        "n in [1, 2]",
    ],
)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(NotAffine):
        line(text)


def test_a_division_by_zero_stays_an_error_of_arithmetic() -> None:
    with pytest.raises(EvaluationError):
        line("1 / 0 + n")
    with pytest.raises(EvaluationError):
        line("n / 0")
