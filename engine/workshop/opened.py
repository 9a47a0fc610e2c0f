"""Rules as far as they can be read, so that one broken file does not hide what holds in others."""

from __future__ import annotations

from collections.abc import Sequence

from ..checks import check_modes
from ..errors import Problem, RuleFileError
from ..formula import Formula
from ..loading import Roots
from ..record import record
from ..rules import Rules
from .everything import Everything

READING = ("F1", "F2", "F3")  # codes of files that cannot be read, or whose cases are not settled


@record(identity=True)
class Opened:
    """Rules that may have problems; formulas in `skipped` cannot be evaluated."""

    rules: Rules
    problems: Sequence[Problem]
    skipped: frozenset[str]

    def sound(self) -> list[Formula]:
        """The formulas that can be evaluated, in the order of their files."""
        return [f for f in self.rules.formulas.values() if f.id not in self.skipped]

    def reasons(self) -> list[Problem]:
        """Why formulas are skipped."""
        return [p for p in self.problems if p.code.startswith(READING)]


def open_rules(roots: Roots) -> Opened:
    """
    The rules under these roots, of all modes; raises `RuleFileError` where flags or units cannot be
    read.
    """
    (training, *modes), problems = check_modes(roots)
    if training is None:
        raise RuleFileError(problems)
    rules = Everything(training, [mode for mode in modes if mode is not None])
    places = {p.mark.path for p in problems if p.code.startswith(READING)}
    unsound = {f.id for f in rules.formulas.values() if f.source.path in places}
    return Opened(rules, problems, frozenset(unsound | rules.broken))
