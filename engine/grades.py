"""How well a number is supported: the grade of the weakest part that it was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .evaluation import NO_LOOP
from .formula import Case, Constant, Evidence, Formula
from .profile import Profile
from .record import record
from .run import Run

GRADES = ("assumed", "derived", "simulated", "measured")  # weakest first
KINDS = {
    "measurement": "measured",
    "simulation": "simulated",
    "source": "derived",
    "derivation": "derived",
    "assumption": "assumed",
}
OUTSIDE = "derived"  # a measurement or simulation outside the conditions it was made under


@record
class Grade:
    """A grade with the rows and cards of the measurements behind it."""

    grade: str
    rows: int
    cards: tuple[str, ...]

    def __str__(self) -> str:
        if self.grade != "measured":
            return self.grade
        rows = f"{self.rows} row{'s' if self.rows != 1 else ''}"
        return f"measured ({rows}, {', '.join(c.upper() for c in self.cards)})"

    def to_dict(self) -> dict[str, Any]:
        return {"grade": self.grade, "rows": self.rows, "cards": list(self.cards)}


ASSUMED = Grade("assumed", 0, ())


def weakest(grades: Iterable[Grade]) -> Grade:
    """The lowest grade; rows is the smallest count among its measurements."""
    found = list(grades)
    if not found:
        return Grade("measured", 0, ())
    low = min(found, key=lambda g: (GRADES.index(g.grade), g.rows))
    cards = tuple(dict.fromkeys(c for g in found if g.grade == low.grade for c in g.cards))
    return Grade(low.grade, low.rows, cards)


def grade_of(evidence: Evidence, run: Run) -> Grade:
    """The grade of one piece of evidence in this run."""
    grade = KINDS[evidence.kind]
    if grade in ("measured", "simulated") and not holds_here(evidence, run):
        return Grade(OUTSIDE, 0, ())
    return Grade(grade, evidence.rows or 0, evidence.cards)


def holds_here(evidence: Evidence, run: Run) -> bool:
    """Whether the conditions that something was measured under are those of this run."""
    text = evidence.within_text
    return not text or bool(run.rules.over_flags(text)(run, NO_LOOP))


class Grader:
    """Grades quantities of one run, each once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known: dict[str, Grade] = {}

    def own(self, names: Iterable[str], evidence: Mapping[str, Evidence]) -> list[Grade]:
        """The best of several proofs of one thing counts for it; without any it is assumed."""
        found = [grade_of(evidence[n], self.run) for n in names if n in evidence]
        return [max(found, key=lambda g: (GRADES.index(g.grade), g.rows), default=ASSUMED)]

    def grade(self, name: str) -> Grade:
        """The grade of a quantity: its case, what that case uses, and what it reads."""
        if name not in self.known:
            self.known[name] = Grade("measured", 0, ())  # a cycle cannot occur; guards recursion
            self.known[name] = self._grade(self.run.rules.formula(name))
        return self.known[name]

    def _grade(self, formula: Formula) -> Grade:
        if formula.band:
            return self.grade(formula.band[0])
        if formula.search:
            return weakest(self.grade(r) for r in formula.reads)
        cases = [c for (name, _), c in self.run.chosen.items() if name == formula.id]
        if not cases:
            return Grade("derived", 0, ())
        if formula.overlay:
            return ASSUMED  # the evidence in a changed file was gathered for another one
        return weakest(
            self._case_grade(formula, case) for case in {c.id: c for c in cases}.values()
        )

    def _case_grade(self, formula: Formula, case: Case) -> Grade:
        """One case of a quantity; a quantity with a value for each layer group can have several."""
        used = self.run.rules.names_of(formula, case)
        grades = self.own(case.evidence, formula.evidence)
        for constant in formula.constants.values():
            if constant.name in used:
                grades += self.own(constant.evidence, formula.evidence)
        for table in formula.tables.values():
            if table.name in used:
                grades += self.own(table.evidence, formula.evidence)
        for symbol in formula.symbols.values():
            if symbol.name in used and symbol.source.startswith("profiles."):
                profile = self.run.profile(symbol.source.split(".")[1])[0]
                grades += self.profile_grade(profile, symbol.field)
        # A truth only says which case holds, and that case has evidence of its own.
        grades += [
            self.grade(r)
            for r in formula.reads
            if r in used and self.run.rules.formula(r).unit.text != "truth"
        ]
        if any(
            s.source.startswith("components[]") and s.name in used for s in formula.symbols.values()
        ):
            grades += [self.grade(c.id) for c in self.run.rules.components]
        return weakest(g for g in grades if g.grade != "measured" or g.rows)

    def profile_grade(self, profile: Profile, field: str) -> list[Grade]:
        if profile.overlay:
            return [ASSUMED]
        value = profile.values.get(field)
        return self.own(value.evidence, profile.evidence) if isinstance(value, Constant) else []
