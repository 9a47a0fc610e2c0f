"""Claims about a formula (never negative, rises or falls with a name), tried around its examples.

This is a deterministic sample, which can refute a claim and not prove it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from ..algebra import EvaluationError
from ..errors import Problem
from ..formula import HIGH, LOW, VALUE, Formula
from ..rules import Rules
from .examples import MissingValue, evaluate
from .formula_checks import name_unit, shown

STEPS = (1, 2, 7, 1000)  # how far a value is raised above the one in the example, in steps
LOGICAL = ("truth", "text")


def numeric_names(rules: Rules, formula: Formula) -> list[str]:
    """Symbols and quantities with an amount, in the order of the file."""
    found = []
    for name in (*formula.symbols, *formula.reads):
        unit = name_unit(rules, formula, name)
        if name in rules.broken or (unit is not None and unit.text not in LOGICAL):
            found.append(name)
    return found


def check_claims(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F401, F402, F403."""
    if not formula.cases or formula.unit.text in LOGICAL:
        return
    claims = formula.claims
    rises, falls = claims.get("rises_with", ()), claims.get("falls_with", ())
    silent = claims.get("no_direction", {})
    mark = formula.source.key_mark(("claims",))
    names = numeric_names(rules, formula)
    for name in (*rises, *falls, *silent):
        if name not in names:
            yield formula.source.problem(
                "F403", "no-claims", mark, f"`{name}` under claims is no amount of this formula."
            )
    if (claims or formula.live) and formula.status == "stable":
        for name in names:
            if name not in (*rises, *falls, *silent):
                yield formula.source.problem(
                    "F403",
                    "no-claims",
                    mark,
                    f"Say whether the result rises or falls with `{name}`: "
                    f"`claims: {{rises_with: [{name}]}}`, `falls_with`, or `no_direction` with a "
                    "reason.",
                )
    for example in formula.examples:
        base = value_of(rules, formula, example.given)
        if base is None:
            continue
        if claims.get("nonnegative") and base < 0:
            yield formula.source.problem(
                "F402",
                "negative",
                mark,
                f"In example `{example.name}` the result is {shown(base)}, below zero.",
            )
        yield from _bands(rules, formula, example.given, base)
        for name, sign in [(n, 1) for n in rises] + [(n, -1) for n in falls]:
            yield from _try(rules, formula, example.given, name, sign, base)


def _bands(
    rules: Rules, formula: Formula, given: Mapping[str, Any], base: Fraction
) -> Iterator[Problem]:
    """F404: the result rises with every banded constant, which makes the ends of a band exact."""
    for end, sign in ((LOW, -1), (HIGH, 1)):
        value = value_of(rules, formula, given, end)
        if value is not None and (value - base) * sign < 0:
            yield formula.source.problem(
                "F404",
                "band-falls",
                formula.source.key_mark(("constants",)),
                f"With the banded constants at their {'upper' if sign > 0 else 'lower'} end the "
                f"result goes from {shown(simple(base))} to {shown(simple(value))}; it has to "
                f"{'rise' if sign > 0 else 'fall'}. Turn the constant round.",
            )


def value_of(
    rules: Rules, formula: Formula, given: Mapping[str, Any], band: int = VALUE
) -> Fraction | None:
    """The result as a number; None where these values have none."""
    try:
        _, value = evaluate(rules, formula, given, band)
    except (MissingValue, EvaluationError, TypeError):
        return None
    return None if value is None or isinstance(value, (str, bool)) else Fraction(value)


def _try(
    rules: Rules, formula: Formula, given: Mapping[str, Any], name: str, sign: int, base: Fraction
) -> Iterator[Problem]:
    previous, before = base, read(given, name)
    for step in STEPS:
        raised = raise_value(given, name, step)
        if raised is None:
            return
        value = value_of(rules, formula, raised)
        if value is None:
            continue
        if (value - previous) * sign < 0:
            verb = "rises" if sign > 0 else "falls"
            yield formula.source.problem(
                "F401",
                "claim-broken",
                formula.source.key_mark(("claims",)),
                f"You claim that it {verb} with {name}, but {name} {shown(before)} -> "
                f"{shown(read(raised, name))} takes it from {shown(simple(previous))} to "
                f"{shown(simple(value))}.",
            )
            return
        previous, before = value, read(raised, name)


def simple(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _find(given: Any, name: str) -> tuple[Any, Any] | None:
    """The first (container, key) that holds `name`, in list items too."""
    if isinstance(given, dict):
        if name in given and isinstance(given[name], (int, Fraction)):
            return given, name
        for value in given.values():
            found = _find(value, name) if isinstance(value, (dict, list)) else None
            if found:
                return found
    if isinstance(given, list):
        for value in given:
            found = _find(value, name)
            if found:
                return found
    return None


def read(given: Mapping[str, Any], name: str) -> Any:
    """The value of `name` in an example."""
    found = _find(dict(given), name)
    return found[0][found[1]] if found else None


def raise_value(given: Mapping[str, Any], name: str, step: int) -> dict[str, Any] | None:
    """The example with `name` raised; None where it does not give that name."""
    changed = copy.deepcopy(dict(given))
    found = _find(changed, name)
    if found is None:
        return None
    container, key = found
    value = container[key]
    container[key] = (
        value + step * max(1, value // 3) if isinstance(value, int) else value * (1 + step)
    )
    return changed
