"""Two sets of rules on the reference configurations: which numbers move, and by how much."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from ..loading import files_of, rule_folders
from ..record import record
from ..rules import Rules
from .everything import own
from .reference import Configuration, Outcome, configurations, evaluate


@record
class Move:
    """One quantity that differs; `before` or `after` is None where rules do not have it."""

    name: str
    title: str
    unit: str
    component: bool
    before: Any
    after: Any

    @property
    def difference(self) -> int | Fraction | None:
        """After less before, where both are amounts."""
        if any(isinstance(v, bool) or not isinstance(v, (int, Fraction)) for v in self.ends):
            return None
        exact = Fraction(self.after) - Fraction(self.before)
        return exact.numerator if exact.denominator == 1 else exact

    @property
    def ends(self) -> tuple[Any, Any]:
        return self.before, self.after


@record
class Change:
    """What differs in one configuration."""

    configuration: Configuration
    before: Outcome
    after: Outcome
    moves: Sequence[Move]

    @property
    def any(self) -> bool:
        return bool(self.moves) or self.before != self.after


@record
class Comparison:
    """
    The changes by configuration, the files that differ, and what nothing here tried.

    `files` are (place, "replaces" or "adds"); `untried` are the cases of changed formula files that
    no configuration uses, so that a number may move there unseen.
    """

    changes: Sequence[Change]
    files: Sequence[tuple[str, str]]
    untried: Sequence[tuple[str, str]]


def compare(
    before: Rules, after: Rules, progress: Callable[[str], object] = lambda _: None
) -> Comparison:
    """Evaluate both rules on every configuration; `progress` is called with each title."""
    changes = []
    for configuration in configurations():
        progress(configuration.title)
        old, new = evaluate(before, configuration), evaluate(after, configuration)
        sides = configuration.rules(before), configuration.rules(after)
        changes.append(Change(configuration, old, new, moves(*sides, old, new)))
    files = changed_files(before, after)
    changed = {
        os.path.basename(place).rpartition(".")[0]
        for place, _ in files
        if place.startswith("formulas/")
    }
    used = frozenset[tuple[str, str]]().union(*(c.after.cases for c in changes))
    untried = [
        (formula.id, case.id)
        for part in (after, *after.modes.values())
        for formula in own(after, part)
        if formula.id in changed
        for case in formula.cases
        if (formula.id, case.id) not in used
    ]
    return Comparison(changes, files, untried)


def moves(before: Rules, after: Rules, old: Outcome, new: Outcome) -> list[Move]:
    """The quantities whose values differ; none where either run was refused."""
    if old.refused or new.refused:
        return []
    found = []
    for name in (*new.values, *(n for n in old.values if n not in new.values)):
        mine, theirs = new.values.get(name), old.values.get(name)
        if mine != theirs or isinstance(mine, bool) != isinstance(theirs, bool):
            formula_id = name.partition("[")[0]
            formula = after.formulas.get(formula_id) or before.formulas[formula_id]
            found.append(
                Move(name, formula.title, formula.unit.text, bool(formula.live), theirs, mine)
            )
    return found


def changed_files(before: Rules, after: Rules) -> list[tuple[str, str]]:
    """The places of rule files that come from another file than before."""
    found = []
    for folder in rule_folders(after.roots):
        old, new = files_of(before.roots, folder), files_of(after.roots, folder)
        for stem, (path, _, _) in new.items():
            if stem not in old:
                found.append((f"{folder}/{os.path.basename(path)}", "adds"))
            elif old[stem][0] != path and not same_text(old[stem][0], path):
                found.append((f"{folder}/{os.path.basename(path)}", "replaces"))
    return found


def same_text(first: str, second: str) -> bool:
    """Whether two files hold the same bytes, as ejected and unchanged ones do."""
    with open(first, "rb") as one, open(second, "rb") as other:
        return one.read() == other.read()
