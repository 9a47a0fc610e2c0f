"""Formulas as sympy objects, their LaTeX, and proofs that they rise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import sympy

from fitcheck.engine import expression as ex
from fitcheck.engine.algebra import EvaluationError
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.formula import Formula
from fitcheck.engine.loading import load_rules
from fitcheck.engine.monotone import judge
from fitcheck.engine.record import replace
from fitcheck.engine.symbolic import (
    TRUTH,
    WORD,
    WORDS,
    Names,
    formula_to_sympy,
    latex,
    prove_monotone,
    to_sympy,
)
from fitcheck.engine.versions import Version

RULES = rules_for()


def parsed(text: str, **given: Any) -> Any:
    kinds = {"p": TRUTH, "q": TRUTH, "w": WORD, "name": WORD, "words": WORDS, "version": WORDS}
    return to_sympy(ex.parse(text), Names(kinds, given))


@pytest.mark.parametrize("name", ["S", "N", "E", "I", "Q", "O", "pi", "gamma", "zeta", "beta"])
def test_names_that_sympy_knows_are_plain_symbols(name: str) -> None:
    found = parsed(f"2 * {name}")
    assert found.free_symbols == {sympy.Symbol(name, real=True)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.4 * 5", "37"),
        ("1 / 3 + 0.1", "13/30"),
        ("2 ** 3 % 3 - -1", "3"),
        ("max(1, 7 / 2, 3) + min(2, 0.5)", "4"),
        ("ceil(7 / 2) + floor(-1 / 2)", "3"),
        ("power_of_two_floor(1_000_000 / 3)", "262144"),
        ("power_of_two_floor(a)", "power_of_two_floor(a)"),
        ("power_of_two_floor(0.5)", "nan"),
        ("sum(h[g] for g in layers)", "h_1 + h_2"),
        ("sum(h[g] * d[m] for g in layers for m in g.modules)",
         "d_1_1*h_1 + d_1_2*h_1 + d_2_1*h_2 + d_2_2*h_2"),
        ("max(h[g] for g in layers)", "Max(h_1, h_2)"),
        ("count(1 for g in layers if h[g] > 0)",
         "Piecewise((1, h_1 > 0), (0, True)) + Piecewise((1, h_2 > 0), (0, True))"),
        ("min(h[g] for g in layers if p)", "Min(Piecewise((h_1, p), (oo, True)), "
         "Piecewise((h_2, p), (oo, True)))"),
        ("any(h[g] > 1 for g in layers)", "(h_1 > 1) | (h_2 > 1)"),
        ("a if p else b", "Piecewise((a, p), (b, True))"),
        ("a if true else 1 / 0", "a"),
        ("(p if a > 1 else q) and true", "ITE(a > 1, p, q)"),
        ("p == q", "Equivalent(p, q)"),
        ("p == (a > 1)", "Equivalent(p, a > 1)"),
        ("not (p or a < 1)", "~(p | (a < 1))"),
        ('w == "nf4" and not w != "nf4"', 'Eq(w, "nf4")'),
        ('"nf4" == "nf4" and "a" != "b"', "True"),
        ('w in ["a", "b"]', 'Eq(w, "a") | Eq(w, "b")'),
        ('"a" in words', "a in words"),
        ('"a" not in "bc"', "True"),
        ('version >= "4.5"', "version >= 4.5"),
    ],
)  # fmt: skip
def test_to_sympy(text: str, expected: str) -> None:
    assert str(parsed(text)) == expected


def test_what_is_given_is_no_symbol() -> None:
    layers = [{"h": 3, "name": "q"}, {"name": "k"}, {"name": "q"}]
    text = 'sum(h[g] for g in layers if name[g] in words) + (9 if version >= "4" else 0)'
    found = parsed(text, layers=layers, words=("q", "v"), version=Version("4.57"))
    assert str(found) == "h_3 + 12"
    assert str(parsed("count(1 for t in words)", words=("q", "v"))) == "2"


@pytest.mark.parametrize(
    "text",
    [
        "a / 0",
        "a % (1 - 1)",
        "max(h[g] for g in layers if false)",
        "list(h[g] for g in layers)",
        "sum(1 for t in words)",
    ],
)
def test_what_has_no_sympy_form(text: str) -> None:
    with pytest.raises(EvaluationError):
        parsed(text)


def test_a_symbol_named_like_an_item_stays_apart() -> None:
    names = Names({"h_1": {"positive": True}})
    found = to_sympy(ex.parse("h_1 + sum(h[g] for g in layers)"), names)
    assert len(found.free_symbols) == 3 and {str(s) for s in found.free_symbols} == {
        "h_1",
        "h[1]",
        "h_2",
    }


def test_sums_over_an_index() -> None:
    names = Names(length=None)
    text = "2 + sum(h[g] * d[m] for g in layers for m in g.modules if d[m] > 1)"
    found = to_sympy(ex.parse(text), names)
    (total,) = found.atoms(sympy.Sum)
    assert [str(limit) for limit in total.limits] == ["(m, 1, n_modules)", "(g, 1, n_layers)"]
    assert str(total.function) == "Piecewise((d_g_m*h_g, d_g_m > 1), (0, True))"
    assert str(to_sympy(ex.parse("max(h[g] for g in layers)"), names)) == "max(h_g)"


def test_assumptions_come_from_the_file() -> None:
    found = formula_to_sympy(RULES, RULES.formula("A_logits"), "fp32-copies")
    about = {s.name: (s.is_integer, s.is_positive) for s in found.free_symbols}
    assert about == dict.fromkeys("bsV", (True, True)) | {"copies": (None, True)}
    difference = formula_to_sympy(RULES, RULES.formula("headroom"), "difference")
    assert str(difference) == "-total + usable"
    assert all(s.is_nonnegative for s in difference.free_symbols)


def test_every_case_has_a_sympy_form() -> None:
    for formula in RULES.formulas.values():
        for case in formula.cases:
            for length in (1, 3, None):
                assert formula_to_sympy(RULES, formula, case, length) is not None


def test_latex_keeps_decimals_and_the_order_of_the_author() -> None:
    formula = RULES.formula("A_layer")
    case = replace(formula.cases[0], expr=ex.parse("z * 7.4 + (a - 1) / b"))
    assert latex(RULES, formula, case) == r"z \cdot 7.4 + \frac{a - 1}{b}"
    case = replace(case, expr=ex.parse("seq_len ** 2 * n"))
    assert latex(RULES, formula, case) == r"\mathrm{seq}_{\mathrm{len}}^{2} \cdot n"
    with pytest.raises(InputProblem, match=r"no case `transeint`\. Did you mean `transient`"):
        latex(RULES, formula, "transeint")


CLAIMS = [
    (formula, case, name, direction)
    for formula in RULES.formulas.values()
    for direction in ("rises", "falls")
    for name in formula.claims.get(f"{direction}_with", ())
    for case in formula.cases
]


def test_every_claim_of_the_formula_files_is_proved() -> None:
    assert len(CLAIMS) > 80
    missing = [
        f"{formula.id}, case {case.id}: {direction} with {name}"
        for formula, case, name, direction in CLAIMS
        if prove_monotone(RULES, formula, case, name, direction) != "proved"
    ]
    assert not missing


RULE = """\
id: tried
title: A test
unit: "1"
counts: A test.
flags: [quant, flash_attn, transformers]
symbols:
  n: {from: flags.batch_size, unit: "1", min: 1, integer: true, meaning: a test}
  m: {from: flags.seq_len, unit: "1", min: 2, integer: true, meaning: a test}
  u: {from: model.hidden_size, unit: "1", meaning: a test}
  h: {from: "layer_groups[].hidden_size", unit: "1", min: 0, meaning: a test}
  kind: {from: "layer_groups[].kind", meaning: a test}
