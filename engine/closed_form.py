"""The largest value of a flag in closed form, where the searched quantity is affine in it.

The search of `run.py` finds the same number by trying values; here it follows from the fixed bytes
and the bytes a unit. The two are held against each other, so a closed form is never shown for a
number that it does not give.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from . import expression as ex
from .errors import FitcheckError
from .evaluation import NO_LOOP, EvaluationError
from .formula import HIGH, Formula
from .lines import HALF, LINES, UNKNOWN, Lines, NotAffine
from .printer import TEXT, Printer
from .record import record
from .rules import Compiled, Rules
from .run import Facts, Run, rounded
from .template import number
from .yaml_problems import Path


@record
class ClosedForm:
    """
    `floor((room - fixed) / each)`, or 0: the largest value with `fixed + each * value <= room`.

    `quantity` is the side that rises, `unit` that of the amounts, which are exact. `slack` is what
    rounding can change in them, and `lines` of how many straight lines the quantity is the largest.
    """

    quantity: str
    unit: str
    room: int | Fraction
    fixed: int | Fraction
    each: int | Fraction
    slack: int | Fraction
    lines: int
    value: int

    def sentence(self, option: str) -> str:
        """The closed form with its numbers."""
        unit = f" {self.unit}" if self.unit else ""
        room, fixed, each = number(self.room), number(self.fixed), number(self.each)
        which = (
            f"the highest of {self.lines} straight lines" if self.lines > 1 else "a straight line"
        )
        slack = f", give or take {number(self.slack)} for rounding" if self.slack else ""
        result = f"floor(({room} - {fixed}) / {each}) = {self.value:,}"
        if self.fixed > self.room:
            result = f"{fixed} alone is more than {room}"
        return (
            f"Closed form: in {option}, {self.quantity} is {which}, {fixed}{unit} + {each}{unit} "
            f"each{slack}; {result}."
        )


class LineRun(Run):
    """A run in which one flag is left open."""

    def __init__(self, rules: Rules, facts: Facts, band: int, parent: Run) -> None:
        super().__init__(rules, facts, band, parent=parent)
        self._made: dict[str, Compiled] = {}

    @classmethod
    def of(cls, run: Run, flag: str) -> LineRun:
        """The run with this flag unknown; what cannot depend on it is kept."""
        facts = run.facts
        settings = facts.settings.changed(**{flag: UNKNOWN})
        opened = cls(run.rules, Facts(settings, facts.records, facts.lists), run.band, run)
        touched = run.rules.affected[flag]
        opened.values.update({k: v for k, v in run.values.items() if k[0] not in touched})
        return opened

    def at_band(self, end: int) -> LineRun:
        return LineRun(self.rules, self.facts, end, self)

    def _compute(self, name: str, loop: Any, key: Any) -> Any:
        compiled = self._compiled(name)
        formula = compiled.formula
        if compiled.condition is not None:
            raise NotAffine(f"`{name}` is itself a search")
        if formula.band is not None:
            of, end = formula.band
            return self.at_band(end).value(of)
        held = [e for _, when, e in compiled.cases if when is None or when(self, loop)]
        if len(held) != 1:
            raise NotAffine(f"no single case of `{name}` holds")
        value = held[0](self, loop)
        if not formula.rounded:
            return value
        if isinstance(value, Lines):
            return value.rounded(HALF if self.band == HIGH else 0)
        return rounded(value, self.band)

    def _compiled(self, name: str) -> Compiled:
        if name not in self._made:
            self._made[name] = self.rules.compile_formula(self.rules.formula(name), LINES)
        return self._made[name]


def closed_form(run: Run, formula: Formula) -> ClosedForm | None:
    """
    The closed form of a search in this run; None where the quantity is not affine in the flag, or
    where rounding leaves open which value it is.
    """
    assert formula.search is not None
    flag, rules = formula.search.flag, run.rules
    sides = comparison(rules, formula, formula.search.condition, ("search", "while"))
    if sides is None:
        return None
    place, path, low, high = sides
    opened = LineRun.of(run, flag)
    try:
        rising = rules.compile(place, low, path, LINES)(opened, NO_LOOP)
        room = rules.compile(place, high, path, LINES)(opened, NO_LOOP)
    except (FitcheckError, EvaluationError):
        return None
    if not isinstance(rising, Lines) or isinstance(room, Lines):
        return None
    steep = [line for line in rising.lines if line[1] > 0]
    if not steep:
        return None
    fixed, each = min(steep, key=lambda line: (room - line[0]) / Fraction(line[1]))
    value = max(0, math.floor((room - fixed) / Fraction(each)))
    unit = rules.unit_text(place)(low.id) if isinstance(low, ex.Name) else ""
    if value != run.value(formula.id) or run.searches[formula.id].capped:
        return None  # rounding, a line that does not rise and is too high, or the flag's own limit
    return ClosedForm(
        Printer(TEXT).show(low), unit, room, fixed, each, rising.slack, len(rising.lines), value
    )


def comparison(
    rules: Rules, formula: Formula, tree: ex.Node, path: Path
) -> tuple[Formula, Path, ex.Node, ex.Node] | None:
    """
    The file and the two sides of `low <= high` that a condition comes down to, through quantities
    that are just a name for it.
    """
    if isinstance(tree, ex.Name) and tree.id in formula.reads:
        read = rules.formula(tree.id)
        if len(read.cases) != 1 or read.cases[0].when is not None or read.per is not None:
            return None
        return comparison(rules, read, read.cases[0].expr, (*read.cases[0].path, "expr"))
    if isinstance(tree, ex.Compare) and tree.op in ("<=", ">="):
        sides = (tree.left, tree.right) if tree.op == "<=" else (tree.right, tree.left)
        return formula, path, *sides
    return None
