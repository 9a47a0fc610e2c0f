"""The claims of formula files: proved where sympy can, tried on a deterministic sample otherwise.

A proof covers one case for every value that the file allows, with lists of two items; `max`, `min`
and `if` are split into branches (`monotone.py`). What cannot be proved is tried around the worked
examples and on random values that are the same in every run. A counter-example from an example of
the file comes first, because its numbers are the editor's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from .. import expression as ex
from ..algebra import EvaluationError
from ..checks.claims import LOGICAL, STEPS, raise_value, read, value_of
from ..errors import FitcheckError
from ..formula import HIGH, LOW, Case, Formula
from ..local_values import evaluate, fixed, flag_combinations, random_values
from ..monotone import MAX_BRANCHES, TRIES, judge, nonnegative, rises, shifts
from ..record import record
from ..rules import Rules
from ..symbolic import Names, assumptions, to_sympy
from ..sympy_algebra import plain
from .values import value_text

PROVED, SAMPLED, REFUTED = "proved", "sampled", "refuted"
Test = Callable[[Any, Names, dict[Any, Any]], bool]


@record
class Proof:
    """
    One claim of one case; `case` is empty where the whole formula was tried.

    `verdict` is proved, sampled (tried, and no counter-example found) or refuted; `how` is the
    counter-example.
    """

    formula: str
    place: str
    case: str
    claim: str
    verdict: str
    how: str = ""


def prove(rules: Rules, formula: Formula) -> Iterator[Proof]:
    """Every claim of a formula, case by case; nothing where it claims nothing."""
    if not formula.cases or formula.unit.text in LOGICAL:
        return
    place = str(formula.source.key_mark(("claims",)))

    def found(claim: str, case: str, verdict: str, how: str = "") -> Proof:
        return Proof(formula.id, place, case, claim, verdict, how)

    if formula.claims.get("nonnegative"):
        witness = _negative_example(rules, formula)
        if witness:
            yield found("never negative", "", REFUTED, witness)
        else:
            for case in formula.cases:
                yield found("never negative", case.id, *_never_negative(rules, formula, case))
    for direction in ("rises", "falls"):
        for name in formula.claims.get(f"{direction}_with", ()):
            claim, sign = f"{direction} with {name}", 1 if direction == "rises" else -1
            witness = _example_against(rules, formula, name, sign)
            if witness:
                yield found(claim, "", REFUTED, witness)
                continue
            for case in formula.cases:
                judged = judge(rules, formula, case, name, direction)
                verdict = {"unknown": SAMPLED}.get(judged.verdict, judged.verdict)
                yield found(claim, case.id, verdict, judged.how if verdict == REFUTED else "")
    for name in (n for n, c in formula.constants.items() if c.band[LOW] != c.band[HIGH]):
        witness = _band_against(rules, formula)
        for case in formula.cases:
            verdict = PROVED if _band_proved(rules, formula, case, name) else SAMPLED
            claim = f"rises with the banded {name}"
            yield found(claim, case.id, REFUTED if witness else verdict, witness)


def _example_against(rules: Rules, formula: Formula, name: str, sign: int) -> str:
    """A worked example of the file in which raising `name` moves the result the wrong way."""
    for example in formula.examples:
        previous = value_of(rules, formula, example.given)
        before = read(example.given, name)
        for step in STEPS if previous is not None else ():
            raised = raise_value(example.given, name, step)
            value = value_of(rules, formula, raised) if raised is not None else None
            if raised is None or value is None or previous is None:
                continue
            after = read(raised, name)
            if (value - previous) * sign < 0:
                unit = formula.unit.text
                return (
                    f"in example `{example.name}`, {name} {value_text(before)} -> "
                    f"{value_text(after)} takes the result from {_amount(previous, unit)} to "
                    f"{_amount(value, unit)}"
                )
            previous, before = value, after
    return ""


def _amount(value: Fraction, unit: str) -> str:
    return value_text(value.numerator if value.denominator == 1 else value, unit)


def _negative_example(rules: Rules, formula: Formula) -> str:
    for example in formula.examples:
        value = value_of(rules, formula, example.given)
        if value is not None and value < 0:
            return f"example `{example.name}` gives {_amount(value, formula.unit.text)}"
    return ""


def _band_against(rules: Rules, formula: Formula) -> str:
    for example in formula.examples:
        ends = [value_of(rules, formula, example.given, end) for end in (LOW, HIGH)]
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
            low, high = (_amount(e, formula.unit.text) for e in ends if e is not None)
            return f"example `{example.name}` gives {low} at the low end and {high} at the high one"
    return ""


def _never_negative(rules: Rules, formula: Formula, case: Case) -> tuple[str, str]:
    """Whether a case is never negative: the verdict and a counter-example."""

    def test(expression: Any, names: Names, above_low: dict[Any, Any]) -> bool:
        return bool(expression.is_nonnegative) or _all_branches(expression, above_low)

    if _for_all_flags(rules, formula, case, (), test):
        return PROVED, ""
    rng = random.Random(f"{formula.id} {case.id}")
    for _ in range(TRIES):
        values = random_values(rules, formula, rng)
        try:
            if case.when is not None and not evaluate(case.when, values):
                continue
            result = evaluate(case.expr, values)
        except (EvaluationError, KeyError):  # division by zero; a cell that is not modelled
            continue
        if result < 0:
            used = sorted(ex.names(case.expr))
            given = ", ".join(f"{n} = {value_text(values[n])}" for n in used if _plain(values, n))
            return REFUTED, f"{given} gives {value_text(result, formula.unit.text)}"
    return SAMPLED, ""


def _plain(values: dict[str, Any], name: str) -> bool:
    return name in values and not isinstance(values[name], list)


def _all_branches(expression: Any, above_low: dict[Any, Any]) -> bool:
    """Whether no branch of max, min and if is negative, which is more than is needed."""
    import sympy

    kinds = (sympy.Max, sympy.Min, sympy.Piecewise)
    branches = [expression]
    for _ in range(MAX_BRANCHES):
        if not branches:
            return True
        branch = branches.pop()
        split = next((p for p in sympy.preorder_traversal(branch) if isinstance(p, kinds)), None)
        if split is None:
            if not nonnegative(branch, above_low):
                return False
            continue
        piecewise = isinstance(split, sympy.Piecewise)
        parts = [value for value, _ in split.args] if piecewise else split.args
        branches += [branch.xreplace({split: part}) for part in parts]
    return False


def _band_proved(rules: Rules, formula: Formula, case: Case, constant: str) -> bool:
    """Whether a case rises with a banded constant."""

    def test(expression: Any, names: Names, above_low: dict[Any, Any]) -> bool:
        made = names.made.get((constant,))
        return made is None or rises(expression, made, above_low)

    return _for_all_flags(rules, formula, case, (constant,), test)


def _for_all_flags(
    rules: Rules, formula: Formula, case: Case, free: tuple[str, ...], test: Test
) -> bool:
    """Whether a test of the sympy expression succeeds for every combination of flags."""
    import sympy

    known = assumptions(rules, formula)
    for flags in flag_combinations(rules, formula):
        given = {n: v for n, v in fixed(formula, flags).items() if n not in free}
        names = Names(known, given)
        try:
            if case.when is not None and to_sympy(case.when, names) == plain(False):
                continue
            expression = to_sympy(case.expr, names)
            if not isinstance(expression, sympy.Expr):
                return False
            if not test(expression, names, shifts(formula, names)):
                return False
        except (EvaluationError, FitcheckError):
            return False
    return True
