"""Whether a formula rises with a name: a proof by the signs of derivatives, or a counter-example.

A proof covers one case of one formula, for every value that the file allows, with lists of two
items. `max`, `min` and `if` are split into branches and each branch has to rise, which is enough
as long as no condition depends on the name. `floor` and `ceil` rise with their argument.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import expression as ex
from .algebra import EvaluationError
from .formula import Case, Formula
from .local_values import evaluate, fixed, flag_combinations, random_values
from .rules import Rules
from .symbolic import Names, assumptions, case_of, to_sympy
from .sympy_algebra import plain, power_of_two_class

MAX_BRANCHES = 256
TRIES = 300


@dataclass(frozen=True)
class Judgement:
    """`verdict` is proved, refuted or unknown; `how` says why, or is the counter-example."""

    verdict: str
    how: str


def judge(
    rules: Rules, formula: Formula, case: Case | str, symbol: str, direction: str = "rises"
) -> Judgement:
    """Whether the case rises (or `direction="falls"`) with the symbol, or stays the same."""
    sign = {"rises": 1, "falls": -1}[direction]
    chosen = case_of(formula, case)
    if _proved(rules, formula, chosen, symbol, sign):
        return Judgement("proved", "every derivative has the sign")
    witness = _counter_example(rules, formula, chosen, symbol, sign)
    return Judgement("refuted", witness) if witness else Judgement("unknown", "")


def _proved(rules: Rules, formula: Formula, case: Case, symbol: str, sign: int) -> bool:
    import sympy

    known = assumptions(rules, formula)
    for flags in flag_combinations(rules, formula):
        names = Names(known, fixed(formula, flags))
        try:
            if case.when is not None and to_sympy(case.when, names) == plain(False):
                continue
            expression = to_sympy(case.expr, names)
        except EvaluationError:
            return False
        if not isinstance(expression, sympy.Expr):
            return False
        above_low = shifts(formula, names)
        for (name, *_), variable in names.made.items():
            if name == symbol and not rises(sign * expression, variable, above_low):
                return False
    return True


def shifts(formula: Formula, names: Names) -> dict[Any, Any]:
    """Each symbol as its least value plus something that is not negative."""
    import sympy

    lows = {n: s.low for n, s in formula.symbols.items() if s.low is not None}
    return {
        variable: plain(lows[name]) + sympy.Dummy(nonnegative=True)
        for (name, *_), variable in names.made.items()
        if name in lows
    }


def rises(expression: Any, variable: Any, above_low: Mapping[Any, Any]) -> bool:
    import sympy

    branches = [expression]
    for _ in range(MAX_BRANCHES):
        if not branches:
            return True
        branch = _terms_with(branches.pop(), variable)
        splits = [
            part
            for part in sympy.preorder_traversal(branch)
            if isinstance(part, (sympy.Max, sympy.Min, sympy.Piecewise))
        ]
        split = next((part for part in splits if variable in part.free_symbols), None)
        if split is None:  # what is left of them only scales the slope
            if nonnegative(_slope(branch, variable), above_low):
                continue
            if not splits:
                return False
            split = splits[0]
        if isinstance(split, sympy.Piecewise):
            if any(variable in condition.free_symbols for _, condition in split.args):
                return False
            branches += [branch.xreplace({split: value}) for value, _ in split.args]
        else:
            branches += [branch.xreplace({split: part}) for part in split.args]
        branches = [b for b in branches if b.is_finite is not False]  # the largest of nothing
    return False


def _terms_with(expression: Any, variable: Any) -> Any:
    """A sum without the terms that do not hold the variable, which would only multiply branches."""
    import sympy

    terms = sympy.Add.make_args(expression)
    return sympy.Add(*(term for term in terms if variable in term.free_symbols))


def _slope(expression: Any, variable: Any) -> Any:
    """The derivative; a step function adds an unknown slope that is not negative."""
    import sympy

    kinds = (sympy.floor, sympy.ceiling, power_of_two_class())
    steps: dict[Any, Any] = {}
    walk = sympy.preorder_traversal(expression)
    for part in walk:
        if isinstance(part, kinds):
            walk.skip()
            # sympy knows of floor alone that it has no sign where its argument has none
            known = part.is_nonnegative or part.args[0].is_nonnegative
            steps[part] = sympy.Dummy(real=True, nonnegative=known)
    flat = expression.xreplace(steps)
    slope = sympy.diff(flat, variable)
    for part, value in steps.items():
        inner = _slope(part.args[0], variable)
        slope += sympy.diff(flat, value) * sympy.Dummy(nonnegative=True) * inner
    return slope


def nonnegative(expression: Any, above_low: Mapping[Any, Any]) -> bool:
    import sympy

    if sympy.expand(expression).is_nonnegative:
        return True
    parts = sympy.fraction(sympy.together(expression.xreplace(dict(above_low))))
    top, bottom = map(sympy.expand, parts)
    terms = sympy.Add.make_args(top)
    return bool(bottom.is_positive and all(term.is_nonnegative for term in terms))


def _counter_example(
    rules: Rules, formula: Formula, case: Case, symbol: str, sign: int
) -> str | None:
    rng = random.Random(f"{formula.id} {case.id} {symbol}")
    for _ in range(TRIES):
        before = random_values(rules, formula, rng)
        after = deepcopy(before)
        places = [p for p in _holders(after) if isinstance(p.get(symbol), (int, Fraction))]
        if not places:
            return None
        place = rng.choice(places)
        old, place[symbol] = place[symbol], place[symbol] + rng.choice((1, 2, 16, 1000))
        try:
            if case.when is not None and not all(evaluate(case.when, v) for v in (before, after)):
                continue
            low, high = evaluate(case.expr, before), evaluate(case.expr, after)
        except (EvaluationError, KeyError):  # division by zero; a cell that is not modelled
            continue
        if sign * (high - low) < 0:
            used = sorted(ex.names(case.expr) - {symbol})
            rest = ", ".join(f"{n} = {before[n]}" for n in used if n in before)
            return f"{symbol} {old} -> {place[symbol]} gives {low} -> {high} ({rest})"
    return None


def _holders(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The values and every list item in them."""
    yield values
    for value in values.values():
        if isinstance(value, list):
            for item in value:
                yield from _holders(item)