constants:
  half: {value: 0.5, unit: "1", meaning: a test, evidence: [e]}
tables:
  c: {axes: [quant], unit: "1", meaning: a test, cells: {none: 0.5, nf4: 2}, evidence: [e]}
  width: {axes: [kind], unit: "1", meaning: a test, cells: {x: 2, y: 4}, evidence: [e]}
cases:
  - {id: only, expr: n, says: a test, evidence: [e]}
evidence: {e: {kind: assumption, where: here, says: a test}}
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Formula:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "formulas").mkdir()
    text = RULE.replace("flags: [quant, flash_attn, transformers]", "flags: [quant, flash_attn]")
    (folder / "formulas" / "tried.yaml").write_text(text, encoding="utf-8")
    return load_rules([str(folder)]).formula("tried")


@pytest.mark.parametrize(
    ("expr", "when", "symbol", "direction", "expected"),
    [
        ("n ** 2 - n", None, "n", "rises", "proved"),  # because n is at least 1
        ("n ** 2 - 5 * n", None, "n", "rises", "refuted"),
        ("m ** 2 - 3 * m", None, "m", "rises", "proved"),  # because m is at least 2
        ("n ** 2 - u * n", None, "n", "rises", "refuted"),
        ("max(n, 5) - min(n, 5) + min(n, 9)", None, "n", "rises", "unknown"),
        ("max(3 * n, 5 * m, 40) - 2 * min(1, n)", None, "m", "rises", "proved"),
        ("max(n - 7, 7 - n)", None, "n", "rises", "refuted"),
        ("n / (n + 1)", None, "n", "rises", "proved"),
        ("1 / n", None, "n", "falls", "proved"),
        ("1 / n", None, "n", "rises", "refuted"),
        ("ceil(n / 3) * 2 + floor(half * n) - 7", None, "n", "rises", "proved"),
        ("floor(u) * n", None, "n", "rises", "refuted"),
        ("floor(n / 2) * n", None, "n", "rises", "proved"),
        ("-ceil(n / 3) * h", None, "n", "falls", "proved"),
        ("power_of_two_floor(max(1, floor(0.75 * n))) * m", None, "n", "rises", "proved"),
        ("n % 7", None, "n", "rises", "refuted"),
        ("n + 0 * (n % 7)", None, "n", "rises", "proved"),
        ("n * m if flash_attn else n", None, "n", "rises", "proved"),
        ("n if flash_attn else -n", None, "n", "rises", "refuted"),
        ("n if n < 10 else 2 * n", None, "n", "rises", "unknown"),  # it jumps, upwards
        ("2 * n if n < 10 else n", None, "n", "rises", "refuted"),
        ("-n if n < 10 else n", "n > 20", "n", "rises", "unknown"),
        ("(c - 1) * n", None, "n", "rises", "refuted"),
        ("(c - 1) * n", 'quant == "nf4"', "n", "rises", "proved"),
        ("(1 - c) * n", 'quant == "nf4"', "n", "falls", "proved"),
        ("sum(h[g] * width[g] for g in layer_groups)", None, "h", "rises", "proved"),
        ("max(h[g] for g in layer_groups)", None, "h", "rises", "proved"),
        ("max(h[g] - width[g] for g in layer_groups if kind[g] == \"x\")", None, "h", "rises",
         "proved"),
        ("sum(h[g] for g in layer_groups) - 2 * max(h[g] for g in layer_groups)", None, "h",
         "rises", "refuted"),
        ("n > 3", None, "n", "rises", "unknown"),
        ("m", None, "n", "rises", "proved"),
    ],
)  # fmt: skip
def test_judgements(
    tried: Formula, expr: str, when: str | None, symbol: str, direction: str, expected: str
) -> None:
    condition = None if when is None else ex.parse(when)
    case = replace(tried.cases[0], expr=ex.parse(expr), when=condition)
    found = judge(RULES, tried, case, symbol, direction)
    assert found.verdict == expected, found
    assert bool(found.how) is (expected != "unknown")
    if expected == "refuted":
        assert found.how.startswith(f"{symbol} ") and " gives " in found.how


def test_no_sympy_until_it_is_asked_for() -> None:
    program = "import sys; import fitcheck.engine.monotone; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
