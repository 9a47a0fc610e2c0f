"""The worked examples of formula files, each with what was expected and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..algebra import EvaluationError
from ..checks.examples import MissingValue, evaluate
from ..checks.formula_checks import difference
from ..errors import FitcheckError
from ..formula import Formula
from ..record import record
from ..rules import Rules


@record
class Tried:
    """One example; `case` is the case that held and `problem` says what is wrong, if anything."""

    formula: str
    place: str
    name: str
    case: str
    unit: str
    expected: Any
    got: Any
    problem: str = ""


def run_examples(rules: Rules, formula: Formula) -> Iterator[Tried]:
    """Every example of a formula, evaluated with the values it gives and nothing else."""
    for example in formula.examples:
        case, got, problem = "", None, ""
        try:
            chosen, got = evaluate(rules, formula, example.given)
            case = chosen.id if chosen is not None else ""
            if chosen is None:
                problem = "no case holds for these values"
            elif got != example.expect or isinstance(got, bool) != isinstance(example.expect, bool):
                problem = f"differs{difference(got, example.expect)}"
        except MissingValue as error:
            problem = f"no value is given for `{error}`"
        except (EvaluationError, FitcheckError, TypeError) as error:
            problem = f"cannot be evaluated: {error}"
        yield Tried(
            formula.id,
            str(formula.source.mark((*example.path, "expect"))),
            example.name,
            case,
            formula.unit.text,
            example.expect,
            got,
            problem,
        )


def without_example(formula: Formula, tried: list[Tried]) -> list[str]:
    """The cases of a formula that no example uses."""
    used = {t.case for t in tried}
    return [c.id for c in formula.cases if c.id not in used]
